# frozen_string_literal: true

module Ringspun
  module Jobs
    module Sidekiq
      # A job's fields by Sidekiq's names, any of which may be set, in place of our options. Those that nobody knows are kept.
      #
      # @api private
      class Fields < Template
        # @param job_class [Class, String]
        # @param fields [Hash{String => Object}] without the arguments
        def initialize(job_class, fields)
          @fields = fields
          super(job_class, { queue: fields["queue"], unique_for: fields["unique_for"], priority: Wire.priority(fields) })
          @plain = %w[jid created_at at].none? { |name| fields.key?(name) }
        end

        # @return [Hash{String => Object}] with "at", as Sidekiq's middleware sees it
        def job(arguments, milliseconds, at = nil) = super.merge(@fields.slice("jid", "created_at"), { "at" => at }.compact)

        def push(arguments, milliseconds, at = nil, delay = nil)
          @plain ? super : push_of(job(arguments, milliseconds, at), milliseconds, at, delay)
        end

        # A middleware may have changed when it is due, or have deleted that.
        def push_of(job, milliseconds, _at, delay) = super(job.except("at"), milliseconds, job["at"], delay)

        # Sidekiq's middleware stops a job by what it returns as well.
        def passes?(answer) = answer ? true : false

        private

        def fields = @fields
      end

      # Enqueues jobs that are given as a Hash.
      class Client
        # A time from this number on is seconds since the epoch, and one below it seconds from now.
        TIMES_FROM = 1_000_000_000
        # The most jobs in one batch; fewer of those that wait for a time.
        BATCH = 1000
        BATCH_WAITING = 100
        # The shortest spread_interval.
        SPREAD_LEAST = 5
        private_constant :BATCH, :BATCH_WAITING, :SPREAD_LEAST

        class << self
          # @since 0.1.0
          def push(item) = new.push(item)

          # @since 0.1.0
          def push_bulk(...) = new.push_bulk(...)

          # @since 0.1.0
          def enqueue(klass, *arguments) = klass.client_push("class" => klass, "args" => arguments)

          # @since 0.1.0
          def enqueue_to(queue, klass, *arguments)
            klass.client_push("queue" => queue, "class" => klass, "args" => arguments)
          end

          # @since 0.1.0
          def enqueue_to_in(queue, interval, klass, *arguments)
            klass.set("queue" => queue, "wait" => interval).perform_async(*arguments)
          end

          # @since 0.1.0
          def enqueue_in(interval, klass, *arguments) = klass.perform_in(interval, *arguments)

          # Jobs that are enqueued in the block go to that pool's server. May switch strands, where the block does.
          #
          # @param pool [RedisPool, ConnectionPool] which {RedisConnection.create} has made, or a pool of clients of redis-client:
          #   see {RedisPool.of}
          # @return [Object] the block's value
          # @raise [ArgumentError] if it is no such pool
          # @since 0.1.0
          def via(pool, &)
            check_pool(pool)
            RedisPool.with_current(pool, &)
          end

          # @return [RedisPool, ConnectionPool, nil] the one of {via}
          # @api private
          def pool = RedisPool.current

          # @api private
          def check_pool(pool) = RedisPool.check(pool)

          # When something is due that is told as Sidekiq takes it: seconds from now, or since the epoch.
          #
          # @param interval [Numeric, Time, Date]
          # @return [Float, nil] seconds since the epoch; nil: at once
          # @api private
          def due(interval)
            now = Process.clock_gettime(Process::CLOCK_REALTIME)
            at = time(interval, now)
            at if at > now
          end

          # @return [Float] seconds since the epoch, which may be past
          # @api private
          def time(interval, now = Process.clock_gettime(Process::CLOCK_REALTIME))
            interval = interval.to_time if !interval.respond_to?(:to_f) && interval.respond_to?(:to_time)
            seconds = interval.to_f
            seconds < TIMES_FROM ? now + seconds : seconds
          end

          # Our errors about jobs are Sidekiq's.
          #
          # @api private
          def translating
            yield
          rescue InvalidJobError => error
            raise ArgumentError, error.message
          end
        end

        # @param pool [RedisPool, ConnectionPool, nil] nil: that of {via}, or of the settings
        # @param chain [Middleware::Chain, nil] nil: that of the settings
        # @since 0.1.0
        def initialize(pool: nil, config: nil, chain: nil)
          @config = config || Sidekiq.default_configuration
          @given = pool || Client.pool
          Client.check_pool(@given) if @given
          @chain = chain
        end

        # @return [RedisPool, ConnectionPool]
        # @since 0.1.0
        def redis_pool = @given || @config.redis_pool

        # @yieldparam chain [Middleware::Chain] a copy, for this client alone
        # @return [Middleware::Chain]
        # @since 0.1.0
        def middleware
          if block_given?
            @chain = (@chain || @config.client_middleware).dup
            yield @chain
          end
          @chain || @config.client_middleware
        end

        # Cancels an iterable job: it ends before one of its next steps. May switch strands.
        #
        # @param jid [String]
        # @return [Integer] when it was first cancelled, in seconds since the epoch
        # @since 0.1.0
        def cancel!(jid) = Iterations.cancel(jid)

        # Enqueues a job. May switch strands.
        #
        # @param item [Hash{String => Object}] "class" and "args"; "at", and all that `sidekiq_options` takes
        # @return [String, nil] its jid; nil: a middleware has stopped it
        # @raise [ArgumentError] which says what is wrong
        # @raise (see Jobs::Enqueuer#push)
        # @since 0.1.0
        def push(item)
          check(item)
          klass, arguments = item.values_at("class", "args")
          template = item.size == 2 && klass.is_a?(Class) ? common(klass, item) : Fields.new(klass, normalized(item))
          in_its_pool { Client.translating { target.push(template, plain(klass, arguments)) } }
        end

        # Enqueues many jobs. May switch strands.
        #
        # @param items [Hash{String => Object}] as {Client#push}; "args" has those of each. Also :at, of all or of each,
        #   :batch_size and :spread_interval
        # @return [Array<String, nil>] as {Client#push} returns for each
        # @raise [ArgumentError] which says what is wrong
        # @raise [BulkError] when some of them are stored and some are not
        # @since 0.1.0
        def push_bulk(items)
          items = items.transform_keys(&:to_s)
          all = items["args"]
          at = times(items, all)
          check_jid(items, all)
          fields = normalized(items.except("at", "batch_size", "spread_interval", "jid"))
          client = target
          results = []
          all.each_slice(items["batch_size"] || (at ? BATCH_WAITING : BATCH)) do |slice|
            results.concat(beside(results, slice) do
              in_its_pool { push_slice(client, items["class"], fields, slice, at, results.size) }
            end)
          end
          results
        end

        # A job with these fields, as it is stored.
        #
        # @param item [Hash{String => Object}]
        # @return [Hash{String => Object}] without the arguments
        # @raise [ArgumentError]
        # @api private
        def normalized(item)
          check(item)
          fields = options_of(item["class"])
          fields = fields.merge(item["wrapped"].get_sidekiq_options) if item["wrapped"].respond_to?(:get_sidekiq_options)
          fields = fields.merge(item)
          %w[args client_class pool sync enqueued_at].each { |name| fields.delete(name) }
          fields["class"] = fields["class"].to_s
          fields["queue"] = fields["queue"].to_s
          fields["retry_for"] = fields["retry_for"].to_i if fields["retry_for"]
          %w[unique_for at].each { |name| fields[name] = number(fields[name]) if fields[name] }
          Client.translating do
            Options.queue("queue", fields["queue"])
            Options.priority(Wire::PRIORITY, fields.fetch(Wire::PRIORITY, 0))
          end
          fields
        end

        # A job as a worker would get it.
        #
        # @param fields [Hash{String => Object}] {#normalized}
        # @return [Hash{String => Object}, nil] nil: a middleware has stopped it
        # @raise [InvalidJobError]
        # @api private
        def job(klass, fields, arguments)
          push = target.made(Fields.new(klass, fields), plain(klass, arguments), nil, nil)
          push && Wire.parse(push.entry)
        end

        # @param item [Object]
        # @raise [ArgumentError] it is no job
        # @api private
        def check(item)
          unless item.is_a?(Hash) && item.key?("class") && item.key?("args")
            refuse("a job must be a Hash that has \"class\" and \"args\"", item)
          end

          klass, arguments, at, tags = item.values_at("class", "args", "at", "tags")
          refuse("args must be an Array", item) unless arguments.is_a?(Array) || arguments.is_a?(Enumerator::Lazy)
          refuse("class must be a class or its name", item) unless klass.is_a?(Class) || klass.is_a?(String)
          refuse("at must be seconds since the epoch", item) unless at.is_a?(Numeric) || !item.key?("at")
          refuse("tags must be an Array", item) unless tags.nil? || tags.is_a?(Array)
        end

        # @param klass [Class, String]
        # @return [Hash{String => Object}] what a job of it has unless it says otherwise
        # @raise [ArgumentError]
        # @api private
        def options_of(klass)
          return Sidekiq.default_job_options if klass.is_a?(String)
          return klass.get_sidekiq_options if klass.respond_to?(:get_sidekiq_options)

          raise ArgumentError, "#{klass} does not include Sidekiq::Job; give its name, a String, if only others can run it"
        end

        # Arguments that may be stored, see {Sidekiq.strict_args!}.
        #
        # @param klass [Class, String]
        # @param arguments [Array]
        # @return [Array]
        # @api private
        def plain(klass, arguments)
          mode = Sidekiq.strict_args
          return arguments if mode == :raise

          Arguments.check(arguments)
          arguments
        rescue InvalidJobError => error
          Kernel.warn("#{klass}: #{error.message}") if mode == :warn
          JSON.parse(JSON.generate(arguments))
        end

        private

        # Middleware gets the pool.
        def in_its_pool(&) = @given.nil? || @given.equal?(Client.pool) ? yield : Client.via(@given, &)

        # The fields that all jobs of a class have which say nothing of their own. A class may have changed its options in place.
        def common(klass, item)
          options, fields = klass.instance_variable_get(:@ringspun_fields)
          return fields if fields && options == options_of(klass)

          fields = Fields.new(klass, normalized(item))
          klass.instance_variable_set(:@ringspun_fields, [options_of(klass).dup, fields].freeze)
          fields
        end

        def refuse(what, item) = raise(ArgumentError, "#{what}, got #{item.inspect[0, 200]}")

        # A duration of ActiveSupport's is a number, but not for JSON.
        def number(value) = value.is_a?(Integer) ? value : value.to_f

        def target
          client = Jobs.client
          return client unless @given || @chain

          kept_here = defined?(Jobs::Testing) && Jobs::Testing.mode != :real
          client.with((RedisPool.of(@given).enqueuer if @given && !kept_here), @chain&.chain)
        end

        # The error of a batch does not hide what batches before it have stored.
        def beside(results, slice)
          yield
        rescue Error => error
          raise if results.none?

          raise BulkError.new(results + (error.is_a?(BulkError) ? error.results : Array.new(slice.size, error)))
        end

        def push_slice(client, klass, fields, slice, at, first)
          raise ArgumentError, "args must be an Array of Arrays, one for each job" unless slice.all?(Array)

          common = Fields.new(klass, fields)
          indexed = slice.each_with_index.map { |arguments, index| [plain(klass, arguments), first + index] }
          Client.translating do
            client.push_all(indexed) do |(arguments, index)|
              due = due_of(at, index)
              client.made(due ? Fields.new(klass, fields.merge("at" => due)) : common, arguments, nil, nil)
            end
          end
        end

        # A past one stays one, so that these jobs come in the order of their times.
        def due_of(at, index)
          time = at.is_a?(Array) ? at[index] : at
          Client.time(time) if time
        end

        def check_jid(items, all)
          raise ArgumentError, "several jobs cannot have the same jid" if items["jid"] && all.size > 1
        end

        def times(items, all)
          at, spread = items.values_at("at", "spread_interval")
          raise ArgumentError, "at must be a number, or an Array of numbers" unless at.nil? || numbers?(at)
          raise ArgumentError, "at must have a number for each job" if at.is_a?(Array) && at.size != all.size
          return at unless spread

          raise ArgumentError, "at and spread_interval both say when; give one of them" if at
          raise ArgumentError, "spread_interval must be a positive number" unless spread.is_a?(Numeric) && spread.positive?

          all.map { rand * [spread, SPREAD_LEAST].max }.to_a
        end

        # A duration of ActiveSupport's says that it is one.
        def numbers?(at) = at.is_a?(Array) ? at.any? && at.all? { |each| each.is_a?(Numeric) } : at.is_a?(Numeric)
      end
    end
  end
end
