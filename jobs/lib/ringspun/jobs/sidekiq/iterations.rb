# frozen_string_literal: true

module Ringspun
  module Jobs
    module Sidekiq
      # Where the places of iterable jobs are kept, see {Job::Iterable}.
      #
      # @api private
      module Iterations
        # Seconds for which a place is kept after it was last written.
        KEPT_SECONDS = 30 * 86_400

        # Has a job end before one of its next steps. May switch strands.
        #
        # @return [Integer] when it was first cancelled, in seconds since the epoch
        def self.cancel(jid)
          key = key_of(jid)
          replies = Sidekiq.redis do |redis|
            redis.pipelined do |pipe|
              pipe.call("HSETNX", key, "cancelled", Process.clock_gettime(Process::CLOCK_REALTIME, :second))
              pipe.call("HGET", key, "cancelled")
              pipe.call("EXPIRE", key, KEPT_SECONDS, "NX")
            end
          end
          replies[1].to_i
        end

        def self.key_of(jid) = "it-#{jid}"
      end
      private_constant :Iterations
    end
  end
end
