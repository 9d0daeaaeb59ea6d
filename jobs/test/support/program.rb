# frozen_string_literal: true

require "fileutils"
require "rbconfig"
require "tmpdir"
require_relative "../../../runtime/test/support/patience"

# A process with a program of its own, which tests may end and freeze as they like. It ends with this one, however that ends.
class Program
  END_SECONDS = 40

  ROOT = File.expand_path("../../..", __dir__)
  LOAD_PATH = %w[runtime/lib jobs/lib].map { |folder| "-I#{File.join(ROOT, folder)}" }.freeze

  attr_reader :pid, :status

  # Ruby with a file of its own.
  def self.ruby(code, *arguments, env: {}, bundle: true)
    # Without Bundler, where all gems are found all the same, a start takes half as long.
    env = { "RUBYOPT" => nil }.merge(env) unless bundle
    new(env) do |folder|
      file = File.join(folder, "program.rb")
      File.write(file, code)
      [RbConfig.ruby, "-w", *LOAD_PATH, file, *arguments]
    end
  end

  # The block gets a folder for files of the process's, and answers the command.
  def initialize(env = {})
    @folder = Dir.mktmpdir("ringspun-program-")
    @log = File.join(@folder, "log")
    @pid = start(env, yield(@folder))
  end

  def log = File.read(@log)

  def signal(name) = Process.kill(name, @pid)

  def running? = @status.nil? && (@status = Process.wait2(@pid, Process::WNOHANG)&.last).nil?

  # Waits for its end.
  #
  # @return [Process::Status]
  def wait
    return @status if Patience.poll(END_SECONDS, pause: 0.005) { !running? }

    kill
    raise "the program did not end:\n#{log}"
  end

  def stop
    signal(:TERM)
    wait
  end

  def kill
    signal(:KILL) if running?
    @status ||= Process.wait2(@pid).last
  end

  # Ends it, if it has not, and forgets what it has written.
  def close
    kill
    FileUtils.rm_rf(@folder)
  end

  private

  def start(env, command)
    raise "start it from the main thread: the kernel ends it with the one that did" unless Thread.current == Thread.main

    spawn(env, "setpriv", "--pdeathsig=KILL", *command, in: File::NULL, %i[out err] => @log, pgroup: true)
  end
end
