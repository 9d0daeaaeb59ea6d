# frozen_string_literal: true

require "rbconfig"
require_relative "patience"

# A Ruby in a process of its own, which a test hears by what it prints.
class HeardProcess
  # Long, for a machine that is busy: when it is over, the test has failed.
  LIMIT_SECONDS = 45

  # @return [Integer]
  attr_reader :pid

  # @return [Array<String>] what it has printed, as far as that was read
  attr_reader :lines

  # In a process group of its own, which ends with it.
  #
  # @param words [Array<String>] for Ruby: options, a file, and its arguments
  # @param env [Hash{String => String, nil}]
  # @param seconds [Numeric] how long it may say nothing
  # @param descriptors [Hash{Integer => IO}] more of them
  def initialize(*words, env: {}, chdir: Dir.pwd, seconds: LIMIT_SECONDS, descriptors: {})
    @seconds = seconds
    @reader, writer = IO.pipe
    @lines = []
    @pid = start(words, env, chdir, writer, descriptors)
  ensure
    writer.close
  end

  def signal(name, pid = @pid) = Process.kill(name, pid)

  # The next line like that.
  #
  # @return [MatchData]
  def await(pattern)
    loop do
      line = next_line or raise "no line like #{pattern.inspect}:\n#{text}"
      match = line.match(pattern)
      return match if match
    end
  end

  # @return [String] all that it has printed, as far as that was read
  def text = @lines.join

  # Until it, and all that it has forked, has ended.
  #
  # @return [Process::Status]
  def wait
    nil while next_line
    @status ||= ended
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
    @status ||= ended
    @reader.close
  end

  private

  # Without Bundler, where all gems are found all the same, a start takes half as long.
  def start(words, env, chdir, writer, descriptors)
    spawn({ "RUBYOPT" => nil, **env }, RbConfig.ruby, *words, in: File::NULL, %i[out err] => writer, pgroup: true, chdir:,
                                                              **descriptors)
  end

  def ended = Process.wait2(@pid).last

  def next_line
    patience = Patience.new(@seconds)
    until (line = whole_line)
      ready = patience.until_true { |left| @reader.wait_readable(left) }
      raise "it says no more, and does not end:\n#{text}" unless ready

      more = @reader.read_nonblock(65_536, exception: false)
      return if more.nil?

      (@text ||= +"") << more if more.is_a?(String)
    end
    @lines << line
    line
  end

  def whole_line = @text&.slice!(/\A.*\n/)
end
