# frozen_string_literal: true

module Ringspun
  module Postgres
    class Startup
      # A connection to one host, with TLS or without, on which nothing has been said yet.
      #
      # @api private
      class Transport
        # @return [Stream]
        attr_reader :stream

        # @return [Options::Host] with the address that it has come to
        attr_reader :host

        # May switch strands.
        #
        # @param encrypted [Boolean] ask for TLS
        # @param required [Boolean] go on only with it
        def self.open(options, host, encrypted:, required:)
          context = options.encryption.context if encrypted # raises before a byte is sent
          stream = connect(host)
          transport = new(options, host, stream).prepare(context, required)
        ensure
          give_up(stream) if stream && !transport
        end

        def self.connect(host)
          return Ringspun.connect_unix(host.path, connect_timeout: nil) if host.unix?

          Ringspun.connect_tcp(host.address || host.name, host.port, connect_timeout: nil)
        end
        private_class_method :connect

        # Closes it, whatever has not left.
        def self.give_up(stream)
          stream.close(timeout: 0)
        rescue Ringspun::Error, SystemCallError
          nil # why it is given up is the news
        end

        def initialize(options, host, stream)
          @options = options
          @host = host
          @stream = stream
        end

        def prepare(context, required)
          @host.unix? ? check_peer : set_up
          encrypt(context, required) if context
          self
        end

        def encrypted? = !@stream.tls.nil?

        # @return [Boolean] what is sent meets nobody on its way
        def private? = encrypted? || @host.unix?

        private

        # The stream's descriptor, for what is only a socket's to say. It remains the stream's.
        def socket = Socket.for_fd(@stream.to_io.fileno).tap { |socket| socket.autoclose = false }

        def set_up
          @host = @host.with(address: socket.remote_address.ip_address)
          Keepalive.set(socket, @options)
        end

        def check_peer
          wanted = @options["requirepeer"] or return
          uid, = socket.getpeereid
          name = Etc.getpwuid(uid)&.name
          raise ConnectError, "the server runs as #{name || uid}, and requirepeer wants #{wanted}" unless name == wanted
        end

        def encrypt(context, required)
          return shake(context) if @options.encryption.direct?

          @stream.write(Messages.ssl_request)
          case (answer = @stream.read(1))
          when "S" then shake(context)
          when "N" then raise ConnectError, "the server has no TLS, and sslmode=#{@options.encryption.mode} wants it" if required
          when "E" then raise ConnectError, "the server cannot say whether it has TLS" # what it says may be anybody's
          when nil then raise ConnectError, Failures::CLOSED
          else raise ProtocolError, "what answers is no Postgres, it said #{answer.inspect} when it was asked for TLS"
          end
        end

        def shake(context)
          @stream.start_tls(context, host: @host.name, timeout: nil)
          chosen = @stream.tls.alpn_protocol
          return if @options.encryption.speaks?(chosen)

          raise ConnectError, "the server speaks #{chosen || "nothing that it names"} in TLS (ALPN), and not postgresql"
        end
      end
    end
  end
end
