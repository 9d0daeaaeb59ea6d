# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Stores a batch, and tries those pushes again that may be sent twice: where nothing was done, and where a push has a lock,
      # for the storage recognises it even after its job has run. Other pushes without an answer may be stored already, and to
      # store a job twice would be worse.
      #
      # @api private
      class Delivery
        # Seconds before each further attempt.
        PAUSES = [0.05, 0.2, 0.5].freeze
        # Seconds after which there is no further attempt: the storage could have forgotten the first one when it arrives.
        KNOWN_SECONDS = Storage::AGAIN_SECONDS / 2

        # @return [Storage]
        attr_reader :storage

        # @return [Attendance, nil]
        attr_accessor :attendance

        def initialize(storage)
          @storage = storage
        end

        # May switch strands.
        #
        # @param pushes [Array<Storage::Push>]
        # @param connection [Object, nil]
        # @return [nil, Array<String, Exception, nil>, Exception] as {Storage#push}; or an error that holds for all of them
        def deliver(pushes, connection = nil)
          began = now
          answers = attempt(pushes, connection)
          @attendance&.pass(began)
          return unless answers

          answers = Array.new(pushes.size, answers) if answers.is_a?(Exception)
          PAUSES.each do |pause|
            places = pushes.each_index.select { |place| again?(pushes[place], answers[place], began) }
            break if places.empty?

            sleep(pause)
            update(answers, places, attempt(pushes.values_at(*places), connection))
          end
          result(answers)
        end

        private

        def attempt(pushes, connection)
          connection ? @storage.push(pushes, connection: connection) : @storage.push(pushes)
        rescue StandardError => error
          error
        end

        def again?(push, answer, began)
          answer.is_a?(UnavailableError) ||
            (answer.is_a?(UnknownOutcomeError) && push.lock && now - began < KNOWN_SECONDS)
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

        # An error of a later attempt does not tell what an earlier one has done: that stays unknown.
        def update(answers, places, later)
          places.each_with_index do |place, index|
            answer = later.is_a?(Array) ? later[index] : later
            answers[place] = answer unless answer.is_a?(Exception) && answers[place].is_a?(UnknownOutcomeError)
          end
        end

        def result(answers)
          return unless answers.any?

          first = answers.first
          first.is_a?(Exception) && answers.all? { |answer| answer.equal?(first) } ? first : answers
        end
      end
      private_constant :Delivery
    end
  end
end
