# frozen_string_literal: true

require "socket"
require_relative "program"
require_relative "../../../runtime/test/support/servers"

# A Redis that keeps each write on disk before it answers, and so may be killed at any moment and started again with all that it
# has acknowledged.
class AofRedis < Program
  START_SECONDS = 30

  # @param options [Array<String>] of redis-server
  # @param env [Hash{String => String}] its environment, beside this process's
  def initialize(*options, env: {})
    @env = env
    super(env) do |folder|
      @command = [Servers.program("redis-server"), "--port", "0", "--unixsocket", File.join(folder, "redis.sock"), "--save", "",
                  "--appendonly", "yes", "--appendfsync", "always", "--dir", folder, *options]
    end
  end

  def path = File.join(@folder, "redis.sock")
  def connect = UNIXSocket.new(path)

  # After {#kill}, as a crash: nothing is written or told any more.
  def start(env = @env, command = @command)
    @status = nil
    FileUtils.rm_f(path)
    @pid = super
    # PING is refused while the file is being read.
    return @pid if Patience.poll(START_SECONDS) { ready? || !running? } && running?

    raise "Redis does not start:\n#{log}"
  end

  def restart
    kill
    start
  end

  private

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
