# frozen_string_literal: true

require "rbconfig"
require "socket"
require_relative "program"

# A Ruby that has loaded a library and forks for each program: what takes a fresh one most of its time is done once. A program has
# the library, and nothing that an earlier one has done.
#
# It is no child of the tests' process, so no Process.wait in a test meets it, and it ends with that process, as its programs do.
class ForkServer
  CODE = <<~'RUBY'
    exit!(true) if fork
    require "socket"
    line = UNIXSocket.for_fd(3)
    require ARGV.shift
    Process.warmup
    pids = []
    until line.eof?
      what, argument = Marshal.load(line)
      answer = what == :status ? Process.wait2(argument, Process::WNOHANG)&.last : fork do
        line.close
        Process.setpgid(0, 0)
        Dir.chdir(argument[:chdir])
        ENV.replace(argument[:env])
        ARGV.replace(argument[:arguments])
        $stdin.reopen(File::NULL)
        $stdout.reopen(argument[:log], "a")
        $stderr.reopen($stdout)
        [$stdout, $stderr].each { |io| io.sync = true }
        $VERBOSE = true
        $0 = argument[:file]
        load argument[:file]
      end
      what == :status ? pids.delete(answer&.pid) : pids << answer
      line.write(Marshal.dump(answer && (what == :status ? [answer.exitstatus, answer.to_s] : answer)))
    end
    pids.each { |pid| Process.kill(:KILL, -pid) rescue nil }
  RUBY

  # How a program has ended.
  Status = Struct.new(:exitstatus, :text) do
    def success? = exitstatus == 0 # nil: by a signal
    def to_s = text
  end

  @running = {}

  class << self
    # @param library [String] which programs of that server have
    # @return [ForkServer]
    def for(library) = @running[[library, Process.pid]] ||= new(library)

    def stop
      @running.each { |(_, pid), server| server.stop if pid == Process.pid }
      @running.clear
    end
  end

  Minitest.after_run { stop }

  def initialize(library)
    @line, theirs = UNIXSocket.pair
    Process.wait(spawn(RbConfig.ruby, *Program::LOAD_PATH, "-e", CODE, library, 3 => theirs, in: File::NULL, pgroup: true))
    theirs.close
  end

  # Runs a file.
  #
  # @return [Integer] the process
  def run(file, arguments, env, log, chdir)
    ask(:run, { file: file, arguments: arguments, env: ENV.to_h.merge(env), log: log, chdir: chdir })
  end

  # @return [Status, nil] nil: it runs
  def status(pid) = ask(:status, pid)&.then { |ended| Status.new(*ended) }

  def stop = @line.close

  private

  def ask(*request)
    @line.write(Marshal.dump(request))
    Marshal.load(@line)
  end
end

# A program of such a server.
class ForkedProgram < Program
  # @param library [String] that it has from its beginning
  # @yieldparam folder [String] for files of the program's own
  # @yieldreturn [Array<String>] its file and its arguments
  def initialize(library, env = {}, chdir: Dir.pwd, &)
    @server = ForkServer.for(library)
    @chdir = chdir
    super(env, &)
  end

  # (see Program.ruby)
  def self.ruby(library, code, *arguments, env: {})
    new(library, env) do |folder|
      file = File.join(folder, "program.rb")
      File.write(file, code)
      [file, *arguments]
    end
  end

  def running? = @status.nil? && (@status = @server.status(@pid)).nil?

  def kill
    return unless running?

    signal(:KILL)
    sleep 0.001 while running?
  end

  private

  def start(env, command)
    file, *arguments = command
    File.write(@log, "")
    @server.run(file, arguments, env, @log, @chdir)
  end
end
