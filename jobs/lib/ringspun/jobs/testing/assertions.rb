# frozen_string_literal: true

require_relative "query"

module Ringspun
  module Jobs
    module Testing
      # Assertions for Minitest, or whatever else has `assert` and `before_setup`. Each test begins without jobs.
      module Assertions
        # @api private
        def before_setup
          Testing.clear_all
          super
        end

        # Passes when such a job was enqueued.
        #
        #   assert_enqueued(Mail, args: ["a@example.org", String], in: 60) { order.ship }
        #
        # @param job_class [Class, String]
        # @param args [Array, nil] what `===` compares with its arguments, one by one
        # @param queue [String, Symbol, nil]
        # @param at [Time, Numeric, nil] when it is to run
        # @param in [Numeric, nil] after how many seconds
        # @param count [Integer, nil] how many; nil: at least one
        # @yield only jobs that are enqueued meanwhile count; without a block, all jobs of the test
        # @return [Array<Hash{String => Object}>] those jobs
        # @raise [UsageError] in another mode than {Testing.fake!}
        # @since 0.1.0
        def assert_enqueued(job_class, args: nil, queue: nil, at: nil, in: nil, count: nil, &)
          query = Query.new(job_class, { args: args, queue: queue, at: at, in: binding.local_variable_get(:in) })
          records = enqueued_by(&)
          found = query.among(records)
          right = count ? found.size == count : found.any?
          assert right, lambda {
            "expected #{count ? Words.count(count, "job") : "a job"} #{query}, found #{found.size}; #{Query.list(records)}"
          }
          found.map(&:to_h)
        end

        # Passes when no such job was enqueued. See {#assert_enqueued}.
        #
        # @param job_class (see #assert_enqueued)
        # @param wanted [Hash{Symbol => Object}] as for {#assert_enqueued}, but no count
        # @yield (see #assert_enqueued)
        # @return [Array<Hash>] empty
        # @raise (see #assert_enqueued)
        # @since 0.1.0
        def refute_enqueued(job_class, **wanted, &)
          raise ArgumentError, "refute_enqueued takes no count: it expects no job at all" if wanted.key?(:count)

          assert_enqueued(job_class, **wanted, count: 0, &)
        end

        private

        def enqueued_by
          return Testing.records unless block_given?

          before = Testing.records
          yield
          Testing.records.reject { |record| before.any? { |other| other.equal?(record) } }
        end
      end
    end
  end
end
