# frozen_string_literal: true

require "json"
require "zlib"

module Ringspun
  module Jobs
    # Backtraces as they stand in entries: a JSON array of lines, deflated, in Base64, which is how Sidekiq has them.
    module Backtrace
      # What a text may inflate to: a kilobyte that says it is a gigabyte shall not be believed.
      BYTES_MAX = 256 * 1024

      module_function

      # @param lines [Array<String>]
      # @return [String]
      # @since 0.1.0
      def dump(lines) = [Zlib::Deflate.deflate(JSON.generate(lines.map(&:scrub)))].pack("m0")

      # @param value [String, Array, nil] of an entry; who does not deflate writes an Array
      # @return [Array<String>, nil] nil when it cannot be read, or is longer than {BYTES_MAX}
      # @since 0.1.0
      def load(value)
        return value.grep(String) if value.is_a?(Array)
        return unless value.is_a?(String) && value.bytesize <= BYTES_MAX

        lines = JSON.parse(inflate(value.unpack1("m0")))
        lines.grep(String) if lines.is_a?(Array)
      rescue Zlib::Error, JSON::ParserError, ArgumentError, EncodingError
        nil
      end

      def inflate(bytes)
        inflater = Zlib::Inflate.new
        text = +""
        inflater.inflate(bytes) do |chunk|
          raise Zlib::DataError, "inflates to more than #{BYTES_MAX} bytes" if text.bytesize + chunk.bytesize > BYTES_MAX

          text << chunk
        end
        text.force_encoding(Encoding::UTF_8)
      ensure
        inflater&.close
      end
      private_class_method :inflate
    end
    private_constant :Backtrace
  end
end
