# frozen_string_literal: true

module Ringspun
  module Jobs
    class Enqueuer
      # Jobs that are stored by one call of the storage, and who waits for that. At first it is open: callers put their jobs in,
      # and take them out when they are cancelled. Then it is taken, and then answered.
      #
      # @api private
      class Batch
        # Larger ones would keep the first caller waiting and make the rest no cheaper.
        JOBS_MAX = 256
        BYTES_MAX = 64 * 1024

        # @return [Array<Storage::Push, nil>]
        attr_reader :pushes
        # @return [Array<Object, nil>] who waits, beside their jobs
        attr_reader :waiting
        # @return [Object] who sees to it that it is sent
        attr_accessor :leader
        # @return [Strand] that sends it
        attr_accessor :flight

        # @param leader [Object, nil]
        # @param pushes [Array<Storage::Push>] all of one caller, who waits as the only one
        def initialize(leader = nil, pushes = [])
          @leader = leader
          @pushes = pushes
          @waiting = []
          @bytes = 0
          @flight = @answers = nil
          @settled = @taken = @answered = @gaps = false
        end

        # @return [Integer] its place
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

        # All who were ready when it was opened have come.
        def settle = @settled = true

        # A caller does not wait any more.
        #
        # @param place [Integer, nil] nil: all of it is that caller's
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

        # @param place [Integer, nil] nil: of all
        # @return [nil, String, Exception, Array]
        def answer_at(place) = place && @answers.is_a?(Array) ? @answers[place] : @answers
      end
      private_constant :Batch
    end
  end
end
