# frozen_string_literal: true

require "rbconfig"
require_relative "../../../runtime/test/support/patience"

# The executable as a process of its own, of which a test hears by what it prints.
class Command
  EXECUTABLE = File.expand_path("../../exe/ringspun-jobs", __dir__)
  LOAD_PATH = %w[../../lib ../../../runtime/lib].map { |folder| "-I#{File.expand_path(folder, __dir__)}" }.freeze
  END_SECONDS = 40

  # @return [Integer]
  attr_reader :pid

  # @return [Array<String>] what it has printed, as far as that was read
  attr_reader :lines

  # In a process group of its own, which ends with it.
  def initialize(*arguments, env: {}, chdir: Dir.pwd, program: ["-w", *LOAD_PATH, EXECUTABLE],
                 seconds: END_SECONDS)
    @seconds = seconds
    @reader, writer = IO.pipe
    @lines = []
    # Without Bundler, where all gems are found all the same, a start takes half as long.
    @pid = spawn({ "RUBYOPT" => nil, **env }, RbConfig.ruby, *program, *arguments,
                 in: File::NULL, %i[out err] => writer, pgroup: true, chdir: chdir)
  ensure
    writer.close
  end

  def signal(name, pid = @pid) = Process.kill(name, pid)

  # The next line like that.
  #
  # @return [MatchData]
  def await(pattern)
    loop do
      line = next_line or raise "no line like #{pattern.inspect}:\n#{lines.join}"
      match = line.match(pattern)
      return match if match
    end
  end

  # Until it, and all that it has forked, has ended.
  #
  # @return [Process::Status]
  def wait
    nil while next_line
    @status ||= Process.wait2(@pid).last
  end

  def finish(name = :TERM)
    signal(name)
    wait
  end

  def close
    Process.kill(:KILL, -@pid)
  rescue Errno::ESRCH
    nil
  ensure
    @status ||= Process.wait2(@pid).last
    @reader.close
  end

  private

  def next_line
    patience = Patience.new(@seconds)
    until (line = whole_line)
      ready = patience.until_true { |left| @reader.wait_readable(left) }
      raise "it says no more, and does not end:\n#{lines.join}" unless ready

      more = @reader.read_nonblock(65_536, exception: false)
      return if more.nil?

      (@text ||= +"") << more if more.is_a?(String)
    end
    @lines << line
    line
  end

  def whole_line = @text&.slice!(/\A.*\n/)
end
