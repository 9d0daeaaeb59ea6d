# frozen_string_literal: true

require "json"

module Ringspun
  module Jobs
    module Cron
      # An entry of a schedule: which job is enqueued when.
      #
      # @api private
      class Entry
        # Options of jobs that make no sense here: when it runs says the schedule, and there is no caller with a transaction.
        WITHOUT = %i[in at connection after_commit].freeze
        OPTIONS = Options::ALL.except(*WITHOUT).freeze
        # Also as other languages write the names of theirs.
        CLASS_NAME = /\A[[:upper:]][[:word:]]*(?:(?:::|\.)[[:upper:]][[:word:]]*)*\z/
        # The characters of a name at most: pages, logs and keys of storages show it.
        NAME_SIZE = 200
        private_constant :WITHOUT, :CLASS_NAME, :NAME_SIZE

        # @return [String]
        attr_reader :name
        # @return [String] as somebody has written it
        attr_reader :schedule
        # @return [String, nil] the zone that is said beside it
        attr_reader :zone
        # @return [Class, String]
        attr_reader :job_class
        # @return [Array<Object>]
        attr_reader :arguments
        # @return [Hash{Symbol => Object}] of the job
        attr_reader :options
        # @return [Symbol] one of {CatchUp::POLICIES}
        attr_reader :catch_up
        # @return [String, nil]
        attr_reader :description

        # @param name [String]
        # @param text [String] as {#to_text} has made it
        # @return [Entry]
        # @raise [ConfigError] a program of another version has made it
        def self.load(name, text)
          fields = JSON.parse(text).transform_keys(&:to_sym)
          new(name, fields[:schedule], fields[:class], fields[:args], **fields.slice(:zone, :catch_up, :description, :wrapped),
                                                                      **fields[:options].transform_keys(&:to_sym))
        rescue JSON::ParserError, TypeError, NoMethodError => error
          raise ConfigError, "the cron entry #{name} is none of this version's: #{error.message}"
        end

        # @param name [String]
        # @param schedule [String]
        # @param job_class [Class, String, BoundJob]
        # @param arguments [Array<Object>]
        # @param wrapped [Boolean] whether its class was found to be one whose jobs another class wraps
        # @raise [ConfigError]
        def initialize(name, schedule, job_class, arguments, zone: nil, catch_up: nil, description: nil, wrapped: false,
                       **options)
          @name = name_of(name)
          @schedule = schedule
          @zone = zone
          bound = job_class.is_a?(BoundJob)
          @job_class = class_of(bound ? job_class.job_class : job_class)
          @arguments = arguments
          @options = options_of(bound ? { **job_class.given, **options } : options)
          @catch_up = policy_of(catch_up)
          @description = description_of(description)
          @wrapped = wrapped
          check
        end

        # @param default [String] the zone, if the entry says none
        # @return [Times]
        # @raise [ConfigError]
        def times(default) = (@times ||= {})[default] ||= Times.new(@schedule, @zone, default: default)

        # @param default (see #times)
        # @return [String] another one when its ticks are others
        def key(default) = times(default).then { |times| "#{times.cron} #{times.zone}" }

        # @param default (see #times)
        # @param last [Numeric] the last tick
        # @param now [Numeric] by the same clock
        # @return [CatchUp::Due]
        def due(default, last, now) = CatchUp.due(@catch_up, times(default), last, now)

        # @return [String] which of the ticks that were missed are made up for, as "none is"
        def made_up = CatchUp::MADE_UP.fetch(@catch_up)

        # @param default (see #times)
        # @return [String] all of it, for {.load} in a program that may not have the class
        # @raise [InvalidJobError] of the class
        def to_text(default)
          found = Classes.named(@job_class)
          options = found.respond_to?(:job_options) ? { **found.options.slice(*OPTIONS.keys), **@options } : @options
          JSON.generate({ "schedule" => @schedule, "zone" => zone_beside(default), "class" => class_name, "args" => @arguments,
                          "options" => options, "catch_up" => @catch_up, "description" => @description,
                          "wrapped" => (true if Classes.maker(found)) }.compact)
        end

        # @return [String]
        def class_name = @job_class.is_a?(String) ? @job_class : @job_class.name

        # @return [Boolean]
        def wrapped? = @wrapped

        # @param other [Object]
        # @return [Boolean] whether that says the same
        def ==(other) = other.is_a?(Entry) && facts == other.facts

        protected

        def facts = [@name, @schedule, @zone, class_name, @arguments, @options, @catch_up, @description]

        private

        # Another program may have another default.
        def zone_beside(default)
          return @zone if @zone

          zone = times(default).zone
          zone unless @schedule.include?(zone)
        end

        def refuse(why) = raise(ConfigError, "the cron entry #{@name}: #{why}")

        def name_of(name)
          text = Wire.utf8(name)
          return text.freeze if text&.match?(/\S/) && text.size <= NAME_SIZE

          raise ConfigError, "the name of a cron entry must be a text of 1 to #{NAME_SIZE} characters, " \
                             "got #{name.inspect[0, 100]}"
        end

        def description_of(value)
          return if value.nil?

          Wire.utf8(value.to_s)&.freeze || refuse("the description must be a text, got #{value.inspect[0, 100]}")
        end

        def class_of(value)
          return value if value.is_a?(Class) && (value <= Job || Classes.maker(value)) && value.name
          return value.dup.freeze if value.is_a?(String) && value.match?(CLASS_NAME)

          refuse("the class must be one of jobs, or its name such as \"Reports::Nightly\", got #{value.inspect[0, 100]}")
        end

        def options_of(options)
          wrong = options.keys & WITHOUT
          refuse("#{wrong.first} makes no sense there: the schedule says when its jobs are enqueued") if wrong.any?

          Options.check(options.compact, OPTIONS).freeze
        rescue InvalidJobError => error
          refuse(error.message)
        end

        def policy_of(value)
          policy = (value || :once).to_s.to_sym
          return policy if CatchUp::POLICIES.include?(policy)

          refuse("catch_up must be one of #{CatchUp::POLICIES.join(", ")}, got #{value.inspect}")
        end

        def check
          Arguments.check(@arguments)
          times("UTC")
        rescue InvalidJobError, ConfigError => error
          refuse(error.message)
        end
      end
    end
  end
end
