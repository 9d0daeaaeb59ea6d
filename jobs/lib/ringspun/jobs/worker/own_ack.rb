# frozen_string_literal: true

module Ringspun
  module Jobs
    class Worker
      # Acknowledges a job in a transaction of the job's own: see {Job#done!}.
      #
      # The worker sends the outcome of such a run all the same. The storage then says what has become of the transaction: when it
      # is committed, the job is not in flight any more and nothing is done; when it is rolled back, the outcome counts.
      #
      # @api private
      class OwnAck
        # @param storage [Storage]
        # @param node [String]
        # @param keeps_done [Boolean] whether the storage is to keep jobs that are done
        def initialize(storage, node, keeps_done:)
          @storage = storage
          @node = node
          @keeps_done = keeps_done
        end

        # May switch strands.
        #
        # @param run [Run]
        # @param connection [Object] of the job's
        # @return [nil]
        # @raise [TakenAwayError]
        # @raise [UsageError]
        def call(run, connection)
          raise UsageError, "done! takes the connection of an open transaction" if connection.nil?

          run.try_own_ack
          change = Outcome.done(run.fetched, run.job, followers: run.followers).change
          change.ran = Storage::Ran.new(run.seconds, run.class_name) if @keeps_done
          there, = @storage.ack(@node, [change], connection: connection)
          return run.acknowledge if there
          raise UsageError, "done! was called before in this run, and has not been rolled back" if run.acknowledged?

          run.lose # what is in flight here by the same token, now or later, is another run of it
          raise TakenAwayError, "the job #{run.jid} was taken away from this worker, and runs elsewhere or will: what this run " \
                                "has done in its transaction must not be committed"
        end

        # May switch strands.
        #
        # @param run [Run]
        # @return [Boolean] whether it was called in this run, and the job is not in flight here any more
        # @raise [UnavailableError]
        def ended?(run)
          return false unless run.own_ack_tried?

          run.lost? || @storage.in_flight(@node).none? { |fetched| fetched.token == run.fetched.token }
        end
      end
      private_constant :OwnAck
    end
  end
end
