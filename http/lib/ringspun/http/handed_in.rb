# frozen_string_literal: true

require "socket"

module Ringspun
  module HTTP
    # The listening sockets that systemd, or who does as it does, has opened for this process:
    # https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html
    #
    # @api private
    class HandedIn
      # The first of their descriptors, SD_LISTEN_FDS_START.
      FIRST = 3
      private_constant :FIRST

      class << self
        # Those of this process, which no child is to take for its own. They are the same each time.
        #
        # @return [HandedIn]
        # @raise [UsageError] what was handed in is not what is told of it
        def take = @taken ||= new(ENV).tap { %w[LISTEN_PID LISTEN_FDS LISTEN_FDNAMES].each { |name| ENV.delete(name) } }
      end

      # @return [String] what the environment has told, for errors
      attr_reader :told

      # @param environment [#[]]
      # @param first [Integer] the first descriptor
      def initialize(environment, first: FIRST)
        @told = %w[LISTEN_PID LISTEN_FDS LISTEN_FDNAMES].map { |name| "#{name}=#{environment[name].inspect}" }.join(" ")
        count = environment["LISTEN_PID"] == Process.pid.to_s ? count_of(environment["LISTEN_FDS"]) : 0
        names = environment["LISTEN_FDNAMES"].to_s.split(":", -1)
        @sockets = Array.new(count) { |at| [names[at].to_s, socket_of(first + at)] }
      end

      # @return [Array<Socket>] those of that name; "": all
      def named(name) = @sockets.select { |its, _| name.empty? || its == name }.map(&:last)

      # @return [Boolean]
      def any? = @sockets.any?

      # @return [Socket, nil] the one that listens there
      def at(host, port)
        find { |address| address.ip? && address.ip_port == port && address.ip_address == numeric(host) }
      end

      # @return [Socket, nil]
      def at_path(path) = find { |address| address.unix? && address.unix_path == path }

      private

      def find = @sockets.map(&:last).find { |socket| yield socket.local_address }

      def numeric(host) = IPSocket.getaddress(host)

      def count_of(text)
        return Integer(text, 10) if text&.match?(/\A\d{1,4}\z/)

        raise UsageError, "LISTEN_FDS must be the number of sockets that were handed in: #{@told}"
      end

      def socket_of(descriptor)
        socket = ::Socket.for_fd(descriptor)
        unless socket.getsockopt(:SOCKET, :TYPE).int == ::Socket::SOCK_STREAM && socket.getsockopt(:SOCKET, :ACCEPTCONN).bool
          socket.autoclose = false
          raise UsageError, "descriptor #{descriptor}, which was handed in, is no stream socket that listens; its unit needs " \
                            "ListenStream= and Accept=no"
        end

        socket.close_on_exec = true
        socket
      rescue Errno::EBADF, Errno::ENOTSOCK => error
        raise UsageError, "descriptor #{descriptor}, which LISTEN_FDS tells of, is no socket (#{error.message}): #{@told}"
      end
    end
    private_constant :HandedIn
  end
end
