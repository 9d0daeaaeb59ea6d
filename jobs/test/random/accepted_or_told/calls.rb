# frozen_string_literal: true

require "ringspun/jobs/sidekiq"

module AcceptedOrTold
  Jobs = Ringspun::Jobs

  # The public ways to enqueue. Each job has a number as its only argument. A way answers for each job what its caller was told:
  # a jid, nil, an error, or that a call has {Kept} an error back. What it raises holds for all of its jobs.
  module Calls
    HOUR = 3600
    # The queue that no job can be stored in, for its key is no list.
    SPOILT = "spoilt"
    QUEUES = ["default", "low", SPOILT].freeze
    # How many locks there are for jobs that have one.
    LOCKS = 3

    # A framework's call that has ended normally though a job is not stored, or not for certain.
    Kept = Data.define(:what, :error)

    # What jobs do in a worker.
    module Counted
      def perform(number) = Calls.executions << number
    end

    class Quick
      include Jobs::Job
      include Counted
    end

    class ByOtherNames
      include Sidekiq::Job
      include Counted
    end

    class << self
      # @return [Thread::Queue] the numbers of jobs that a worker has run
      def executions = @executions ||= Thread::Queue.new

      # @return [RedisPool] of the calls that have one of their own
      attr_accessor :pool

      # @param job [Hash] as a worker gets it
      # @return [Integer]
      def number_of(job) = job["args"].first.then { |first| first.is_a?(Hash) ? first["arguments"].first : first }

      def lock_of(number) = "lock#{number % LOCKS}"

      def push_of(number, queue)
        jid = Jobs::Wire.new_jid
        entry = { "class" => Quick.name, "args" => [number], "queue" => queue, "jid" => jid, "retry" => true }
        Jobs::Storage::Push.new(queue: queue, entry: Jobs::Wire.dump(entry), jid: jid)
      end

      def on_own_connection
        connection = Jobs.storage.connect
        yield connection
      ensure
        connection.close
      end

      # @param way [Symbol]
      # @param numbers [Array<Integer>] of the jobs
      # @return [Array<String, nil, Exception, Kept>]
      # @raise [Exception]
      def call(way, numbers, queue)
        return [ONE.fetch(way).call(numbers.first, queue)] if ONE.key?(way)

        MANY.fetch(way).call(numbers, queue)
      rescue Jobs::BulkError => error
        # Those that are missing at the end have not been tried.
        error.results + Array.new(numbers.size - error.results.size, Jobs::UnavailableError.new("not tried"))
      end
    end

    ONE = {
      perform_async: ->(number, _) { Quick.perform_async(number) },
      perform_in: ->(number, _) { Quick.perform_in(HOUR, number) },
      perform_in_no_time: ->(number, _) { Quick.perform_in(0, number) },
      perform_at: ->(number, _) { Quick.perform_at(Time.now + HOUR, number) },
      set: ->(number, queue) { Quick.set(queue: queue).perform_async(number) },
      set_in: ->(number, queue) { Quick.set(queue: queue, in: HOUR).perform_async(number) },
      set_at: ->(number, queue) { Quick.set(queue: queue, at: Time.now + HOUR).perform_async(number) },
      set_priority: ->(number, queue) { Quick.set(queue: queue, priority: number % 5).perform_async(number) },
      set_unique: lambda do |number, _|
        Quick.set(unique_for: HOUR, unique_token: lock_of(number), unique_until: :expiry).perform_async(number)
      end,
      set_connection: lambda do |number, queue|
        on_own_connection { |connection| Quick.set(queue: queue, connection: connection).perform_async(number) }
      end,
      enqueue: ->(number, _) { Jobs.enqueue(Quick, number) },
      enqueue_name: ->(number, _) { Jobs.enqueue("Elsewhere", number) },
      enqueue_in: ->(number, _) { Jobs.enqueue_in(HOUR, Quick, number) },
      enqueue_at: ->(number, _) { Jobs.enqueue_at(Time.now + HOUR, Quick, number) },
      follow_with: ->(number, queue) { Quick.new.follow_with(Quick.set(queue: queue), number) },
      enqueuer_push: ->(number, queue) { Jobs.enqueuer.push(push_of(number, queue)) },
      sidekiq_perform_async: ->(number, _) { ByOtherNames.perform_async(number) },
      sidekiq_perform_in: ->(number, _) { ByOtherNames.perform_in(HOUR, number) },
      sidekiq_perform_at: ->(number, _) { ByOtherNames.perform_at(Time.now + HOUR, number) },
      sidekiq_set: ->(number, queue) { ByOtherNames.set(queue: queue).perform_async(number) },
      sidekiq_set_wait: ->(number, queue) { ByOtherNames.set(queue: queue, wait: HOUR).perform_async(number) },
      sidekiq_push: ->(number, queue) { Sidekiq::Client.push("class" => ByOtherNames, "args" => [number], "queue" => queue) },
      sidekiq_enqueue: ->(number, _) { Sidekiq::Client.enqueue(ByOtherNames, number) },
      sidekiq_enqueue_to: ->(number, queue) { Sidekiq::Client.enqueue_to(queue, ByOtherNames, number) },
      sidekiq_enqueue_to_in: ->(number, queue) { Sidekiq::Client.enqueue_to_in(queue, HOUR, ByOtherNames, number) },
      sidekiq_enqueue_in: ->(number, _) { Sidekiq::Client.enqueue_in(HOUR, ByOtherNames, number) },
      sidekiq_pool: ->(number, _) { Sidekiq::Client.new(pool: pool).push("class" => ByOtherNames, "args" => [number]) },
      sidekiq_via: ->(number, _) { Sidekiq::Client.via(pool) { ByOtherNames.perform_async(number) } }
    }.freeze

    MANY = {
      perform_bulk: ->(numbers, _) { Quick.perform_bulk(numbers.zip) },
      set_perform_bulk: ->(numbers, queue) { Quick.set(queue: queue, in: 0).perform_bulk(numbers.zip) },
      set_connection_perform_bulk: lambda do |numbers, queue|
        on_own_connection { |connection| Quick.set(queue: queue, connection: connection).perform_bulk(numbers.zip) }
      end,
      enqueue_all: lambda do |numbers, queue|
        kinds = [Quick, "Elsewhere", Quick.set(queue: queue), Quick.set(queue: queue, in: HOUR)]
        Jobs.enqueue_all(numbers.map { |number| [kinds[number % kinds.size], number] })
      end,
      enqueuer_push_all: lambda do |numbers, queue|
        Jobs.enqueuer.push_all(numbers.map { |number| push_of(number, number.even? ? queue : "default") })
      end,
      sidekiq_perform_bulk: ->(numbers, _) { ByOtherNames.perform_bulk(numbers.zip) },
      sidekiq_push_bulk: lambda do |numbers, queue|
        Sidekiq::Client.push_bulk("class" => ByOtherNames, "args" => numbers.zip, "queue" => queue, batch_size: 2)
      end,
      sidekiq_push_bulk_at: lambda do |numbers, _|
        Sidekiq::Client.push_bulk("class" => ByOtherNames, "args" => numbers.zip, "at" => Time.now.to_f + HOUR)
      end
    }.freeze
  end
end
