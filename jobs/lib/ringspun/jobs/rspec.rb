# frozen_string_literal: true

require "rspec/core"
require "rspec/expectations"
require_relative "testing/query"

module Ringspun
  module Jobs
    module Testing
      # Matchers for RSpec. Each example begins without jobs.
      module Matchers
        # Matches when such a job was enqueued: by a block, or by the example so far.
        #
        #   expect { order.ship }.to have_enqueued(Mail).with("a@example.org", /shipped/).on("mail").in(60)
        #   expect(Mail).to have_enqueued.twice
        #
        # @param job_class [Class, String, nil] nil if `expect` has it
        # @return [HaveEnqueued]
        # @since 0.1.0
        def have_enqueued(job_class = nil) = HaveEnqueued.new(job_class)
      end

      # What {Matchers#have_enqueued} returns.
      class HaveEnqueued
        include RSpec::Matchers::Composable

        # @api private
        def initialize(job_class)
          @job_class = job_class
          @wanted = {}
          @count = nil
        end

        # @param arguments [Array<Object>] values or matchers
        # @return [HaveEnqueued] self
        # @since 0.1.0
        def with(*arguments) = want(:args, arguments)

        # @param queue [String, Symbol]
        # @return [HaveEnqueued] self
        # @since 0.1.0
        def on(queue) = want(:queue, queue)

        # @param seconds [Numeric] after which it is to run
        # @return [HaveEnqueued] self
        # @since 0.1.0
        def in(seconds) = want(:in, seconds)

        # @param time [Time, Numeric] at which it is to run
        # @return [HaveEnqueued] self
        # @since 0.1.0
        def at(time) = want(:at, time)

        # @param count [Integer] how many
        # @return [HaveEnqueued] self
        # @since 0.1.0
        def exactly(count)
          @count = count
          self
        end

        # @return [HaveEnqueued] self
        # @since 0.1.0
        def once = exactly(1)

        # @return [HaveEnqueued] self
        # @since 0.1.0
        def twice = exactly(2)

        # Does nothing; for `exactly(2).times`.
        #
        # @return [HaveEnqueued] self
        # @since 0.1.0
        def times = self

        alias time times

        # @api private
        def supports_block_expectations? = true

        # @api private
        def matches?(actual)
          look(actual)
          @count ? @found.size == @count : @found.any?
        end

        # @api private
        def does_not_match?(actual)
          raise UsageError, "not_to have_enqueued takes no count: it expects no job at all" if @count

          !matches?(actual)
        end

        # @api private
        def failure_message
          "expected #{@count ? Words.count(@count, "job") : "a job"} #{@query}, found #{@found.size}; #{Query.list(@records)}"
        end

        # @api private
        def failure_message_when_negated = "expected no job #{@query}, found #{@found.size}; #{Query.list(@records)}"

        # @api private
        def description
          ["have enqueued", @job_class, *@wanted.map { |name, value| "#{name}: #{value.inspect}" }].compact.join(" ")
        end

        private

        def want(name, value)
          @wanted[name] = value
          self
        end

        def look(actual)
          block = actual.is_a?(Proc)
          job_class = block ? @job_class : actual
          if job_class.nil? || (!block && @job_class)
            raise UsageError, "have_enqueued: name the class of jobs once: expect { }.to have_enqueued(Mail), or expect(Mail)"
          end

          @query = Query.new(job_class, @wanted) { |expected, given| values_match?(expected, given) }
          before = block ? Testing.records : []
          actual.call if block
          @records = Testing.records.reject { |record| before.any? { |other| other.equal?(record) } }
          @found = @query.among(@records)
        end
      end
    end
  end
end

RSpec.configure do |config|
  config.include(Ringspun::Jobs::Testing::Matchers)
  config.before { Ringspun::Jobs::Testing.clear_all }
end
