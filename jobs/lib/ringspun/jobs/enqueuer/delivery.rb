# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Brings a batch into the storage, again where that is safe.
      #
      # Its answer is as {Storage#push} gives it, or an error that holds for all of the batch.
      #
      # @api private
      class Delivery
        # Seconds before each further attempt.
        PAUSES = [0.05, 0.2, 0.5].freeze

        # @return [Storage]
        attr_reader :storage

        def initialize(storage)
          @storage = storage
        end

        # May switch strands.
        #
        # @param pushes [Array<Storage::Push>]
        # @param connection [Object, nil]
        # @return [nil, Array<String, Error, nil>, Exception]
        def deliver(pushes, connection = nil)
          attempts = 0
          begin
            connection ? @storage.push(pushes, connection: connection) : @storage.push(pushes)
          rescue UnavailableError => error # nothing was sent
            return error if attempts == PAUSES.size

            sleep(PAUSES[attempts])
            attempts += 1
            retry
          rescue UnknownOutcomeError => error
            settle(pushes, connection, error)
          rescue StandardError => error
            error
          end
        end

        private

        # A push with a lock knows itself again. Of the others nobody knows, and to store them twice would be worse.
        def settle(pushes, connection, error)
          places = pushes.each_index.select { |index| pushes[index].lock }
          return error if places.empty?

          answers = again(pushes.values_at(*places), connection, error)
          return error if answers.is_a?(Exception)

          all = Array.new(pushes.size, error)
          places.each_with_index { |place, index| all[place] = answers&.[](index) }
          all.any? ? all : nil
        end

        def again(pushes, connection, error)
          PAUSES.each do |pause|
            sleep(pause)
            return connection ? @storage.push(pushes, connection: connection) : @storage.push(pushes)
          rescue UnavailableError, UnknownOutcomeError
            next # what the first attempt has done is as unknown as before
          rescue StandardError
            break
          end
          error
        end
      end
      private_constant :Delivery
    end
  end
end
