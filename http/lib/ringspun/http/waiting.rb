# frozen_string_literal: true

module Ringspun
  module HTTP
    # A connection that waits for its next request, with neither a strand nor anything of its last request.
    #
    # @api private
    class Waiting < Server::Idle
      # @return [Hash{String => String}] what a proxy has told of it
      attr_reader :told

      # @param stream [Stream]
      # @param deadline [Float] on the machine's clock
      # @param reception [Reception] where it goes on
      # @param told [Hash{String => String}]
      def initialize(stream, deadline, reception, told)
        super(stream, deadline)
        @reception = reception
        @told = told
      end

      # @return [Waiting, nil]
      def call = @reception.wake(self)

      def dropped = @reception.gone

      # @return [String]
      def to_s = "connection of #{@told["REMOTE_ADDR"] || client}"

      private

      # One that has reset the connection has no address any more.
      def client
        (client, _), own = Connection.ends(stream.__send__(:over))
        client || (own ? "a client that has gone" : "127.0.0.1")
      end
    end
    private_constant :Waiting
  end
end
