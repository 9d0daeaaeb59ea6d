# frozen_string_literal: true

module Ringspun
  module Postgres
    # What names of channels and payloads there are.
    #
    # @api private
    module Notifying
      # The server refuses a name from NAMEDATALEN (64) bytes on, and a payload from NOTIFY_PAYLOAD_MAX_LENGTH (8000) on:
      # https://github.com/postgres/postgres/blob/REL_17_STABLE/src/backend/commands/async.c
      NAME_MAX = 63
      PAYLOAD_MAX = 7_999
      private_constant :NAME_MAX, :PAYLOAD_MAX

      class << self
        # @return [String]
        # @raise [UsageError]
        def channel(channel)
          channel = channel.name if channel.is_a?(Symbol)
          text(channel, "the name of a channel", NAME_MAX).tap do |name|
            raise UsageError, "the name of a channel has at least one character" if name.empty?
          end
        end

        # @return [String]
        # @raise [UsageError]
        def payload(payload) = text(payload, "a payload", PAYLOAD_MAX)

        private

        def text(value, what, most)
          raise UsageError, "#{what}: expected a String, got #{value.inspect}" unless value.is_a?(String)

          text = utf8(value)
          raise UsageError, "#{what}: expected text in UTF-8, got #{value.inspect[0, 100]}" unless text&.valid_encoding?
          raise UsageError, "#{what} has no NUL in it" if text.include?("\0")
          return text if text.bytesize <= most

          raise UsageError, "#{what} has #{most} bytes at most, this one has #{text.bytesize}"
        end

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
