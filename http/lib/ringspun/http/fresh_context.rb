# frozen_string_literal: true

module Ringspun
  module HTTP
    # The context of TLS for the next connection: one whose files have changed is made anew, so that a certificate is renewed
    # without a restart. Files that cannot be used, such as a certificate whose key has not been written yet, change nothing.
    #
    # @api private
    class FreshContext
      # How often files are looked at most. Whoever renews a certificate has hours.
      LOOK_SECONDS = 1
      PEM = "-----BEGIN "
      private_constant :LOOK_SECONDS, :PEM

      class << self
        # @param tls [Hash, OpenSSL::SSL::SSLContext, nil] see {TLS.server_context}
        # @param telling [Telling]
        # @return [FreshContext, nil]
        # @raise [UsageError]
        def of(tls, telling)
          case tls
          when nil then nil
          when Hash then new(tls, telling)
          else
            require "openssl"
            raise UsageError, "tls: takes {cert:, key:} or a context, got #{tls.inspect}" unless tls.is_a?(OpenSSL::SSL::SSLContext)

            new(tls, telling)
          end
        end
      end

      # @param tls [Hash, OpenSSL::SSL::SSLContext] a context stays what it is
      # @param telling [Telling]
      # @param look_seconds [Numeric]
      # @raise [UsageError]
      def initialize(tls, telling, look_seconds: LOOK_SECONDS)
        @telling = telling
        @look_seconds = look_seconds
        @options = tls if tls.is_a?(Hash)
        @options ? begin_looking : @context = tls
      end

      # @return [OpenSSL::SSL::SSLContext]
      def context
        look if @look_at && now >= @look_at
        @context
      end

      private

      def begin_looking
        files = @options.values_at(:cert, :key, :ca).flatten
        @paths = files.grep(String).reject { |text| text.include?(PEM) }
        @seen = seen
        @context = made
        @look_at = now + @look_seconds
      end

      def look
        @look_at = now + @look_seconds
        found = seen
        return if found == @seen

        @context = made
        @seen = found
        @told = nil
      rescue UsageError => error
        tell(error.message)
      end

      # Says it with our own error where a key is missing.
      def made = TLS.__send__(:server, @options)

      def seen
        @paths.map { |path| File.stat(path).then { |stat| [stat.mtime, stat.ino, stat.size] } }
      rescue SystemCallError => error
        error.class # the context says it better
      end

      def tell(message)
        return if message == @told

        @told = message
        @telling.puts("the certificate stays as it is: #{message}")
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
    private_constant :FreshContext
  end
end
