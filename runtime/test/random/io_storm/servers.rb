# frozen_string_literal: true

module IOStorm
  # Takes connections until its listener is closed, and hands them to strands that are left alone.
  class Acceptor < Role
    def initialize(round, listener, &serve)
      super(round)
      @listener = listener
      @serve = serve
    end

    private

    def step
      return @done = true if @listener.closed?

      disturbed { pick(2).zero? ? accept_many : @serve.call(@machine.accept(@listener.io)) }
    rescue Ringspun::ClosedError
      @done = true
    end

    # A block that breaks forgets the connections that were accepted ahead.
    def accept_many
      left = 1 + pick(5)
      ahead = [0, 1, 16][pick(3)]
      @machine.accept_each(@listener.io, ahead:) do |connection|
        @serve.call(connection)
        break if ahead.zero? && (left -= 1).zero?
      end
    end
  end

  # Connects until so many connections have answered.
  class Client < Role
    def initialize(round, family, address, count)
      super(round)
      @family, @address, @left = family, address, count
    end

    private

    def step
      @socket&.close
      return @done = true if @left.zero?

      @socket = @round.end_of(@machine.socket(@family, :STREAM))
      disturbed { @machine.connect(@socket.io, @address) }
      disturbed { exchange }
    rescue Errno::ENOTCONN # the wait for it was ended
      nil
    end

    # Nobody may forget a connection: an answer comes, however long it takes.
    def exchange
      size = 1 + pick(30_000)
      message = [size].pack("N") + Pattern.at(size, size)
      return if @machine.write(@socket.io, message) < message.bytesize

      answer = +""
      until answer.bytesize == size
        count = @machine.read(@socket.io, answer, size - answer.bytesize, answer.bytesize)
        return @round.complain("the answer has ended after #{answer.bytesize} of #{size} bytes") if count.zero?
      end
      @left -= 1
      @round.complain("the answer is wrong") unless Pattern.at?(size, answer)
    end
  end

  # Echoes, and goes when its clients have what they want.
  class Server < Scene
    GONE = [Errno::EPIPE, Errno::ECONNRESET].freeze

    def play
      make_listener
      @machine.scope do |scope|
        serve = ->(connection) { @round.end_of(connection).then { |each| scope.spin { echo(each) } } }
        (1 + pick(3)).times { scope.spin { @round.act(Acceptor.new(@round, @listener, &serve)) } }
        clients = Array.new(1 + pick(6)) { Client.new(@round, @family, @address, 1 + pick(4)) }
        @round.act_all(*clients)
        @listener.close
      end
      @round.forget(@listener)
    end

    private

    def make_listener
      @family = %i[UNIX INET][pick(2)]
      socket = @machine.socket(@family, :STREAM)
      @listener = @round.end_of(socket)
      wanted = @family == :UNIX ? Addrinfo.unix("\0ringspun-storm-#{Process.pid}-#{object_id}") : Addrinfo.tcp("127.0.0.1", 0)
      @machine.bind(socket, wanted)
      @machine.listen(socket, 1 + pick(4))
      @address = Socket.for_fd(socket).tap { |each| each.autoclose = false }.local_address
    end

    def echo(connection)
      request = +""
      until request.bytesize >= 4 && request.bytesize >= 4 + request.unpack1("N")
        return if @machine.recv(connection.io, part = +"").zero?

        request << part
      end
      @machine.send(connection.io, request.byteslice(4..))
    rescue *GONE
      nil
    ensure
      connection.close
      @round.forget(connection)
    end
  end
end
