# frozen_string_literal: true

module Ringspun
  module Postgres
    class Startup
      # A connection that is ready.
      #
      # @!attribute [r] stream
      #   @return [Stream] nothing of which has been read after the first ReadyForQuery
      # @!attribute [r] host
      #   @return [Options::Host] with the address that it has come to
      # @!attribute [r] encrypted
      #   @return [Boolean]
      # @!attribute [r] settings
      #   @return [Hash{String => String}] what the server has said of itself: server_version, TimeZone, ...
      # @!attribute [r] process
      #   @return [Integer, nil] that of the server; nil: it cannot be asked to cancel
      # @!attribute [r] key
      #   @return [String, nil] which must be known to cancel
      # @!attribute [r] version
      #   @return [Integer] of the protocol
      # @!attribute [r] status
      #   @return [String] "I": no transaction is open
      Session = Data.define(:stream, :host, :encrypted, :settings, :process, :key, :version, :status) do
        # Without the key, by which anybody could cancel.
        def inspect = "#<#{self.class} #{host} process=#{process}#{" TLS" if encrypted}>"
        alias_method :to_s, :inspect
      end
    end
  end
end
