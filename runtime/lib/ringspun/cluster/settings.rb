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

      attr_reader :workers, :drain, :grace, :boot, :heartbeat, :settle, :backoff, :log,
                  :before_fork, :after_fork, :on_worker_end, :on_reload

      def initialize(workers:, backoff:, log:, drain:, grace:, boot:, heartbeat:, settle:, **hooks)
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

      def number_of(workers)
        return Etc.nprocessors if workers == :cores
        return workers if workers.is_a?(Integer) && (1..WORKERS_MAX).cover?(workers)

        raise UsageError, "workers: must be :cores or a number from 1 to #{WORKERS_MAX}, got #{workers.inspect}"
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
