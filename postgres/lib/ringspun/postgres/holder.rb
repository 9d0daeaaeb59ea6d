# frozen_string_literal: true

module Ringspun
  module Postgres
    # Who has a connection of a pool: since when, and where it was asked for. Made by who asks, in the fiber in which that is.
    #
    # @api private
    class Holder
      # Of the fiber of an Enumerator or an Evaluation: where that was made. On the fiber's own stack is nothing of it.
      MADE_AT = :ringspun_postgres_made_at

      # Their fibers, which may be collected all the same.
      FIBERS = ObjectSpace::WeakMap.new
      private_constant :MADE_AT, :FIBERS

      # Of that method, which gives the block what it has.
      #
      # @return [Enumerator]
      def self.enumerator(&each)
        places = caller_locations
        Enumerator.new { |them| made_at(places) { each.call { |one| them << one } } }
      end

      # Runs the block, whose connections are asked for there.
      def self.made_at(places)
        before = Thread.current[MADE_AT]
        Thread.current[MADE_AT] = places
        yield
      ensure
        Thread.current[MADE_AT] = before
      end

      def initialize
        scheduler = Fiber.current_scheduler
        fiber = Fiber.current
        @left = false
        @thread = Thread.current
        FIBERS[self] = fiber
        @strand = Machine.current.running if scheduler.is_a?(Scheduler)
        @places = caller_locations
        @made_at = @thread[MADE_AT]
        @name = (scheduler ? fiber : @thread).inspect unless @strand
      end

      # Of the lane it has from now on.
      def hold(lane, now)
        @lane = lane
        @since = now
      end

      # Another thread gives it back for it.
      def leave = @left = true

      # @return [Boolean] nobody can give it back: the thread has ended, or an Enumerator or Fiber is collected
      def ended? = @lane.gone? || !(@left || (@thread.alive? && FIBERS[self]&.alive?))

      # @return [Boolean] nobody is likely to: it is with an Enumerator whose strand has ended
      def astray? = !@strand.nil? && !@strand.alive?

      # @return [Boolean] either
      def left? = astray? || ended?

      # @return [String]
      def to_s = "#{who} for #{format("%.1f", Postgres.now - @since)} s, at #{places.first}"

      def reclaimed
        "ringspun: a connection was not given back, and is closed: #{who} has ended, who had it for " \
          "#{format("%.1f", Postgres.now - @since)} s and had asked for it at\n" \
          "#{places.map { |place| "\t#{place}" }.join("\n")}"
      end

      private

      # A fiber or a thread is not kept for it.
      def who = @strand ? @strand.inspect : @name

      # Of the program, without this library. Looked for only when somebody is to read it, for stacks are deep.
      def places
        own = [@places, @made_at || []].map { |all| all.reject { |place| library?(place) } }
        own.first.empty? ? own.last : own.first
      end

      # Methods of Ruby's own at the bottom of a fiber have no path. A path may lead through links, which `__dir__` does not.
      def library?(place)
        place.path.nil? || place.path.start_with?("<internal:") || place.absolute_path&.start_with?(__dir__)
      end
    end
    private_constant :Holder
  end
end
