# frozen_string_literal: true

module Ringspun
  module TLS
    # Sessions of a client's context that may be resumed, by peer: of as many as were connected to last. Without a lock: whatever
    # another thread sees in the middle of a call, the worst is a handshake that is not a short one.
    #
    # @api private
    class Sessions
      PEERS = 256
      # Of one peer: a server sends two, for connections that are made at the same time.
      EACH = 4
      private_constant :PEERS, :EACH

      # @return [Sessions, nil] those of a context that was made here
      def self.of(context) = context.instance_variable_get(:@ringspun_sessions)

      def self.attach(context) = context.instance_variable_set(:@ringspun_sessions, new(context))

      def initialize(context)
        @peers = {}
        context.session_cache_mode =
          OpenSSL::SSL::SSLContext::SESSION_CACHE_CLIENT | OpenSSL::SSL::SSLContext::SESSION_CACHE_NO_INTERNAL
        context.session_new_cb = ->((socket, session)) { keep(socket.instance_variable_get(:@ringspun_peer), session) }
      end

      # One is used once: who listens would know by it that two connections are the same client's (RFC 8446, appendix C.4).
      def take(peer)
        kept = @peers[peer]
        kept&.pop
      end

      def keep(peer, session)
        return unless peer

        kept = @peers.delete(peer) || []
        kept.shift if kept.size >= EACH
        @peers[peer] = kept.push(session)
        @peers.shift if @peers.size > PEERS
      end

      def inspect = "#<#{self.class} of #{@peers.size} peers>"
    end
    private_constant :Sessions
  end
end
