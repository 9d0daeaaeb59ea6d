# frozen_string_literal: true

require "socket"

# Stands between clients and a server and does to their connections what a network does: cuts them, delays them, takes what was
# sent and loses the answer. On threads, for it must not depend on what is tested.
#
#   proxy = Proxy.new { UNIXSocket.new(redis_path) }
#   RedisClient.new(url: proxy.url)
#
# The block connects to the server. Close it at the end.
class Proxy
  CHUNK = 65_536

  # A client's connection and the one to the server that belongs to it.
  Link = Struct.new(:client, :server, :swallowing) do
    # With a reset, as a firewall or a server that is killed: what is in the client's buffers is lost with it.
    def cut
      [client, server].each do |socket|
        socket.setsockopt(:SOCKET, :LINGER, [1, 0].pack("ii")) if socket.is_a?(TCPSocket)
        socket.shutdown rescue nil # wakes the thread that reads
      rescue IOError, SystemCallError
        nil
      end
    end
  end

  attr_reader :port

  def initialize(&connect)
    @connect = connect
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @lock = Mutex.new
    @links = []
    @delay = 0
    @refusing = false
    @threads = []
    @acceptor = Thread.new { accept }
  end

  def url = "redis://127.0.0.1:#{port}"

  # @return [Integer] how many connections there are
  def size = chosen.size

  # @param seconds [Numeric] that each piece takes, in both directions, from now on; what has been sent arrives even when who
  #   sent it has gone since
  def delay=(seconds)
    @lock.synchronize { @delay = seconds }
  end

  # @param flag [Boolean] whether new connections are closed at once
  def refusing=(flag)
    @lock.synchronize { @refusing = flag }
  end

  # Cuts all connections, or those for which the block is true; answers how many.
  def cut(&)
    chosen(&).each(&:cut).size
  end

  # The next answer on each connection, or on those for which the block is true, is lost, and the connection with it. Answers
  # how many.
  def swallow(&)
    chosen(&).each { |link| link.swallowing = true }.size
  end

  def close
    @lock.synchronize { @refusing = true }
    @listener.shutdown rescue nil
    cut
    @acceptor.join
    @lock.synchronize { @threads.dup }.each(&:join)
    @listener.close
  end

  private

  def chosen(&wanted)
    @lock.synchronize { wanted ? @links.select(&wanted) : @links.dup }
  end

  def accept
    loop do
      client = @listener.accept
      @lock.synchronize do
        @threads.keep_if(&:alive?)
        @threads << Thread.new(client) { |accepted| serve(accepted) }
      end
    end
  rescue IOError, SystemCallError
    nil # closed
  end

  def serve(client)
    server = (@connect.call unless @refusing)
    return unless server

    link = Link.new(client, server, false)
    @lock.synchronize { @links << link }
    link.cut if @refusing # perhaps since
    replies = Thread.new { pump(server, client) { link.swallowing } }
    pump(client, server) { false }
    replies.join
  rescue SystemCallError
    nil # the server is down
  ensure
    @lock.synchronize { @links.delete(link) }
    [client, server].compact.each(&:close)
  end

  # Until the end of `from`, which it passes on. With a true block it passes nothing any more, and both ends are cut.
  def pump(from, to)
    loop do
      piece = from.readpartial(CHUNK)
      break cut_both(from, to) if yield

      sleep @delay if @delay.positive?
      to.write(piece)
    end
  rescue IOError, SystemCallError
    nil
  ensure
    to.close_write rescue nil
  end

  def cut_both(*sockets) = Link.new(*sockets).cut
end
