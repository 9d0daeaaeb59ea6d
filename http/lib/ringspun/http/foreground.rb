# frozen_string_literal: true

module Ringspun
  module HTTP
    # A server in the process that starts it, until that is told to end: what `rackup -s ringspun` and
    # `bin/rails server -u ringspun` run unless more is said. INT, TERM and HUP end it once the requests that there are have been
    # answered; the second one ends it at once. USR2, or a touch of the {RestartFile}, starts it anew.
    #
    # @api private
    class Foreground
      ENDS = "e"
      STARTS_ANEW = "r"
      private_constant :ENDS, :STARTS_ANEW

      # @param app [#call]
      # @param host [String] `localhost` is both 127.0.0.1 and ::1, where there is one
      # @param port [Integer] 0: a free one
      # @param restart [String, nil] the command that starts it anew; nil: it is never
      # @param out [IO, nil] is told where it listens
      # @param errors [#puts]
      def initialize(app, host:, port:, restart: nil, out: nil, errors: $stderr)
        @app = app
        @hosts = host == "localhost" ? ["127.0.0.1", "::1"] : [host]
        @port = port
        @restart = restart
        @out = out
        @errors = errors
        @told, @tell = IO.pipe
      end

      # May switch strands.
      #
      # @yieldparam server [Server] once it listens
      # @return [nil] when all connections have ended
      # @raise [SystemCallError, SocketError, UsageError]
      def run
        word = with_signals { ::Ringspun.run { |machine| serve_to_the_end(machine) { |server| yield server if block_given? } } }
        exec(@restart) if word == STARTS_ANEW
        nil
      ensure
        [@told, @tell].each(&:close)
      end

      # May be called by a handler of a signal.
      #
      # @return [nil]
      def stop(word = ENDS)
        @tell.write_nonblock(word, exception: false)
        nil
      end

      private

      # What requests have spun, and that goes on without them, is of the inner run, and cancelled.
      def serve_to_the_end(machine, &)
        word = nil
        machine.scope do |scope|
          ::Ringspun.run do
            word = serve(machine, &)
            scope.cancel
          end
        end
        word
      end

      def serve(machine)
        servers = listen(Serving.new(errors: @errors, limits: {}).begin(@app).reception(nil, {}))
        watch = RestartFile.watch(machine, @errors) { stop(STARTS_ANEW) } if @restart
        say(servers)
        yield servers.first
        word = hear(machine)
        drain(machine, servers)
        word
      ensure
        watch&.terminate
      end

      def listen(reception)
        port = @port
        @hosts.filter_map.with_index do |host, index|
          server = ::Ringspun.listen_tcp(host, port, **reception.options) { |stream| reception.call(stream) }
          port = server.port
          server
        rescue Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT
          raise if index.zero?
        end
      end

      # At once, also where it is read by another program.
      def say(servers)
        return unless @out

        telling = Telling.new(@out)
        servers.each { |server| telling.say("* Listening on http://#{server.address.inspect_sockaddr}") }
      end

      def hear(machine)
        word = +""
        machine.read(@told.fileno, word, 1)
        word
      end

      # The second word ends what has not ended.
      def drain(machine, servers)
        again = machine.spin do
          hear(machine)
          servers.each { |server| server.stop(within: 0) }
        end
        servers.map { |server| machine.spin { server.stop } }.each(&:join)
      ensure
        again&.terminate
      end

      # INT is the business of rackup, which calls `shutdown`.
      def with_signals
        words = { "TERM" => ENDS, "HUP" => ENDS }
        words["USR2"] = STARTS_ANEW if @restart
        before = words.to_h { |name, word| [name, trap(name) { stop(word) }] }
        trap("HUP", "IGNORE") if before["HUP"] == "IGNORE" # as nohup(1) wants it
        yield
      ensure
        before&.each { |name, handler| trap(name, handler || "SYSTEM_DEFAULT") }
      end
    end
    private_constant :Foreground
  end
end
