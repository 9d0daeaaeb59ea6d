# frozen_string_literal: true

require "socket"

# Stands between clients and a server, and does to each exchange of a request and its answer what a script says next. Nothing
# depends on a clock: what is slow waits at a gate. On threads, for it must not depend on what is tested.
#
#   proxy = ScriptedProxy.new(path) { UNIXSocket.new(redis_path) }
#   proxy.script([:lose], [:hold])
#
# The verdicts, each of one exchange; after the last one all pass:
#
# - :pass
# - :refuse, the connection, if it is new, or else as :cut
# - :cut, before the server has the request; :tear, when it has that part of it (0.0 to 1.0)
# - :lose, when the server has answered; :tear_answer, when the client has that part of the answer
# - :hold, until the gate is opened, before the server has the request; :hold_answer, after it has answered
# - :late, until the client has gone, and then the server gets the request
# - :call, a block that is called first; then all passes
class ScriptedProxy
  CHUNK = 65_536

  # @return [String] of its socket
  attr_reader :path

  # @param path [String] of its socket
  # @param held [#call] is called when an exchange begins to wait at the gate
  # @yieldreturn [BasicSocket] a connection to the server
  def initialize(path, held: -> {}, &connect)
    @path = path
    @on_held = held
    @connect = connect
    @lock = Mutex.new
    @links = {}
    @threads = []
    reset
    @listener = UNIXServer.new(path)
    @acceptor = Thread.new { accept }
  end

  # Passes everything from now on.
  def reset
    @lock.synchronize do
      @script = []
      @gate = Thread::Queue.new
      @held = 0
      @holds = true
      @refusing = false
    end
  end

  # @param verdicts [Array<Array>] for the exchanges that come
  def script(*verdicts) = @lock.synchronize { @script.concat(verdicts) }

  # @return [Integer] how many exchanges wait at the gate
  def held = @lock.synchronize { @held }

  # Opens the gate for those that wait at it.
  def release
    gate = @lock.synchronize do
      @held = 0
      @gate.tap { @gate = Thread::Queue.new }
    end
    gate.close
  end

  # Opens the gate for good, until the next {#reset}.
  def hold_no_more
    @lock.synchronize { @holds = false }
    release
  end

  # @param flag [Boolean] whether new connections are closed at once
  def refusing=(flag)
    @lock.synchronize { @refusing = flag }
  end

  # Cuts all connections.
  def cut = @lock.synchronize { @links.keys }.each { |client| hang_up(client) }

  # Waits until the server has done all that it was sent, on connections that their clients have closed.
  def drain = @lock.synchronize { @threads.dup }.each(&:join)

  def close
    hold_no_more
    self.refusing = true
    @listener.close
    @acceptor.join
    cut
    drain
    File.unlink(@path)
  end

  private

  def accept
    loop do
      client = @listener.accept
      @lock.synchronize do
        @threads.keep_if(&:alive?)
        @threads << Thread.new { serve(client) }
        @links[client] = true
      end
    end
  rescue IOError, SystemCallError
    nil # closed
  end

  def serve(client)
    server = @connect.call unless refused?
    pass(client, server) if server
  rescue IOError, SystemCallError
    nil # the client has gone
  ensure
    finish(server) if server
    @lock.synchronize { @links.delete(client) }
    client.close
  end

  def refused? = @lock.synchronize { @refusing || (@script.first&.first == :refuse && @script.shift) }

  def pass(client, server)
    verdict = argument = nil # of the exchange that is under way
    loop do
      ready, = IO.select([client, server])
      if ready.include?(client)
        piece = client.readpartial(CHUNK)
        verdict, argument = next_verdict unless verdict
        return unless request(verdict, argument, piece, client, server)
      else
        return unless answer(verdict, argument, server.readpartial(CHUNK), client)

        verdict = nil
      end
    end
  end

  def next_verdict = @lock.synchronize { @script.shift || [:pass] }

  # @return [Boolean] whether the connection stays
  def request(verdict, argument, piece, client, server)
    case verdict
    when :cut, :refuse then return false
    when :tear
      server.write(piece.byteslice(0, (piece.bytesize * argument).floor))
      return false
    when :hold then wait
    when :late then client.wait_readable
    when :call then argument.call
    end
    server.write(piece)
  end

  # (see #request)
  def answer(verdict, argument, piece, client)
    case verdict
    when :lose then return false
    when :tear_answer
      client.write(piece.byteslice(0, ((piece.bytesize - 1) * argument).floor))
      return false
    when :hold_answer then wait
    end
    client.write(piece)
  end

  def wait
    gate = @lock.synchronize do
      return unless @holds

      @held += 1
      @gate
    end
    @on_held.call
    gate.pop
  end

  # A server has done what it was sent when it closes as well.
  def finish(server)
    server.close_write
    server.readpartial(CHUNK) while true
  rescue IOError, SystemCallError
    nil
  ensure
    server.close
  end

  def hang_up(client)
    client.shutdown
  rescue IOError, SystemCallError
    nil # it has gone
  end
end
