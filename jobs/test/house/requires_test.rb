# frozen_string_literal: true

require "jobs_helper"
require "support/program"

# What Ruby warns of where files require each other. Each file is required by a process that has nothing of its room, but what all
# rooms before it have: `ringspun/jobs`, or nothing at all for those that programs require themselves.
class JobsRequiresTest < Minitest::Test
  include AnyBackend

  FOLDER = File.expand_path("../../lib", __dir__)
  # For these a process needs all of Rails, as the tests of Rails have it.
  OF_RAILS = %r{\Agenerators/|/railtie}
  # What the guides tell programs to require.
  ENTRIES = %w[ringspun-jobs ringspun/jobs ringspun/jobs/active_job ringspun/jobs/active_record ringspun/jobs/cli
               ringspun/jobs/metrics ringspun/jobs/minitest ringspun/jobs/sidekiq ringspun/jobs/sidekiq/testing
               ringspun/jobs/testing ringspun/jobs/web].freeze

  CODE = <<~'RUBY'
    folder, *names = ARGV
    $stdout.sync = true
    tell = lambda do |name, before|
      log = IO.pipe.then do |reader, writer|
        pid = fork do
          reader.close
          [$stdout, $stderr].each { |io| io.reopen(writer) }
          before.each { |other| require other }
          require name
        rescue LoadError, StandardError => error
          puts "error: #{error.full_message(highlight: false)}"
        ensure
          exit!(true)
        end
        writer.close
        reader.read.tap { Process.wait(pid) }
      end
      wrong = log.lines.grep(/^error|circular|#{Regexp.escape(folder)}.*warning/)
      puts "#{name}: #{wrong.first}" unless wrong.empty?
      puts "looked at #{name}"
    end
    alone, names = names.partition { |name| name.start_with?("alone:") }
    alone.each { |name| tell.call(name.delete_prefix("alone:"), []) }
    require "ringspun/jobs"
    require "active_job" # what is not there is looked for
    names.each do |name|
      room = name[%r{\Aringspun/jobs/(\w+)/}, 1]
      # A file of a room that has a file of its own is required by that, in its order.
      before = room && File.file?("#{folder}/ringspun/jobs/#{room}.rb") ? ["ringspun/jobs/#{room}"] : []
      tell.call(name, before - [name])
    end
  RUBY

  def test_no_file_is_required_while_it_is_loaded
    names = Dir["#{FOLDER}/**/*.rb"].map { |path| path.delete_prefix("#{FOLDER}/").delete_suffix(".rb") }
    names = names.grep_v(OF_RAILS).sort
    assert_empty ENTRIES - names
    child = Program.ruby(CODE, FOLDER, *ENTRIES.map { |name| "alone:#{name}" }, *names)
    assert_predicate child.wait, :success?, child.log
    looked, wrong = child.log.lines(chomp: true).partition { |line| line.start_with?("looked at") }
    assert_empty wrong.grep_v(/^\S*gems.*warning/)
    assert_equal ENTRIES.size + names.size, looked.size
  ensure
    child&.close
  end
end
