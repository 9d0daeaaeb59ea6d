# frozen_string_literal: true

module Ringspun
  module HTTP
    # What a program may raise that ends its request, and neither the connection nor the process, for others are served there:
    # all but a signal, and what has a strand end. In a child that the program has forked it ends that child, for the answer is
    # the parent's.
    module Failure
      class << self
        # @param error [Exception]
        # @return [Boolean]
        def ===(error) = !error.is_a?(Cancelled) && !error.is_a?(SignalException) && Process.pid == @pid

        # @param error [Exception, nil] nil: there is none, for the strand was killed
        # @return [Boolean] whether it ends the strand of a request, in the process that serves
        def ends_strand?(error) = Process.pid == @pid && (error.nil? || !(self === error))

        # Called in the process that serves.
        def here = @pid = Process.pid

        # @return [String] for `rack.errors`
        def text_of(error)
          error.full_message(highlight: false)
        rescue Failure => another
          "#{error.backtrace&.first}: an error of #{error.class}, whose message raises #{another.class}"
        end
      end
    end
    private_constant :Failure

    # What a client has sent is no request, or none that is served. It gets the status, and its connection is closed.
    #
    # @since 0.1.0
    class RequestError < Error
      # @return [Integer] the status of the answer, 400 to 505
      # @since 0.1.0
      attr_reader :status

      # @param status [Integer]
      # @param message [String]
      # @api private
      def initialize(status, message)
        super(message)
        @status = status
      end
    end

    # The client has closed the connection, and nobody reads any more what is written to it.
    #
    # @since 0.1.0
    class GoneError < ClosedError
    end

    # A request has not been answered, or its answer not been taken, within its `request_timeout`. The procs of
    # `rack.response_finished` get it.
    #
    # @since 0.1.0
    class RequestTimeoutError < TimeoutError
    end

    # A request has a body that is read before its program is called, see {HTTP.listen}, and there is no place for it on disk,
    # or no descriptor. The client gets a 500.
    #
    # @since 0.1.0
    class SpoolError < Error
    end

    # What a program has given as an answer cannot be sent: a header with the end of a line, or a body of another length than it
    # has said.
    #
    # @since 0.1.0
    class AnswerError < Error
    end
  end
end
