# frozen_string_literal: true

module Ringspun
  module Cluster
    # The options of {Cluster.run}, checked before anything is opened or forked.
    #
    # @api private
    class Settings
      HOOKS = %i[before_fork after_fork on_worker_end on_reload].freeze
      # Far more than any computer has cores for: a larger number is taken for a mistake.
      WORKERS_MAX = 1024
      # What the parent has open for each: a pipe in each direction.
      DESCRIPTORS_EACH = 2
      # And for all else: sockets, logs, what the program has loaded.
      DESCRIPTORS_BESIDE = 32

      attr_reader :workers, :drain, :grace, :boot, :heartbeat, :settle, :backoff, :log,
                  :before_fork, :after_fork, :on_worker_end, :on_reload

      def initialize(workers:, backoff:, log:, drain:, grace:, boot:, heartbeat:, settle:, mode: nil, **hooks)
        check_mode(mode)
        @workers = number_of(workers)
        @drain, @boot = optional(drain:, boot:)
        @heartbeat, = optional(heartbeat:)
        @grace = seconds(:grace, grace)
        @settle = seconds(:settle, settle)
        @backoff = pauses(backoff)
        @log = log
        hooks.each { |name, hook| instance_variable_set(:"@#{name}", callable(name, hook)) }
      end

      private

      # The sockets have it; here it is said before anything is opened.
      def check_mode(mode)
        return if mode.nil? || (mode.is_a?(Integer) && mode.between?(0, 0o7777))

        raise UsageError, "mode: must be permissions of a file, 0 to 0o7777, or nil, got #{mode.inspect}"
      end

      def number_of(workers)
        return Etc.nprocessors if workers == :cores
        return enough_for(workers) if workers.is_a?(Integer) && (0..WORKERS_MAX).cover?(workers)

        raise UsageError, "workers: must be :cores or a number from 0 to #{WORKERS_MAX}, got #{workers.inspect}"
      end

      # Otherwise those that could not be started would be tried again and again.
      def enough_for(workers)
        needed = (workers * DESCRIPTORS_EACH) + DESCRIPTORS_BESIDE
        limit, = Process.getrlimit(:NOFILE)
        return workers if workers.zero? || needed <= limit

        raise UsageError, "workers: #{workers} of them need about #{needed} descriptors here, and this process may have " \
                          "#{limit}: raise its limit, as with ulimit -n"
      end

      def optional(**options) = options.map { |name, value| value && seconds(name, value, " or nil", zero: name == :drain) }

      def seconds(name, value, other = "", zero: true)
        number = Seconds.of(value)
        return number if number&.to_f&.finite? && (number.positive? || (zero && number.zero?))

        raise UsageError, "#{name}: must be a #{"positive " unless zero}number of seconds#{other}, got #{value.inspect}"
      end

      def pauses(range)
        least, most = [range.begin, range.end].map { |each| Seconds.of(each) } if range.is_a?(Range)
        return least..most if least&.positive? && most && least <= most

        raise UsageError, "backoff: must be a range of positive seconds, as 0.1..30, got #{range.inspect}"
      end

      def callable(name, hook)
        return hook if hook.nil? || hook.respond_to?(:call)

        raise UsageError, "#{name}: must be a proc or have #call, got #{hook.inspect}"
      end
    end
  end
end
