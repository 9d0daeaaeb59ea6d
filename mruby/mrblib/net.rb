# frozen_string_literal: true

module Ringspun
  class << self
    # Connects to a host, by its name or address, and a port. The addresses of a name are tried one after the other. With a block
    # the stream is closed after that.
    def connect_tcp(host, port, connect_timeout: 30, &block)
      Net.check_port("connect_tcp", port)
      stream = Net.within(connect_timeout, "connect_tcp", Net.place(host, port)) do
        Net.connect_first(machine.resolve(host), port)
      end
      block ? stream.__lend(&block) : stream
    end

    def connect_unix(path, connect_timeout: 30, &block)
      stream = Net.within(connect_timeout, "connect_unix", path) { Net.connect(path, nil) }
      block ? stream.__lend(&block) : stream
    end

    # Listens, and runs the block for each connection in a strand of its own; returns the Server at once. Without a block:
    # the listening stream, of which `accept` returns the next connection.
    def listen_tcp(host, port = nil, backlog: 1024, **options, &block)
      raise UsageError, "listen_tcp: takes a host and a port, as in listen_tcp(\"127.0.0.1\", 8080)" if port.nil?

      Net.check_port("listen_tcp", port)
      listener = Net.listen(machine.resolve(host)[0], port, backlog)
      block ? Server.new(listener, nil, **options, &block) : listener
    end

    # The same on a Unix socket. A file that is left of one on which nobody listens is replaced. A server removes its file.
    def listen_unix(path, backlog: 1024, **options, &block)
      listener = Net.listen(path, nil, backlog)
      block ? Server.new(listener, path, **options, &block) : listener
    end
  end

  # What connecting and listening share.
  module Net
    class << self
      def within(seconds, what, where, &block)
        machine.timeout(seconds, &block)
      rescue TimeoutError
        raise TimeoutError, "#{what}: no connection to #{where} within #{seconds} s"
      end

      def check_port(what, port)
        return if port.is_a?(Integer) && port >= 0 && port <= 65_535

        raise UsageError, "#{what}: expected a port, an Integer from 0 to 65535, got #{port.inspect}"
      end

      def place(host, port)
        host.to_s.include?(":") ? "[#{host}]:#{port}" : "#{host}:#{port}"
      end

      def connect_first(addresses, port)
        *others, last = addresses
        others.each do |address|
          return connect(address, port)
        rescue SystemCallError
          next
        end
        connect(last, port)
      end

      def connect(address, port)
        stream = machine.__socket(address, port)
        stream.__connect(address, port) and connected = stream
      ensure
        stream.close if stream && !connected
      end

      def listen(address, port, backlog)
        stream = machine.__socket(address, port)
        port ? stream.__bind(address, port) : bind_unix(stream, address)
        stream.__listen(backlog)
        listens = stream
      ensure
        stream.close if stream && !listens
      end

      private

      def machine = Ringspun.machine

      def bind_unix(stream, path)
        stream.__bind(path, nil)
      rescue SystemCallError => error
        raise error unless left_over?(path)

        machine.unlink(path)
        stream.__bind(path, nil)
      end

      # The file is there, and nobody listens.
      def left_over?(path)
        connect(path, nil).close
        false
      rescue SystemCallError => error
        error.errno == Stream::REFUSED
      end
    end
  end

  # Accepts connections, and runs a block for each in a strand of its own. An error in one connection ends that one, and is
  # reported to `on_error`, with the stream. One that this stream raises because its other side has gone, or has sent too much or
  # too little, is not; that of a limit which the block sets is the block's own.
  class Server
    PAUSE = 0.1

    def initialize(listener, path, on_error: nil, &block)
      @listener = listener
      @address = known_address
      @path = path
      @on_error = on_error
      @block = block
      @streams = {} # by their strands
      @strand = Ringspun.machine.spin { serve }
    end

    # Host and port, or path and nil.
    def address = @address || @listener.local_address
    def port = address[1]

    # How many connections are open.
    def connections = @streams.size

    # Accepts no more, and waits for the connections; after `within` seconds it cancels them. Returns how many were cancelled. A
    # connection that stops its own server is neither waited for nor cancelled.
    def stop(within: 10)
      @listener.close
      Ringspun.machine.timeout(within) { wait }
      0
    rescue TimeoutError
      cancel(others)
    end

    # Waits until it has ended; in a connection, for the others.
    def wait
      return end_of(@strand) unless inside?

      end_of(others.first) until others.empty?
    end

    private

    # nil: it has none, as on a simulated kernel.
    def known_address
      @listener.local_address
    rescue UnsupportedError
      nil
    end

    def inside? = @streams.key?(Ringspun.machine.__running)

    def others
      me = Ringspun.machine.__running
      @streams.keys.reject { |strand| strand.equal?(me) || strand.done? }
    end

    def end_of(strand)
      strand.await
      nil
    rescue TerminatedError
      nil
    end

    def cancel(connections)
      connections.each { |strand| Ringspun.machine.terminate(strand) }
      connections.each { |strand| end_of(strand) }
      end_of(@strand) unless inside?
      connections.size
    end

    def serve
      Ringspun.machine.scope do |scope|
        while (stream = accept)
          attend(scope, stream)
        end
      end
    ensure
      @listener.close
      @streams.each_value { |stream| stream.close } # of those that were cancelled before they began
      @streams.clear
      remove_file if @path
    end

    def remove_file
      Ringspun.machine.scope(shield: true) { Ringspun.machine.unlink(@path) }
    rescue SystemCallError
      nil # it has none, as on a simulated kernel, or others have removed it
    end

    # nil: it is closed. When descriptors run out the next ones wait in the kernel.
    def accept
      @listener.accept
    rescue ClosedError
      nil
    rescue SystemCallError
      Ringspun.machine.sleep(PAUSE)
      retry
    end

    def attend(scope, stream)
      strand = scope.spin do
        serve_one(stream)
      ensure
        @streams.delete(Ringspun.machine.__running)
        stream.close
      end
      @streams[strand] = stream
    rescue LimitError => error
      report(error, stream)
      stream.close
    end

    def serve_one(stream)
      @block.call(stream)
    rescue StandardError => error
      report(error, stream) unless stream.__peers_fault?(error)
    end

    def report(error, stream)
      return @on_error.call(error, stream) if @on_error

      Ringspun.__warn("a connection failed: #{error.class}: #{error.message}")
    rescue StandardError => another # concerns this connection, like the first
      Ringspun.__warn("on_error of a server failed: #{another.class}: #{another.message}")
    end
  end
end
