# frozen_string_literal: true

require "securerandom"

module Ringspun
  module Postgres
    # A connection. The extension has the rest.
    #
    # @api private
    class Lane
      TERMINATE = "X\0\0\0\4"

      # How long a statement waits for a lock.
      BOUND = "show lock_timeout"

      # Seconds for which one lives whose waits for locks should be short, and are not.
      UNBOUNDED_LIFE = 10
      private_constant :TERMINATE, :BOUND, :UNBOUNDED_LIFE

      # What {CancelRequest} needs to know of the connection.
      attr_reader :session

      # @return [Types] of its pool
      attr_reader :types

      # @return [Machine] whose stream it has
      attr_reader :machine

      # @return [Float, nil] when it was given back, on the machine's clock
      attr_accessor :idle_since

      attr_writer :session, :canceller, :machine, :thread, :types

      # @return [Lanes, nil] to which it belongs, when it is shared
      attr_writer :keeper

      # May switch strands.
      #
      # @param config [Config]
      # @param canceller [Canceller]
      # @param shared [Boolean]
      # @return [Lane]
      def self.open(config, canceller, shared:)
        session, bounded = begin_session(config, shared)
        lane = new(session.stream, SecureRandom.alphanumeric(8), config.statement_cache, shared)
        lane.histories = config.sharing.histories
        lane.bounded = bounded
        lane.session = session
        lane.canceller = canceller
        lane.observers = config.observers
        lane.machine = Machine.current
        lane.settings = session.settings
        lane.live(life_of(config, shared && !bounded))
        lane.thread = Thread.current
        try(lane, config, bounded) if shared
        lane.types = config.types
        lane.decoders = config.types.decoders(lane)
        ready = lane
      ensure
        lane&.close unless ready
      end

      # What waits for a lock would hold up all that comes behind it. A pooler may refuse what it does not know. A server reads
      # its own tables as a connection begins, where a lock may keep it longer than that.
      #
      # @return [Array(Startup::Session, Boolean)] and whether waits for locks are short
      def self.begin_session(config, shared)
        bounded = shared && config.sharing.bounded?
        [Startup.connect(config.options, bounded ? { "lock_timeout" => LOCK_TIMEOUT.to_s } : {}), bounded]
      rescue LockNotAvailable
        raise unless bounded

        [Startup.connect(config.options), false]
      rescue ServerError => error
        raise unless bounded && error.primary.to_s.match?(/startup parameter|lock_timeout/)

        config.sharing.unbounded
        retry
      end
      private_class_method :begin_session

      # The next one may be bounded, where the pool is.
      def self.life_of(config, unbounded)
        seconds = config.max_lifetime * (0.9 + (rand / 5))
        unbounded && config.sharing.bounded? ? [seconds, UNBOUNDED_LIFE].min : seconds
      end
      private_class_method :life_of

      # How long the way to the server takes must be known, to know a slow statement. On the same way it is seen whether waits for
      # locks are short: a pooler may have dropped that without a word.
      def self.try(lane, config, bounded)
        taken = bounded ? lane.query(BOUND, [], nil, false, true) : lane.ping(nil)
        # As where this process was stopped for a while.
        taken = lane.query(BOUND, [], nil, false, true) while taken == :quiet && lane.ping(nil)
        raise Postgres.lost(lane.loss, false) if !taken || taken.is_a?(Symbol)
        return if taken == true || taken.value == "#{LOCK_TIMEOUT}ms"

        config.sharing.unbounded
        lane.bounded = false
      end
      private_class_method :try

      # Something may have to wait here that is not sent. The extension calls it.
      def watch = @keeper&.watch(self)

      # The server has answered what nobody waited for.
      def rest = @keeper&.rest

      # The server works for nobody. The extension calls it too.
      def orphaned = @canceller.cancel(self)

      # The server has answered nothing for seconds of what came behind another statement. The extension calls it, once.
      def suspected
        Warnings.tell("ringspun: #{@session.host} has answered nothing for five seconds of what came together with " \
                      "another statement. A pooler may lose that: if there is one, try pipelining: false")
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

        here? ? close_here(why) : leave_to_owner(why)
        leave_notices
      end

      # Whoever hears of what is asked here. From any thread.
      #
      # @param observers [Observers, nil]
      def observers=(observers)
        @observers = observers
        self.observed = !observers.nil?
      end

      # Notices that nobody has taken go to the observers.
      def leave_notices
        bodies = take_notices
        @observers&.late(bodies)
      end

      def close_here(why)
        return unless lose(why) || take_voided

        stream = @session.stream
        stream << TERMINATE unless stream.closed?
      rescue Ringspun::Error, SystemCallError
        nil # the server has ended it before
      ensure
        stream&.__send__(:close_at_once)
      end

      # What belongs to a machine that is closed belongs to nobody, and any thread may close it.
      def leave_to_owner(why)
        abandon(why, gone?)
        return unless gone? && take_voided

        @machine.closed? ? @session.stream.close : close_number
      end
      private :close_here, :leave_to_owner

      # Whether it is the caller's machine that it belongs to. The extension calls it, which knows that most often.
      def of_this_machine? = Machine.current? && Machine.current.equal?(@machine)

      # What it is at.
      #
      # @return [String]
      def to_s
        sql, seconds = head
        seconds ? "#{sql.inspect} for #{format("%.1f", seconds)} s" : "nothing"
      end

      # Whether its machine has ended, or the thread.
      def gone? = @machine.closed? || !@thread.alive?
    end
    private_constant :Bell, :Lane, :Messages, :Columns, :Statement, :SharedByRows, :CopyRows, :CopyReader, :Params, :History,
                     :Histories
  end
end
