# frozen_string_literal: true

module Ringspun
  module HTTP
    # Serves the connections of clients: for each it receives requests, calls the program, and sends what that answers.
    #
    # @api private
    class Service
      # The bytes of a body that are read and dropped for the next request's sake, where the program has not read them.
      DROPPED_BYTES = 65_536
      # Seconds for a client to take an answer before it is done with what it sends, which nobody reads any more.
      LINGER_SECONDS = 2
      # The number of entries that an env may get without being made larger. One more, and each would take twice the memory.
      ENV_ROOM = 63
      # Seconds for which a connection keeps its strand while it waits for its next request. To end and begin one takes the time
      # of some hundred waits, and its stack is memory that the next connection could have.
      PATIENCE = 1.0
      # The number of connections that may wait so at once. Each of them has 20 KB more than one without a strand.
      PATIENT = 1024
      TEXT = { "content-type" => "text/plain" }.freeze
      BUSY = TEXT.merge("retry-after" => "1").freeze
      private_constant :DROPPED_BYTES, :LINGER_SECONDS, :ENV_ROOM, :PATIENCE, :PATIENT, :TEXT, :BUSY

      # An address of IPv6 is a name only in brackets: https://www.rfc-editor.org/rfc/rfc3986#section-3.2.2
      #
      # @param host [String] an address or a name
      # @return [String]
      def self.named(host) = host.include?(":") ? "[#{host}]" : host

      # @return [Drain] what is open
      attr_reader :drain

      # @return [Integer] requests that are being answered
      attr_reader :requests

      # @param app [#call]
      # @param errors [#puts, #write, #flush] `rack.errors`
      # @param limits [Hash] see {HTTP.listen}
      # @param request_timeout [Numeric, #call, nil] see {HTTP.listen}
      # @param max_requests [Integer, nil] see {HTTP.listen}
      # @param early_hints [Boolean] see {HTTP.listen}
      # @param watchers [Array<#began, #ended>] those who look on, see {Exchange}
      # @param has_turns [Boolean] whether requests wait for each other in the program, and so come with all of their body
      def initialize(app, errors:, limits:, request_timeout: nil, max_requests: nil, early_hints: false, watchers: [],
                     has_turns: false)
        raise UsageError, "a program for Rack must respond to call, got #{app.class}" unless app.respond_to?(:call)

        @app = app
        @errors = errors
        @telling = Telling.new(errors)
        @limits = Limits.of(limits)
        @deadlines = request_timeout && Deadlines.new(request_timeout)
        @max_requests = Limits.requests(max_requests)
        @spools = has_turns || !max_requests.nil?
        @early_hints = early_hints
        @watchers = watchers
        @drain = Drain.new(@limits[:leaving])
        @no_input = NoInput.new
        Failure.here
        @requests = 0
      end

      # @return [Hash{Symbol => Object}] for {Server#initialize}: the first byte is waited for here
      def server_options = { first_byte: nil, on_stop: @drain }

      # Serves a connection to its end, or until it has waited for its next request for so long that it is to give up its strand.
      #
      # May switch strands.
      #
      # @param stream [Stream]
      # @param told [Hash{String => String}] what a proxy has told of the connection, in place of what is known of it here
      # @param due [Float, nil] when the wait for the next request is over, where it has begun before; on the machine's clock
      # @param leaves [Boolean] whether it may give up its strand
      # @return [Float, nil] when that wait is over; nil: the connection has come to its end
      def call(stream, told = {}, due = nil, leaves: false)
        base = base(stream).update(told)
        connection = Connection.new(stream, base, @limits)
        base["rack.hijack"] = hijack = Hijack.new(connection, stream, @drain)
        base["rack.early_hints"] = connection.method(:early_hints) if @early_hints
        exchange = Machine.current.running.name = hijack.exchange = Exchange.new(connection, base, hijack, @watchers, @telling)
        @drain.enter(connection, stream)
        connection.due = @drain.within(due) if due
        return @drain.within(connection.due) if attend(connection, stream, hijack, exchange, leaves)

        hijack.wait
        return if stream.closed? || hijack.taken?

        connection.flush # a client that reads slowly has more time than a close would give it
        linger(stream) if connection.unread?
      rescue GoneError
        nil
      ensure
        reset(stream) if connection&.endless?
        @drain.leave(connection)
      end

      private

      # @return [Boolean] whether it waits for its next request
      def attend(connection, stream, hijack, exchange, leaves)
        while (env = connection.receive(patience_of(leaves)))
          exchange.of(env) { serve(connection, stream, env, hijack) }
          env = nil # a connection that waits for its next request keeps nothing of the last
          return false unless goes_on?(connection)
        end
        env == false
      rescue RequestError => error
        exchange.refused(error) if refuse(connection, error)
        false
      end

      # @return [Float, nil] seconds for which a wait for a request has its strand; nil: as long as it takes
      def patience_of(leaves)
        return if !leaves || @drain.begun?

        @drain.size - @requests > PATIENT ? 0.0 : PATIENCE
      end

      # A client that sends its body slowly is none of those that may be served at once. One that waits to be told to send it is
      # refused before that.
      def serve(connection, stream, env, hijack)
        finished = env["rack.response_finished"] = []
        input = prepare(connection, env) unless full? && connection.expects?
        full? ? turn_away(connection, env) : serve_in_place(connection, stream, env, hijack, input, finished)
        done = true
      rescue RequestError, SpoolError => error # its body
        settle(connection, stream, note(env, error))
      rescue Exception => error
        raise
      ensure
        input.close unless input.nil? || input.is_a?(StringIO) # who has kept it must not read the next request's body
        abandon(connection, stream, env, hijack, finished, error) if !done && Failure.ends_strand?(error)
      end

      def full? = @requests >= @max_requests

      def serve_in_place(connection, stream, env, hijack, input, finished)
        @requests += 1
        failed = answer(connection, stream, env, hijack, input, finished)
        conclude(connection, stream, env, hijack, finished, failed) if failed
      ensure
        @requests -= 1
      end

      # Its strand ends before it has an answer: it was terminated or killed, or the program has raised what a strand ends by.
      # Other waits of such a strand are refused, so these have a shield.
      #
      # @param error [Exception, nil] nil: it was killed
      def abandon(connection, stream, env, hijack, finished, error)
        error = note(env, error || TerminatedError.new("the strand of the request was killed"))
        Ringspun.shield(deadline: LINGER_SECONDS) { cut(connection, stream, env, hijack, error) }
      rescue Failure => failed # as where the client has gone, or takes nothing
        @telling.puts(Failure.text_of(failed)) unless failed.is_a?(TimeoutError) || clients_fault?(stream, failed)
      ensure
        finish(finished, env, nil, nil, error)
      end

      # One that the server itself ends has no 500: a proxy may give the request to another server where there is no answer. All
      # of them may end at once, so each is told in one line.
      def cut(connection, stream, env, hijack, error)
        stops = @drain.begun?
        reason = stops ? "the server has stopped" : "its strand has ended, #{Failure.text_of(error).lines.first.chomp}"
        @telling.puts("#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]} has no whole answer: #{reason}")
        return hijack.close if hijack.taken? # nobody may be left who would

        connection.last!
        fail(connection, stream, 500, TEXT, "Internal Server Error\n") unless stops
      end

      # @return [Array(Integer, Hash, Exception), nil] what the program has answered, and what has kept it from being sent; nil:
      #   it was sent
      def answer(connection, stream, env, hijack, input, finished)
        return attempt(connection, stream, env, hijack, input, finished) unless @deadlines

        @deadlines.within(env) { attempt(connection, stream, env, hijack, input, finished) }
      end

      def attempt(connection, stream, env, hijack, input, finished)
        status, headers, body = @app.call(env)
        if hijack.taken? then drop_answer(body)
        elsif plain?(status, headers, body) then connection.answer(status, headers, body)
        else
          Reply.new(connection, stream, env, input, @limits[:write]).send(status, headers, body)
        end
        finish(finished, env, status, headers, nil) unless finished.empty?
      rescue Failure => error
        [status, headers, error]
      end

      def conclude(connection, stream, env, hijack, finished, failed)
        error = note(env, failed.last)
        failed = [nil, nil, error] unless connection.answering? # nobody gets what the program has answered
        return settle(connection, stream, error) unless hijack.taken?

        @telling.puts(Failure.text_of(error))
        hijack.close # nobody may be left who would
      ensure
        finish(finished, env, *failed)
      end

      # @return [Input, StringIO, File, NoInput]
      def prepare(connection, env)
        left = connection.left
        env.delete("rack.early_hints") if @early_hints && env["SERVER_PROTOCOL"] == "HTTP/1.0"
        env["ringspun.trailers"] = connection.method(:trailers) if left.nil?
        env["rack.input"] = input(connection, left)
      end

      # What most programs answer, which needs no look at each form that there is.
      def plain?(status, headers, body)
        body.instance_of?(Array) && headers.instance_of?(Hash) && status.is_a?(Integer) &&
          !headers.key?("rack.hijack") && !headers.key?("rack.protocol")
      end

      # The program has answered by itself.
      def drop_answer(body)
        body.close if body.respond_to?(:close)
      end

      def goes_on?(connection)
        return true if connection.keeps?
        return false unless connection.answered_for_more?

        drop(connection)
        connection.keeps?
      end

      # What the program has left of the body is in the way of the next request.
      def drop(connection)
        left = DROPPED_BYTES
        while left.positive? && (piece = connection.read(left))
          left -= piece.bytesize
        end
      end

      # The kernel resets a connection that is closed while there are bytes to be read, and then the client may lose the answer:
      # https://www.rfc-editor.org/rfc/rfc9112#section-9.6
      def linger(stream)
        stream.close_write(timeout: LINGER_SECONDS)
        Machine.current.timeout(LINGER_SECONDS) { nil while stream.read_partial(DROPPED_BYTES) }
      rescue TimeoutError, ClosedError, SystemCallError, UsageError
        nil # it has gone, or takes too long, or a strand of the program reads the body still
      end

      def input(connection, left)
        return @no_input if left&.zero?

        input = Input.new(connection)
        return Spool.of(input) if @spools
        return input if left.nil? || left > Spool::MEMORY_BYTES || connection.expects?

        StringIO.new(input.read)
      end

      def turn_away(connection, env)
        refuse(connection, note(env, RequestError.new(503, "The server has no place for another request.")), BUSY)
      end

      # Leaves it for those who look on, where the program has not frozen the env.
      #
      # @return [Exception] the same
      def note(env, error)
        env[Exchange::ERROR] = error unless env.frozen?
        error
      end

      # @return [Boolean] false: the answer has begun before
      def refuse(connection, error, headers = TEXT)
        return false if connection.answering?

        connection.answer(error.status, headers, ["#{error.message}\n"])
        true
      end

      def settle(connection, stream, error)
        case error
        when RequestError then refuse(connection, error)
        when RequestTimeoutError
          @telling.puts(error.message)
          fail(connection, stream, 503, BUSY, "The answer took too long.\n")
        else
          raise error if clients_fault?(stream, error)

          @telling.puts(Failure.text_of(error))
          connection.last!
          fail(connection, stream, 500, TEXT, "Internal Server Error\n")
        end
      end

      def clients_fault?(stream, error) = error.is_a?(GoneError) || stream.__send__(:peers_fault?, error)

      # One whose head has gone out is cut, so that the client sees that it has not ended. What fails behind a whole one, as the
      # close of a body does, or a strand in the scope of the request, is none of the client's business.
      def fail(connection, stream, status, headers, text)
        return connection.answer(status, headers, [text]) unless connection.answering?
        return if connection.answered?

        reset(stream) if connection.endless?
        stream.__send__(:close_at_once)
      end

      # Has the close be a reset: without a length and without chunks, as for HTTP/1.0, the client would take a close for the end
      # of the answer.
      def reset(stream)
        return if stream.closed?

        Machine.current.setsockopt(stream.__send__(:over), ::Socket::SOL_SOCKET, ::Socket::SO_LINGER, [1, 0].pack("ii"))
      rescue SystemCallError, Error
        nil # it is no socket of TCP, or has gone
      end

      def finish(callbacks, env, status, headers, error)
        callbacks.reverse_each do |callback|
          callback.call(env, status, headers, error)
        rescue Failure => failed
          @telling.puts("in rack.response_finished: #{Failure.text_of(failed)}")
        end
        nil
      end

      # The env that all requests of a connection begin with. Whoever comes by a Unix socket is on this host.
      #
      # @raise [GoneError] a reset is behind what has come, and nobody knows any more whose requests those are
      def base(stream)
        (client, _), (host, port) = Connection.ends(stream.__send__(:over))
        raise GoneError, "the client has reset the connection" if host && !client

        Connection.roomy(ENV_ROOM).update(
          "SCRIPT_NAME" => "", "SERVER_NAME" => Service.named(host || "localhost"), "SERVER_PORT" => (port || 80).to_s,
          "REMOTE_ADDR" => client || "127.0.0.1", "rack.url_scheme" => stream.tls ? "https" : "http", "rack.errors" => @errors,
          "rack.hijack?" => true, "ringspun.peer" => Peer.new(stream, @drain)
        )
      end
    end
    private_constant :Service
  end
end
