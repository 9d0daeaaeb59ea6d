# frozen_string_literal: true

module Ringspun
  module Postgres
    # NOTIFY, and what names and payloads there are.
    #
    # @api private
    module Notifying
      # The server refuses a name from NAMEDATALEN (64) bytes on, and a payload from NOTIFY_PAYLOAD_MAX_LENGTH (8000) on:
      # https://github.com/postgres/postgres/blob/REL_17_STABLE/src/backend/commands/async.c
      NAME_MAX = 63
      PAYLOAD_MAX = 7_999
      private_constant :NAME_MAX, :PAYLOAD_MAX

      # Notifies all who listen to the channel; in a transaction when that is committed. The server merges notifications of one
      # transaction that are the same.
      #
      # May switch strands.
      #
      # @param channel [String, Symbol] up to 63 bytes; case counts
      # @param payload [String] up to 7999 bytes of UTF-8
      # @param timeout [Numeric, nil] seconds
      # @return [nil]
      # @raise [UsageError] for a name or payload that the server would refuse or cut
      # @since 0.1.0
      def notify(channel, payload = "", timeout: nil)
        params = [Notifying.name(channel), Notifying.text(payload, "a payload", PAYLOAD_MAX)]
        run("select pg_notify($1, $2)", params, timeout, false, false)
        nil
      end

      class << self
        # @return [String]
        # @raise [UsageError]
        def name(channel)
          channel = channel.name if channel.is_a?(Symbol)
          text(channel, "the name of a channel", NAME_MAX).tap do |name|
            raise UsageError, "the name of a channel has at least one character" if name.empty?
          end
        end

        # @return [String] in UTF-8
        # @raise [UsageError]
        def text(value, what, most)
          raise UsageError, "#{what}: expected a String, got #{value.inspect}" unless value.is_a?(String)

          text = utf8(value)
          raise UsageError, "#{what}: expected text in UTF-8, got #{value.inspect[0, 100]}" unless text&.valid_encoding?
          raise UsageError, "#{what} has no NUL in it" if text.include?("\0")
          return text if text.bytesize <= most

          raise UsageError, "#{what} has #{most} bytes at most, this one has #{text.bytesize}"
        end

        private

        def utf8(value)
          value.encoding == Encoding::BINARY ? value.dup.force_encoding(Encoding::UTF_8) : value.encode(Encoding::UTF_8)
        rescue EncodingError
          nil
        end
      end
    end
    private_constant :Notifying
  end
end
