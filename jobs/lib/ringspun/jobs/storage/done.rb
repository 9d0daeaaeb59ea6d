# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      # How the run of a job has gone that is done. `seconds`: how long it has taken; `class_name`: of the job's class, and not of
      # one that wraps it.
      Ran = Struct.new(:seconds, :class_name)

      # A job that is done. `at`: when, in seconds since the epoch; `queue`: from which it was fetched; `node`: where it ran.
      # `seconds` and `class_name` as in {Ran}. `token` is valid among the done.
      Done = Struct.new(:token, :entry, :at, :queue, :node, :seconds, :class_name)

      # @!group Jobs that are done

      # Reads jobs that are done, of those whose acks have said that they are to be kept.
      #
      # @param from [Integer] 0 is the one that was done last
      # @param count [Integer]
      # @param job_class [Class, String, nil] only those of that class
      # @param queue [String, nil] only those that were fetched from that queue
      # @param from_end [Boolean] 0 is the one that was done first, and the others follow
      # @return [Array<Done>, nil] nil: this storage keeps none
      # @since 0.1.0
      def done(from, count, job_class: nil, queue: nil, from_end: false, connection: nil) = missing(:done)

      # @param token [String]
      # @return [Done, nil] nil: it is not there any more
      # @since 0.1.0
      def find_done(token, connection: nil) = missing(:find_done)

      # Forgets jobs that have been done for more than `seconds`.
      #
      # @param seconds [Numeric]
      # @return [Integer] how many there were
      # @raise [UnknownOutcomeError] all, some or none may be forgotten
      # @since 0.1.0
      def trim_done(seconds, connection: nil) = missing(:trim_done)

      # @!endgroup

      # {#measured_minutes} goes back so far.
      MINUTES_MAX = 60

      # How the jobs of a class went in each of the last minutes.
      #
      # @param class_name [String] as in {#measured}
      # @param count [Integer] how many minutes, {MINUTES_MAX} at most
      # @return [Array<Measure>] the earliest first; minutes in which none has ended are left out
      # @since 0.1.0
      def measured_minutes(class_name, count = MINUTES_MAX, connection: nil) = missing(:measured_minutes)
    end
  end
end
