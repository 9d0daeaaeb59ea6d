# frozen_string_literal: true

require "fileutils"
require "socket"
require "tmpdir"
require_relative "../../../runtime/test/support/patience"
require_relative "../../../runtime/test/support/servers"

# A Redis that keeps each write on disk before it answers, and so may be killed at any moment and started again with all that it
# has acknowledged. It ends with this process, however that ends.
class AofRedis
  START_SECONDS = 30

  attr_reader :pid

  # @param options [Array<String>] of redis-server
  def initialize(*options)
    @folder = Dir.mktmpdir("ringspun-aof-")
    @options = options
    start
  end

  def path = File.join(@folder, "redis.sock")
  def connect = UNIXSocket.new(path)

  def start
    # The kernel kills it with the thread that has started it.
    raise "start it from the main thread" unless Thread.current == Thread.main

    FileUtils.rm_f(path)
    @pid = spawn("setpriv", "--pdeathsig=KILL", Servers.program("redis-server"), "--port", "0", "--unixsocket", path,
                 "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", @folder,
                 "--logfile", File.join(@folder, "log"), *@options, in: File::NULL, %i[out err] => File::NULL, pgroup: true)
    wait_until_ready
  end

  # As a crash: nothing is written or told any more.
  def kill
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @pid = nil
  end

  def restart
    kill
    start
  end

  def close
    kill if @pid
    FileUtils.rm_rf(@folder)
  end

  private

  # PING is refused while the file is being read.
  def wait_until_ready
    patience = Patience.new(START_SECONDS)
    until ready?
      late = patience.over?
      raise "Redis does not start:\n#{File.read(File.join(@folder, "log"))}" if late || Process.wait(@pid, Process::WNOHANG)

      sleep 0.01
    end
  end

  def ready?
    socket = connect
    socket.write("PING\r\n")
    socket.gets == "+PONG\r\n"
  rescue SystemCallError
    false
  ensure
    socket&.close
  end
end
