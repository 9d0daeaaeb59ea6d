# frozen_string_literal: true

require "securerandom"

module Ringspun
  module Postgres
    # A connection. The extension has the rest.
    #
    # @api private
    class Lane
      TERMINATE = "X\0\0\0\4"
      private_constant :TERMINATE

      # What {CancelRequest} needs to know of the connection.
      attr_reader :session

      # @return [Types] of its pool
      attr_reader :types

      attr_writer :session, :canceller, :machine, :thread, :types

      # May switch strands.
      #
      # @param config [Config]
      # @param canceller [Canceller]
      # @param shared [Boolean]
      # @return [Lane]
      def self.open(config, canceller, shared:)
        session = Startup.connect(config.options)
        lane = new(session.stream, SecureRandom.alphanumeric(8), config.statement_cache, shared)
        lane.session = session
        lane.canceller = canceller
        lane.observed = !config.observers.nil?
        lane.machine = Machine.current
        lane.settings = session.settings
        lane.live(config.max_lifetime * (0.9 + (rand / 5)))
        lane.thread = Thread.current
        # How long the way to the server takes must be known, to know a slow statement.
        raise Postgres.lost(lane.loss, false) if shared && !lane.ping(nil)

        lane.types = config.types
        lane.decoders = config.types.decoders(lane)
        ready = lane
      ensure
        lane&.close unless ready
      end

      # The server works for nobody. The extension calls it too.
      def orphaned = @canceller.cancel(self)

      # The server has answered nothing for seconds of what came behind another statement. The extension calls it, once.
      def suspected
        warn "ringspun: #{@session.host} has answered nothing for five seconds of what came together with another statement. A " \
             "pooler may lose that: if there is one, try pipelining: false"
      end

      # Waits until the server has answered all that was sent, for which that is cancelled that nobody wants.
      def settle(seconds)
        orphaned if orphaned? && !held?
        ping(seconds) or raise Postgres.lost(loss, false)
      end

      # Makes the session anew, with the settings with which it has begun. Behind a pooler DISCARD ALL goes back to others.
      def renew(seconds)
        self.renewing = true
        query("DISCARD ALL", [], seconds, false, true)
        forget_statements
        @session.settings.slice(*changed_settings).each do |setting|
          query("select set_config($1, $2, false)", setting, seconds, false, true)
        end
        take_left_state
        self.renewing = false
      end

      # Ends the connection at once. What was sent is in doubt. From any thread. A forked child leaves the socket alone.
      def close(why = "the client was closed")
        return lose(why) if inherited?
        return abandon(why, gone?) unless here?
        return unless lose(why)

        stream = @session.stream
        stream << TERMINATE unless stream.closed?
      rescue Ringspun::Error, SystemCallError
        nil # the server has ended it before
      ensure
        stream&.__send__(:close_at_once)
      end

      # Whether it is the caller's machine that it belongs to.
      def here? = Machine.current? && Machine.current.equal?(@machine)

      # Whether its machine has ended, or the thread.
      def gone? = @machine.closed? || !@thread.alive?
    end
    private_constant :Lane, :Messages, :Columns, :Statement, :SharedByRows, :CopyRows, :CopyReader, :Params
  end
end
