# frozen_string_literal: true

require "io/nonblock"
require "socket"
require_relative "../socket_file"

module Ringspun
  module Cluster
    # The listening sockets that all workers share. The parent keeps them open, so that connections in their backlogs survive
    # when workers die.
    #
    # @api private
    class Sockets
      BACKLOG_MAX = (2**31) - 1 # of listen(2), where the kernel has a lower one of its own
      private_constant :BACKLOG_MAX

      # @return [Hash{Object => Addrinfo}]
      attr_reader :addresses

      def self.open(listen, backlog, mode)
        sockets = new(listen, backlog, mode)
        yield sockets
      ensure
        sockets&.close
      end

      def initialize(listen, backlog, mode)
        @backlog = backlog
        @mode = mode
        @files = []
        @sockets = {}
        @taken = []
        unless backlog.is_a?(Integer) && backlog.between?(1, BACKLOG_MAX)
          raise UsageError, "backlog: must be a positive number of connections, up to #{BACKLOG_MAX}, got #{backlog.inspect}"
        end

        places_of(listen).each { |name, place| @sockets[name] = listen_at(place) }
        @addresses = @sockets.transform_values(&:local_address) # also known after a worker's server has closed the socket
      ensure
        close unless @addresses
      end

      def names = @sockets.keys

      def all_taken? = @taken.size == @sockets.size

      def address(name) = @addresses[name_of(name)]

      # The descriptor, which from now on belongs to the worker's server.
      def take(name)
        name = name_of(name)
        raise UsageError, "the socket #{name.inspect} is served already" if @taken.include?(name)

        @taken << name
        @sockets[name].autoclose = false
        @sockets[name].fileno
      end

      def close
        @sockets.each_value(&:close)
        @files.each(&:remove).clear
      end

      private

      # nil is the name of the only socket.
      def name_of(name)
        return name if @sockets.key?(name)
        return names.first if name.nil? && names.size == 1

        raise UsageError, "there is no socket; name its place in Cluster.run(listen: ...)" if names.empty?

        raise UsageError, "there is no socket #{name.inspect}; those of Cluster.run(listen: ...) are #{names.inspect}"
      end

      def places_of(listen)
        case listen
        when nil then {}
        when Hash then listen
        else { nil => listen }
        end
      end

      def listen_at(place)
        case place
        in String => path then Net.naming("listen on", Net.place(path)) { open_unix(path) }
        in [String => host, Integer | String => port]
          Net.naming("listen on", Net.place(host, port)) { open_tcp(host, port) }
        in ::BasicSocket => socket then adopt(socket)
        else
          raise UsageError, "listen: takes [host, port], the path of a Unix socket, a Socket that listens, or a Hash of names " \
                            "and these, got #{place.inspect}"
        end
      end

      # One that somebody else has opened, such as systemd. Its file is theirs as well.
      def adopt(socket)
        unless socket.getsockopt(:SOCKET, :ACCEPTCONN).bool
          raise UsageError, "listen: the socket at #{socket.local_address.inspect_sockaddr} does not listen; call listen on it"
        end

        socket.nonblock = true
        socket
      end

      def open_tcp(host, port)
        address = Addrinfo.getaddrinfo(host, port, nil, :STREAM, nil, ::Socket::AI_PASSIVE).first
        listening(address) do |socket|
          socket.setsockopt(::Socket::SOL_SOCKET, ::Socket::SO_REUSEADDR, true)
          socket.bind(address)
        end
      end

      def open_unix(path)
        address = Net.unix_address(path, "listen")
        listening(address) do |socket|
          bind_unix(socket, address)
          @files << SocketFile.new(path)
          File.chmod(@mode, path) if @mode
        end
      end

      # Nonblocking, since several processes accept: one that finds the backlog empty must get EAGAIN and not block in accept(2).
      def listening(address)
        socket = ::Socket.new(address.afamily, :STREAM)
        yield socket
        socket.listen(@backlog)
        socket.nonblock = true
        listens = socket
      ensure
        socket&.close unless listens
      end

      # A socket file on which no process listens is replaced: connect(2) then fails with ECONNREFUSED, see unix(7).
      def bind_unix(socket, address)
        socket.bind(address)
      rescue Errno::EADDRINUSE
        raise unless File.socket?(address.unix_path) && left_over?(address)

        File.unlink(address.unix_path)
        socket.bind(address)
      end

      def left_over?(address)
        address.connect(&:close)
        false
      rescue Errno::ECONNREFUSED
        true
      end
    end
  end
end
