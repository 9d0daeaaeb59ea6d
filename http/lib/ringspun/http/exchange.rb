# frozen_string_literal: true

module Ringspun
  module HTTP
    # A request and what becomes of it, for those who look on: the access log, the metrics, spans, and {Inspector}. It is told of
    # by what has been seen so far, and is valid only while it is shown: the next request of the connection has the same object.
    #
    # @since 0.1.0
    class Exchange
      # Where the service leaves, in the env, the error that has ended a request.
      ERROR = "ringspun.error"
      # What frameworks say of the route that they have chosen: Rails, and Sinatra.
      ROUTES = %w[action_dispatch.route_uri_pattern sinatra.route].freeze
      NO_REQUEST = {}.freeze
      # The route itself. Rails from 8.1 on makes its pattern when it is asked for.
      ROUTE = "action_dispatch.route"
      private_constant :ROUTES, :ROUTE, :NO_REQUEST

      # @return [Float] when its head had come, in seconds of the clock that only goes on
      # @since 0.1.0
      attr_reader :began

      # @return [Object, nil] what one of those who look on keeps until the end
      # @api private
      attr_accessor :span

      # @param connection [Connection]
      # @param base [Hash] what is known before the first request
      # @param hijack [Hijack]
      # @param watchers [Array<#began, #ended>] told of each request
      # @param telling [Telling]
      # @api private
      def initialize(connection, base, hijack, watchers, telling)
        @connection = connection
        @base = base
        @hijack = hijack
        @watchers = watchers
        @telling = telling
      end

      # Shows a request to those who look on, from here to the end of the block.
      #
      # @param env [Hash]
      # @return [Object] of the block
      # @api private
      def of(env, &)
        @env = env
        return yield if @watchers.empty?

        watched(&)
      ensure
        @env = nil
      end

      # Shows what was no request, and was refused.
      #
      # @param error [RequestError]
      # @return [nil]
      # @api private
      def refused(error)
        return if @watchers.empty?

        begin_at_once
        @error = error
        tell(:ended)
      end

      # @return [Hash] the env of the request; it is empty and frozen where there was none that could be read
      # @since 0.1.0
      def env = @env || NO_REQUEST

      # @return [Integer, nil] the status of the answer; nil: none has begun, or the program has answered by itself
      # @since 0.1.0
      def status = @connection.status

      # @return [Integer] bytes of the answer's body
      # @since 0.1.0
      def bytes = @connection.sent

      # @return [Integer] bytes of the request's body that were read
      # @since 0.1.0
      def bytes_received = @connection.received

      # @return [Float] since the head of the request had come
      # @since 0.1.0
      def seconds = now - @began

      # @return [String] address of the client
      # @since 0.1.0
      def client = @base["REMOTE_ADDR"]

      # @return [Exception, nil] what has ended it, be it the program's, the client's or the server's fault
      # @since 0.1.0
      def error = @error || env[ERROR]

      # What has become of the request: `:answered`; `:refused`: it was none, or too large; `:failed`: the program has raised, or
      # has given a body that could not be sent to its end; `:timed_out`; `:gone`: the client has closed the connection;
      # `:cancelled`: its strand was ended, by the server or by the program; `:hijacked`: the program has taken the connection;
      # `:upgraded`: another protocol was spoken on it.
      #
      # @return [Symbol]
      # @since 0.1.0
      def happened
        failure = error
        return answered unless failure
        return failure.status == 408 ? :timed_out : :refused if failure.is_a?(RequestError)
        return :timed_out if failure.is_a?(TimeoutError)
        return :cancelled if failure.is_a?(Cancelled) || failure.is_a?(TerminatedError)

        @error ? :gone : :failed
      end

      # @return [String, nil] the pattern of the route, where the program's framework says it
      # @since 0.1.0
      def route
        ROUTES.each { |name| (found = env[name]) && (return found.to_s) }
        found = env[ROUTE]
        found.path.spec.to_s if found.respond_to?(:path)
      end

      # @return [String] as {Inspector} shows it
      # @since 0.1.0
      def to_s
        env = @env
        return "idle connection of #{client}" unless env

        "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}#{" (#{route})" if route}"
      end

      private

      def watched
        begin_at_once
        begin
          yield
        rescue Exception => error
          @error = error
          raise
        ensure
          tell(:ended)
        end
      end

      def begin_at_once
        @began = now
        @error = @span = nil
        tell(:began)
      end

      def answered
        return :hijacked if @hijack.taken?

        @connection.tunnel? ? :upgraded : :answered
      end

      # Whoever looks on must end no request.
      def tell(what)
        @watchers.each do |watcher|
          what == :began ? watcher.began(self) : watcher.ended(self)
        rescue Failure => error
          @telling.puts("#{watcher.class} has failed: #{Failure.text_of(error)}")
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
