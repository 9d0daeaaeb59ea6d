# frozen_string_literal: true

require "support/rails_case"

# What Ruby warns of where a generated application loads the gem.
class RailsRequiresTest < RailsCase
  OURS = %r{#{Regexp.escape(RailsApp::ROOT)}/(?:jobs|runtime)/lib/}

  def test_no_file_is_required_while_it_is_loaded
    code = "%w[web metrics cli active_record].each { |name| require \"ringspun/jobs/\#{name}\" }; NoteJob; puts 'loaded'"
    lines = RailsApp.ruby(RailsApp.folder, "-w", "bin/rails", "runner", code, env:).lines(chomp: true)
    assert_includes lines, "loaded"
    assert_empty lines.grep(/circular.*#{OURS}/) + lines.grep(/\A#{OURS}.* warning/)
  end
end
