# frozen_string_literal: true

require "json"
require "zlib"

module Ringspun
  module Jobs
    # Backtraces in entries, in Sidekiq's form: a JSON array of lines, deflated, in Base64. See compress_backtrace in
    # https://github.com/sidekiq/sidekiq/blob/main/lib/sidekiq/job_retry.rb
    module Backtrace
      # The most bytes that are inflated: a kilobyte could become a megabyte.
      BYTES_MAX = 256 * 1024

      module_function

      # @param lines [Array<String>]
      # @return [String]
      # @since 0.1.0
      def dump(lines) = [Zlib::Deflate.deflate(JSON.generate(lines.map(&:scrub)))].pack("m0")

      # @param value [String, Array, nil] the field of an entry; an Array if its writer has not deflated it
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
