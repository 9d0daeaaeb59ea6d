# frozen_string_literal: true

require_relative "../sidekiq"

module Ringspun
  module Jobs
    module Sidekiq
      # The numbers that dashboards and checks of health ask for. All are of the moment when the object was made, but for
      # {#queues} and {#queue_summaries}.
      class Stats
        # How a queue is.
        QueueSummary = Data.define(:name, :size, :latency, :paused) do
          alias_method :paused?, :paused
        end

        # May switch strands, as all methods that ask the storage.
        #
        # @since 0.1.0
        def initialize
          fetch_stats_fast!
        end

        # @api private
        def fetch_stats_fast!
          @stats = Jobs.storage.stats
          @nodes = Jobs.storage.nodes
          @latency = Queue.new.latency
        end

        { processed: :processed, failed: :failed, scheduled_size: :scheduled, retry_size: :retries, dead_size: :dead,
          enqueued: :enqueued }.each { |name, stat| define_method(name) { @stats[stat] } }

        # @return [Integer]
        # @since 0.1.0
        def processes_size = @nodes.size

        # @return [Integer] jobs that run
        # @since 0.1.0
        def workers_size = @nodes.sum { |node| node["busy"] }

        # @return [Float] seconds
        # @since 0.1.0
        def default_queue_latency = @latency

        # @return [Hash{String => Integer}] sizes by names, the largest first
        # @since 0.1.0
        def queues = Jobs.storage.stats[:queues].sort_by { |_, size| -size }.to_h

        # @return [Array<QueueSummary>] the largest first
        # @since 0.1.0
        def queue_summaries
          paused = Jobs.storage.paused
          queues.map do |name, size|
            QueueSummary.new(name:, size:, latency: Queue.new(name).latency, paused: paused.include?(name))
          end
        end
      end

      # A job that is stored.
      class JobRecord
        # @return [String] the entry
        # @since 0.1.0
        attr_reader :value
        # @return [Hash{String => Object}]
        # @since 0.1.0
        attr_reader :item
        # @return [String]
        # @since 0.1.0
        attr_reader :queue

        # @param place [String, Symbol]
        # @param stored [Storage::Stored]
        # @api private
        def initialize(place, stored)
          @place = place
          @token = stored.token
          @at = stored.at
          @value = stored.entry
          @item = Wire.read(@value) || {}
          @queue = @item["queue"] || (place if place.is_a?(String))
        end

        # @since 0.1.0
        def klass = @item["class"]
        # @since 0.1.0
        def args = @item["args"]
        # @since 0.1.0
        def jid = @item["jid"]
        # @since 0.1.0
        def bid = @item["bid"]
        # @since 0.1.0
        def tags = @item["tags"] || []
        # @since 0.1.0
        def [](name) = @item[name]

        # @return [String] that of a job of Active Job
        # @since 0.1.0
        def display_class = @item["wrapped"] || klass

        # @return [Array<Object>] those of a job of Active Job
        # @since 0.1.0
        def display_args = @item["wrapped"] ? args.first["arguments"] : args

        # @return [Array<String>, nil]
        # @since 0.1.0
        def error_backtrace = @item["error_backtrace"] && Backtrace.load(@item["error_backtrace"])

        %w[failed_at retried_at enqueued_at created_at].each do |name|
          define_method(name) { (seconds = Wire.seconds(@item[name])) && Time.at(seconds).utc }
        end

        # @return [Float] seconds since it was enqueued
        # @since 0.1.0
        def latency
          time = Wire.seconds(@item["enqueued_at"] || @item["created_at"])
          time ? Process.clock_gettime(Process::CLOCK_REALTIME) - time : 0.0
        end

        # @return [Boolean] whether it was there. May switch strands
        # @since 0.1.0
        def delete = Jobs.storage.remove(@place, [@token]).first
      end

      # A job of a set.
      class SortedEntry < JobRecord
        # @return [Float] seconds since the epoch
        # @since 0.1.0
        def score = @at

        # @since 0.1.0
        def at = Time.at(score).utc

        # @since 0.1.0
        def id = "#{score}|#{jid}"

        # @since 0.1.0
        def error? = !@item["error_class"].nil?

        # Puts it into its queue. May switch strands.
        #
        # @return [Boolean] whether it was there
        # @since 0.1.0
        def add_to_queue = Jobs.storage.retry_now(@place, [@token]).first

        # Puts it into its queue, for a try that is not counted. May switch strands.
        #
        # @return [Boolean] whether it was there
        # @since 0.1.0
        def retry = FreeTries.give(@place, [[@token, @item]]).first

        # Puts it among the dead, and tells the death handlers. May switch strands.
        #
        # @return [Boolean] whether it was there
        # @since 0.1.0
        def kill = Jobs.storage.kill(@place, [@token]).first.tap { |moved| Deaths.tell(@item) if moved }
      end

      # Tries that are not counted, for they are asked for by hand.
      #
      # @api private
      module FreeTries
        # @param place [Symbol]
        # @param jobs [Array<Array(String, Hash)>] tokens and items
        # @return [Array<Boolean>] whether each was there, and is a job
        def self.give(place, jobs)
          jobs.chunk_while { |(_, one), (_, other)| one["queue"] == other["queue"] }.flat_map do |some|
            queue = some.first.last["queue"]
            next some.map { false } unless queue.is_a?(String)

            Jobs.storage.move(place, some.map { |token, item| Storage::Move.new(token, entry(item)) }, queue)
          end
        end

        def self.entry(item)
          count = item["retry_count"]
          now = Wire.time(Process.clock_gettime(Process::CLOCK_REALTIME), milliseconds: Jobs.config.milliseconds)
          Wire.dump({ **item.except("at"), **(count.is_a?(Integer) ? { "retry_count" => count - 1 } : {}), "enqueued_at" => now })
        end
        private_class_method :entry
      end
      private_constant :FreeTries

      # What tells the death handlers of jobs that are killed by hand.
      #
      # @api private
      module Deaths
        def self.tell(job, error = nil)
          error ||= RuntimeError.new("Job killed by API").tap { |made| made.set_backtrace(caller) }
          Sidekiq.default_configuration.death_handlers.each { |handler| handler.call(job, error) }
        end
      end
      private_constant :Deaths

      # Goes through what is stored, page by page, from the newest or latest one. So whoever removes what it sees misses none.
      #
      # @api private
      module Pages
        include Enumerable

        # Jobs in one call of the storage, as Sidekiq has it:
        # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/api.rb (page_size)
        PAGE = 50
        private_constant :PAGE

        # @yieldparam record [JobRecord]
        def each
          return to_enum unless block_given?

          till = size
          while till.positive?
            from = [till - PAGE, 0].max
            page(from, till - from).reverse_each { |stored| yield record(stored) }
            till = from
          end
        end

        # @return [JobRecord, nil]
        def find_job(jid) = find { |record| record.jid == jid }

        # Forgets all.
        #
        # @return [true]
        def clear
          Jobs.storage.clear(@place)
          true
        end
      end
      private_constant :Pages

      # The jobs that wait in a queue.
      class Queue
        include Pages

        # @return [Array<Queue>]
        # @since 0.1.0
        def self.all = Jobs.storage.stats[:queues].keys.sort.map { |name| new(name) }

        # @since 0.1.0
        attr_reader :name

        # @since 0.1.0
        def initialize(name = "default")
          @place = @name = name.to_s
        end

        # @since 0.1.0
        def size = Jobs.storage.stats[:queues].fetch(@name, 0)

        # @since 0.1.0
        def paused? = Jobs.storage.paused.include?(@name)

        # @return [Float] seconds for which the oldest has waited
        # @since 0.1.0
        def latency = Jobs.storage.list(@name, 0, 1).sum { |stored| record(stored).latency }.to_f

        private

        def page(from, count) = Jobs.storage.list(@name, from, count)
        def record(stored) = JobRecord.new(@name, stored)
      end

      # The jobs of a set.
      class JobSet
        include Pages

        # @since 0.1.0
        def name = @place.name

        # @since 0.1.0
        def size = Jobs.storage.stats[self.class::STAT]

        # Puts all into their queues, for a try that is not counted. May switch strands.
        #
        # @since 0.1.0
        def retry_all
          all_at_once { |tokens, jobs| FreeTries.give(@place, tokens.zip(jobs.map { |job| Wire.read(job.entry) || {} })) }
        end

        # Puts all among the dead. May switch strands.
        #
        # @param notify_failure [Boolean] whether the death handlers are told
        # @param ex [Exception, nil] what they are told
        # @since 0.1.0
        def kill_all(notify_failure: false, ex: nil)
          all_at_once do |tokens, jobs|
            Jobs.storage.kill(@place, tokens).each_with_index do |moved, index|
              Deaths.tell(Wire.read(jobs[index].entry) || {}, ex) if moved && notify_failure
            end
          end
        end

        # Puts a job into the set. May switch strands.
        #
        # @param timestamp [Time, Numeric] seconds since the epoch
        # @param job [Hash{String => Object}]
        # @return [Boolean] false: it is there already
        # @since 0.1.0
        def schedule(timestamp, job) = put(JSON.generate(job), timestamp.to_f)

        private

        def put(entry, at) = Jobs.storage.restore(@place, [Storage::Stored.new(nil, entry, at)]).first

        def page(from, count) = Jobs.storage.scan(@place, from, count)
        def record(stored) = SortedEntry.new(@place, stored)

        # Until nothing moves any more, as entries that are no jobs do not.
        def all_at_once
          loop do
            jobs = page(0, PAGE)
            break if jobs.empty? || yield(jobs.map(&:token), jobs).none?
          end
        end
      end

      { ScheduledSet: %i[schedule scheduled], RetrySet: %i[retry retries], DeadSet: %i[dead dead] }.each do |name, (place, stat)|
        const_set(name, Class.new(JobSet) do
          const_set(:STAT, stat)
          define_method(:initialize) { @place = place }
        end)
      end

      class DeadSet
        # Puts a job among the dead, as it is. May switch strands.
        #
        # @param message [String] its JSON
        # @param options [Hash] notify_failure: false, and the death handlers are not told; ex:, the Exception that they are told.
        #   `trim:` has no effect: workers remove the oldest
        # @return [true]
        # @raise [ArgumentError] it is no job
        # @since 0.1.0
        def kill(message, options = {})
          job = Wire.parse(message.to_s)
          put(message, Process.clock_gettime(Process::CLOCK_REALTIME))
          Deaths.tell(job, options[:ex]) unless options[:notify_failure] == false
          true
        rescue MalformedEntryError => error
          raise ArgumentError, "DeadSet#kill takes a job's JSON: #{error.message}"
        end
      end

      # The processes of workers.
      class ProcessSet
        include Enumerable

        # @since 0.1.0
        def each(&) = Jobs.storage.nodes.map { |node| Running.new(node) }.each(&)

        # @since 0.1.0
        def size = Jobs.storage.nodes.size

        # @since 0.1.0
        def total_concurrency = sum { |process| process["concurrency"].to_i }

        # @since 0.1.0
        def total_rss_in_kb = sum { |process| process["rss"].to_i }

        # One of them.
        class Running
          # @api private
          def initialize(node) = @node = node

          # @since 0.1.0
          def [](name) = @node[name]
          # @since 0.1.0
          def identity = @node["identity"]
          # @since 0.1.0
          def tag = @node["tag"]
          # @since 0.1.0
          def labels = [*@node["labels"]]
          # @since 0.1.0
          def queues = [*@node["queues"]]
          # @since 0.1.0
          def version = @node["version"]
          # @since 0.1.0
          def embedded? = @node["embedded"] == true
          # @since 0.1.0
          def stopping? = @node["quiet"] == true

          # It fetches no more jobs. May switch strands.
          #
          # @since 0.1.0
          def quiet! = Jobs.storage.signal(identity, "TSTP")

          # It ends. May switch strands.
          #
          # @since 0.1.0
          def stop! = Jobs.storage.signal(identity, "TERM")
        end
      end
    end
  end
end
