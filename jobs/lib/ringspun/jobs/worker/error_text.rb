# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # An error as it is written down: in an entry, in a job's history, and in the log.
      #
      # @api private
      module ErrorText
        # Characters of an error's message that are kept, as by Sidekiq, see exception_message in
        # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/job_retry.rb
        MESSAGE_MAX = 10_000
        # The same, in a job's history.
        SHORT_MAX = 200

        # An error's `message` may be the job's own code, and raise.
        def self.message_of(error)
          error.message.to_s.dup.force_encoding(Encoding::UTF_8).scrub[0, MESSAGE_MAX]
        rescue StandardError => another
          "its message raises #{another.class}"
        end

        # @return [Array(String, String), nil] an error's class and message as a job's history keeps them
        def self.short(error) = error && [error.class.name || error.class.to_s, message_of(error)[0, SHORT_MAX]]
      end
      private_constant :ErrorText
    end
  end
end
