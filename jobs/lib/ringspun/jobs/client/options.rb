# frozen_string_literal: true

module Ringspun
  module Jobs
    # Checks the options of jobs.
    #
    # @api private
    module Options
      UNTIL = %w[success start expiry].freeze
      PRIORITY_MAX = Wire::PRIORITY_MAX

      module_function

      # @param values [Hash{Symbol => Object}]
      # @param known [Hash{Symbol => Symbol}] the options that there are, and the method that checks a value of each
      # @return [Hash{Symbol => Object}] as {Template} takes them
      # @raise [InvalidJobError] which lists the options that there are
      def check(values, known = CLASS)
        values.to_h do |name, value|
          checker = known.fetch(name) do
            raise InvalidJobError, "there is no option #{name.inspect}#{Suggestion.for(name.to_s, known.keys)}"
          end
          [name, send(checker, name, value)]
        end
      end

      # Seconds from now. What is negative has passed.
      #
      # @return [Float] 0.0 or more
      def seconds(name, value)
        number = Seconds.of(value)&.to_f
        number && number < Float::INFINITY ? [number, 0.0].max : refuse(name, value, "a number of seconds")
      end

      # Seconds since the epoch.
      #
      # @return [Float]
      def time(name, value)
        number = number_of(value)
        number&.finite? ? number : refuse(name, value, "a Time, or seconds since the epoch")
      end

      def queue(name, value)
        text = utf8(value)
        Wire.queue?(text) ? text.freeze : refuse(name, value, "the name of a queue that programs may have")
      end

      def retries(name, value)
        return value if [true, false].include?(value) || (value.is_a?(Integer) && value >= 0)

        refuse(name, value, "true, false or how often")
      end

      # nil removes the class's option.
      def unique_for(name, value) = value.nil? ? nil : span(name, value)

      def unique_until(name, value)
        UNTIL.include?(value.to_s) ? value.to_s.freeze : refuse(name, value, "one of #{UNTIL.join(", ")}")
      end

      def flag(name, value) = [true, false].include?(value) ? value : refuse(name, value, "true or false")

      def lines(name, value)
        return value if [true, false].include?(value) || (value.is_a?(Integer) && value.positive?)

        refuse(name, value, "true, false or how many lines")
      end

      def span(name, value)
        number = Seconds.positive(value) or return refuse(name, value, "a positive number of seconds")

        number.is_a?(Integer) ? number : number.to_f
      end

      def keep_result(name, value)
        most = Storage::RESULT_SECONDS_MAX
        span(name, value).then { |seconds| seconds <= most ? seconds : refuse(name, value, "at most #{most} s, a year") }
      end

      def deaths(name, value)
        value.is_a?(Integer) && !value.negative? ? value : refuse(name, value, "how often, an Integer")
      end

      def priority(name, value)
        known = value.is_a?(Integer) && value.abs <= PRIORITY_MAX
        known ? value : refuse(name, value, "an Integer from -#{PRIORITY_MAX} to #{PRIORITY_MAX}")
      end

      def text(name, value)
        text = utf8(value) if value.is_a?(String) && !value.empty?
        text || refuse(name, value, "a String, in UTF-8")
      end

      def texts(name, value)
        texts = value.map { |each| utf8(each)&.freeze } if value.is_a?(Array)
        texts&.all? ? texts.freeze : refuse(name, value, "an Array of Strings, in UTF-8")
      end

      def utf8(value) = Wire.utf8(value)

      # Which connections there are, only the storage knows.
      def connection(_name, value) = value

      # A Time counts as a number as well.
      def number_of(value)
        value.to_f if value.is_a?(Numeric) ? value.real? : value.respond_to?(:to_f) && !value.is_a?(String) && !value.nil?
      end

      def refuse(name, value, expected)
        raise InvalidJobError, "#{name} must be #{expected}, got #{value.inspect}"
      end

      # For a class.
      CLASS = { queue: :queue, retry: :retries, retry_queue: :queue, retry_for: :span, dead: :flag, backtrace: :lines,
                unique_for: :unique_for, unique_until: :unique_until, after_commit: :flag, tags: :texts,
                keep_result: :keep_result, priority: :priority, deaths: :deaths }.freeze
      # For a job.
      ALL = { **CLASS, unique_token: :text, in: :seconds, at: :time, connection: :connection }.freeze
      DEFAULTS = { queue: "default", retry: true }.freeze
    end
    private_constant :Options
  end
end
