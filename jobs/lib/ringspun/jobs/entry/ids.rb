# frozen_string_literal: true

require "securerandom"

module Ringspun
  module Jobs
    # What is new in each job: who it is and when it was made.
    #
    # @api private
    module Ids
      # So many jids are made from one read of the kernel's random bytes.
      BATCH = 256
      FORM = ("H24" * BATCH).freeze

      @jids = []
      @pid = Process.pid
      @seconds = @milliseconds = [0, ""].freeze

      class << self
        # 24 hexadecimal digits that nobody else has, other threads and forked children included: a pop from an Array gives its
        # item to one of them only.
        #
        # @return [String]
        def jid
          return fresh unless Process.pid == @pid

          @jids.pop || fresh
        end

        # The present as JSON text, in milliseconds: it is the same for many jobs, and to print a Float takes longer.
        #
        # @param milliseconds [Boolean] see {Config#milliseconds}
        # @return [String]
        def now(milliseconds)
          time = Process.clock_gettime(Process::CLOCK_REALTIME, :millisecond)
          known, text = milliseconds ? @milliseconds : @seconds
          return text if known == time

          text = text_of(time, milliseconds)
          # One write each, for other threads read them.
          milliseconds ? @milliseconds = [time, text.freeze].freeze : @seconds = [time, text.freeze].freeze
          text
        end

        # As JSON writes it again: Sidekiq looks for an entry by what it writes itself.
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
