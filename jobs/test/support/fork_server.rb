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
      if what == :status
        status = Process.wait2(argument, Process::WNOHANG)&.last
        pids.delete(status&.pid)
        next line.write(Marshal.dump(status && [status.exitstatus, status.to_s, status.termsig]))
      end
      log = File.open(argument[:log], "a") # before whoever asked goes on and closes its end of a pipe
      pids << fork do
        line.close
        Process.setpgid(0, 0)
        Dir.chdir(argument[:chdir])
        ENV.replace(argument[:env])
        ARGV.replace(argument[:arguments])
        $stdin.reopen(File::NULL)
        $stdout.reopen(log)
        $stderr.reopen($stdout)
        log.close
        [$stdout, $stderr].each { |io| io.sync = true }
        $VERBOSE = argument[:verbose]
        $0 = argument[:file]
        load argument[:file]
      end
      log.close
      Process.setpgid(pids.last, pids.last) rescue nil # it may have been quicker
      line.write(Marshal.dump(pids.last))
    end
    pids.each { |pid| Process.kill(:KILL, -pid) rescue nil }
  RUBY

  # How a program has ended.
  Status = Struct.new(:exitstatus, :text, :termsig) do
    def success? = exitstatus == 0 # nil: by a signal
    def signaled? = !termsig.nil?
    def to_s = text
  end

  @running = {}

  class << self
    # @param library [String] which programs of that server have
    # @param options [Hash] see #initialize
    # @return [ForkServer]
    def for(library, preload: nil, **options)
      @running[[library, preload, options, Process.pid]] ||= new(library, preload:, **options)
    end

    def stop
      @running.each { |(*, pid), server| server.stop if pid == Process.pid }
      @running.clear
    end
  end

  Minitest.after_run { stop }

  # @param preload [String, nil] a library of C that its programs have as well
  # @param env [Hash{String => String, nil}] in which it loads the library
  # @param options [Array<String>] of its Ruby
  # @param verbose [Boolean] whether its programs are warned as by -w
  def initialize(library, preload: nil, env: {}, options: Program::LOAD_PATH, verbose: true)
    @verbose = verbose
    @line, theirs = UNIXSocket.pair
    Process.wait(spawn({ **env, "LD_PRELOAD" => preload }, RbConfig.ruby, *options, "-e", CODE, library,
                       3 => theirs, in: File::NULL, pgroup: true))
    theirs.close
  end

  # Runs a file.
  #
  # @param log [String] a file for what it prints, or a pipe of this process as a file
  # @return [Integer] the process
  def run(file, arguments, env, log, chdir)
    ask(:run, { file: file, arguments: arguments, env: ENV.to_h.merge(env).compact, log: log, chdir: chdir, verbose: @verbose })
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
  # @param from [String, ForkServer] that server, or the library which it has from its beginning
  # @yieldparam folder [String] for files of the program's own
  # @yieldreturn [Array<String>] its file and its arguments
  def initialize(from, env = {}, chdir: Dir.pwd, &)
    @server = from.is_a?(ForkServer) ? from : ForkServer.for(from, preload: env["LD_PRELOAD"])
    @chdir = chdir
    super(env, &)
  end

  # (see Program.ruby)
  def self.ruby(from, code, *arguments, env: {})
    new(from, env) do |folder|
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
