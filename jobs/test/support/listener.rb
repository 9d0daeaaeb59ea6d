# frozen_string_literal: true

require "socket"

# Listens on loopback, with a thread for each connection, which the including class serves by #serve.
module Listener
  attr_reader :port

  def listen
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @threads = [Thread.new { loop { @threads << Thread.new(@listener.accept) { |client| serve(client) } } }]
  end

  def close
    @threads.shift.kill.join
    @threads.each(&:join)
    @listener.close
  end
end
