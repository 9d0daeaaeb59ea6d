# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Jobs that one call of the storage stores, and the callers that wait for it. A batch is open first: callers add their jobs,
      # and remove them when they are cancelled. Then it is taken, and at last answered.
      #
      # @api private
      class Batch
        # Larger ones would keep the first caller waiting and make the rest no cheaper.
        JOBS_MAX = 256
        BYTES_MAX = 64 * 1024

        # @return [Array<Storage::Push, nil>]
        attr_reader :pushes
        # @return [Array<Object, nil>] the callers that wait, each at the place of its job
        attr_reader :waiting
        # @return [Object] the caller that sees to it that the batch is sent
        attr_accessor :leader
        # @return [Strand] that sends it
        attr_accessor :flight

        # @param leader [Object, nil]
        # @param pushes [Array<Storage::Push>] those of the only caller
        def initialize(leader = nil, pushes = [])
          @leader = leader
          @pushes = pushes
          @waiting = []
          @bytes = 0
          @flight = @answers = nil
          @settled = @taken = @answered = @gaps = false
        end

        # @return [Integer] the place of the push
        def add(push, who)
          place = @pushes.size
          @pushes << push
          @waiting << who
          @bytes += push.entry.bytesize
          place
        end

        def full? = @bytes >= BYTES_MAX || @pushes.size >= JOBS_MAX
        def taken? = @taken
        def settled? = @settled
        def answered? = @answered

        # All strands that were ready when the batch was opened have run since.
        def settle = @settled = true

        # A caller stops waiting.
        #
        # @param place [Integer, nil] nil: the whole batch is that caller's
        def leave(place)
          @waiting[place || 0] = nil
          return if @taken

          if place
            @pushes[place] = nil
            @gaps = true
          else
            @pushes = []
          end
        end

        # @return [Array<Storage::Push>] what is to be sent
        def take
          @taken = true
          @gaps ? @pushes.compact : @pushes
        end

        # @param answers [nil, Array, Exception] as {Delivery#deliver} answers what was taken
        def answer(answers)
          if @gaps && answers.is_a?(Array)
            answers = answers.dup
            answers = @pushes.map { |push| push && answers.shift }
          end
          @answers = answers
          @answered = true
        end

        # @param place [Integer, nil] nil: of the whole batch
        # @return [nil, String, Exception, Array]
        def answer_at(place) = place && @answers.is_a?(Array) ? @answers[place] : @answers
      end
      private_constant :Batch
    end
  end
end
