# frozen_string_literal: true

require "securerandom"

module Ringspun
  module Jobs
    # The jids of jobs, and the times at which they are made.
    #
    # @api private
    module Ids
      # The jids that are made of one read of random bytes.
      BATCH = 256
      FORM = ("H24" * BATCH).freeze

      @jids = []
      @pid = Process.pid
      @seconds = @milliseconds = [0, ""].freeze

      class << self
        # 24 hexadecimal digits that no other job has. Threads share the Array, and each item is popped by one of them only; a
        # forked child makes its own.
        #
        # @return [String]
        def jid
          return fresh unless Process.pid == @pid

          @jids.pop || fresh
        end

        # The time as JSON text. Jobs of the same millisecond share one text: to print a Float takes longer than to compare.
        #
        # @param milliseconds [Boolean] see {Config#milliseconds}
        # @return [String]
        def now(milliseconds)
          time = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
          known, text = milliseconds ? @milliseconds : @seconds
          return text if known == time

          text = text_of(time, milliseconds)
          # Time and text in one write each, for other threads read them.
          milliseconds ? @milliseconds = [time, text.freeze].freeze : @seconds = [time, text.freeze].freeze
          text
        end

        # As JSON generates it: Sidekiq finds an entry by generating it again, see SortedEntry#reschedule in
        # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/api.rb
        #
        # @param time [Integer] milliseconds
        # @return [String]
        def text_of(time, milliseconds) = milliseconds ? time.to_s : (time / 1000.0).to_s

        private

        def fresh
          jids = SecureRandom.bytes(12 * BATCH).unpack(FORM)
          jid = jids.pop
          @jids = jids
          @pid = Process.pid
          jid
        end
      end
    end
    private_constant :Ids
  end
end
