# frozen_string_literal: true

require "minitest/autorun"
require "open3"
require "support/fences"
require "tempfile"

# The programs for mruby on the pages, each a whole one, as DocsTest runs those for CRuby. MRUBY names the mruby that has the gem.
class GuideTest < Minitest::Test
  PROGRAMS = Dir[File.join(Fences::ROOT, "{docs/*.md,mruby/README.md}")].sort.flat_map { |page| Fences.of(page) }
                .select { |fence| fence.language == Fences::MRUBY }.freeze

  PROGRAMS.each do |fence|
    define_method("test_#{fence.name}") do
      Tempfile.create(%w[program .rb]) do |file|
        File.write(file, fence.content)
        out, err, status = Open3.capture3("timeout", "20", ENV.fetch("MRUBY"), file.path)
        assert_equal [fence.expected, ""], [out.lines(chomp: true), err], fence.name
        assert_predicate status, :success?, fence.name
      end
    end
  end

  def test_there_are_some
    assert_operator PROGRAMS.size, :>=, 5
  end
end
