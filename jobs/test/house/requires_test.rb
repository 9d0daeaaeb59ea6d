# frozen_string_literal: true

require "jobs_helper"
require "support/program"

# inputs: {runtime,jobs}/lib, Gemfile.lock

# What Ruby warns of where files require each other. What programs require has a process of its own, which has nothing before. So
# has each room; its other files are required one by one after the file that has its name.
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
    folder, *alone = ARGV.first(ARGV.index("--"))
    $stdout.sync = true
    tell = lambda do |names|
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        [$stdout, $stderr].each { |io| io.reopen(writer) }
        names.each do |name|
          begin
            require name
          rescue Ringspun::Jobs::ConfigError => error
            raise unless error.message.include?("for which ringspun/jobs/sidekiq stands in") # what such a file is for
          end
          puts "looked at #{name}"
        end
      rescue LoadError, StandardError => error
        puts "error: #{error.full_message(highlight: false)}"
      ensure
        exit!(true)
      end
      writer.close
      puts reader.read.lines.grep(/^error|^looked|circular|#{Regexp.escape(folder)}.*warning/)
      Process.wait(pid)
    end
    alone.each { |name| tell.call([name]) }
    require "ringspun/jobs"
    require "active_job" # what is not there is looked for
    ARGV.drop(ARGV.index("--") + 1).group_by { |name| name[%r{\Aringspun/jobs/\w+}].to_s }.each do |room, names|
      tell.call(File.file?("#{folder}/#{room}.rb") ? [room, *(names - [room])] : names)
    end
  RUBY

  def test_no_file_is_required_while_it_is_loaded
    names = Dir["#{FOLDER}/**/*.rb"].map { |path| path.delete_prefix("#{FOLDER}/").delete_suffix(".rb") }
    names = names.grep_v(OF_RAILS).sort
    assert_empty ENTRIES - names
    child = Program.ruby(CODE, FOLDER, *ENTRIES, "--", *names)
    assert_predicate child.wait, :success?, child.log
    looked, wrong = child.log.lines(chomp: true).partition { |line| line.start_with?("looked at") }
    assert_empty wrong
    assert_equal (ENTRIES + names).sort, looked.map { |line| line.delete_prefix("looked at ") }.sort
  ensure
    child&.close
  end
end
