# frozen_string_literal: true

require "socket"

# Stands between clients and the server at a Unix socket, as strands of a run. It cuts each connection after some bytes, by a
# Random, until it is told to leave them whole.
class CutProxy
  BYTES_MAX = 20_000

  # Of a connection that has hardly begun.
  FEW_BYTES = 1000

  def initialize(path, random)
    @path = path
    @random = random
    @cutting = true
    @server = Ringspun.listen_tcp("127.0.0.1", 0, first_byte: nil) { |client| serve(client) }
    @cuts = 0
  end

  # @return [Integer] connections that were cut
  attr_reader :cuts

  def port = @server.port
  def stop_cutting = @cutting = false
  def close = @server.stop(within: 0)

  private

  def serve(client)
    there, back = Array.new(2) { bytes if @cutting }
    hard = @random.rand(2).zero?
    server = Ringspun.connect_unix(@path)
    Ringspun.scope do |scope|
      answers = scope.spin { pump(server, client, back) }
      pump(client, server, there)
      answers.await
    end
  rescue Ringspun::Error, SystemCallError
    reset(client) if hard
  ensure
    [client, server].compact.each { |stream| drop(stream) }
  end

  def bytes = @random.rand(@random.rand(5).zero? ? FEW_BYTES : BYTES_MAX)

  # The close that follows.
  def reset(stream)
    socket = BasicSocket.for_fd(stream.to_io.fileno)
    socket.autoclose = false
    socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii"))
  end

  Cut = Class.new(Ringspun::Error)
  private_constant :Cut

  # In the midst of what is on its way.
  def pump(from, into, left)
    while (bytes = from.read_partial(65_536))
      into.write(left ? bytes.byteslice(0, left) : bytes)
      into.flush
      next unless left

      left -= bytes.bytesize
      raise Cut if left <= 0 && @cuts += 1
    end
    into.close_write
  end

  def drop(stream)
    stream.close(timeout: 0)
  rescue Ringspun::Error, SystemCallError
    nil # not all has left
  end
end
