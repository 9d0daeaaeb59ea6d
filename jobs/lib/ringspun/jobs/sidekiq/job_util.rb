# frozen_string_literal: true

module Ringspun
  module Jobs
    module Sidekiq
      # What gems include that make jobs as a Hash.
      module JobUtil
        TRANSIENT_ATTRIBUTES = [].freeze

        # @param item [Hash{String => Object}] a job
        # @return [nil]
        # @raise [ArgumentError] which says what is wrong with it
        # @since 0.1.0
        def validate(item)
          Client.new.check(item)
          nil
        end

        # @param item [Hash{String => Object}] a job, whose "args" are looked at
        # @return [nil]
        # @raise [ArgumentError] they would not survive JSON, see {Sidekiq.strict_args!}
        # @since 0.1.0
        def verify_json(item)
          name = item["wrapped"] || item["class"]
          Client.translating { Arguments.check(item["args"]) } if Sidekiq.strict_args == :raise
          Client.new.plain(name, item["args"]) if Sidekiq.strict_args == :warn
          nil
        end

        # @param item [Hash{String => Object}] "class" and "args", and what `sidekiq_options` takes
        # @return [Hash{String => Object}] with a jid, and all that its class says
        # @raise [ArgumentError]
        # @since 0.1.0
        def normalize_item(item)
          { "jid" => Ids.jid, "created_at" => now_in_millis, **Client.new.normalized(item), "args" => item["args"] }
        end

        # @return [Integer] milliseconds since the epoch
        # @since 0.1.0
        def now_in_millis = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)

        # @param item_class [Class, String]
        # @return [Hash{String => Object}] the options that its jobs have
        # @raise [ArgumentError] it is no class of jobs
        # @since 0.1.0
        def normalized_hash(item_class) = Client.new.options_of(item_class)
      end
    end
  end
end
