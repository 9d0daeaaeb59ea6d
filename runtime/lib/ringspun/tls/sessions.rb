# frozen_string_literal: true

module Ringspun
  module TLS
    # The sessions of a client's context, for the PEERS peers connected to last. It has no lock: the worst that can happen between
    # threads is a handshake that resumes no session.
    #
    # @api private
    class Sessions
      # For how many peers sessions are kept. Without one a handshake has a certificate and a signature more.
      PEERS = 256
      # Sessions kept for a peer: OpenSSL's servers send two (SSL_CTX_set_num_tickets(3)), for connections made at the same time.
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

      # A session is used once, because an eavesdropper could link two connections by it (RFC 8446, appendix C.4).
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
