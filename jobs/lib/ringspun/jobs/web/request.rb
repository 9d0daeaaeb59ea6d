# frozen_string_literal: true

module Ringspun
  module Jobs
    class Web
      # What a browser asks for. Reads Rack's environment itself, so that a web page needs no gem; see
      # https://github.com/rack/rack/blob/main/SPEC.rdoc
      #
      # Names that others choose, as those of queues, are in the query and not in the path: some servers decode the path, and then
      # a slash in a name is no longer told from one of the path's. Forms have them there as well, where any bytes survive.
      #
      # @api private
      class Request
        # Longer forms are refused.
        BODY_MAX = 64 * 1024

        # Where the pages are mounted.
        BASE = %r{\A(?:/[\w.~%-]+)*\z}

        # The form is too long.
        class TooLong < StandardError; end

        class << self
          # @return [String] for a query
          def encode(text) = text.to_s.b.gsub(/[^\w.~-]/n) { |byte| format("%%%02X", byte.ord) }

          # @return [String]
          def decode(text) = text.b.tr("+", " ").gsub(/%(\h\h)/) { $1.hex.chr }.force_encoding(Encoding::UTF_8)

          # @return [Hash{String => Array<String>}]
          def decode_form(text)
            text.split("&").each_with_object({}) do |pair, all|
              name, value = pair.split("=", 2).map { |part| decode(part) }
              (all[name] ||= []) << value if value
            end
          end
        end

        # @return [Hash]
        attr_reader :env

        # @param env [Hash] of Rack
        def initialize(env) = @env = env

        # @return [String]
        def verb = @env["REQUEST_METHOD"]

        # @return [String] from where the pages are mounted on
        def path = @env["PATH_INFO"].to_s.empty? ? "/" : @env["PATH_INFO"]

        # @return [String] where the pages are mounted
        def base = @env["SCRIPT_NAME"].to_s

        # @return [Boolean] whether links may begin with {#base}
        def sound? = base.match?(BASE) && path.valid_encoding?

        # @param name [String, Symbol]
        # @return [String, nil] the last value of that name, in the form or in the query; nil when it is empty
        def [](name) = all(name).last.then { |value| value unless value.to_s.empty? }

        # @return [Array<String>]
        def all(name) = (query[name.to_s] || []) + (form[name.to_s] || [])

        # @return [Integer] 0 if it is none
        def number(name) = self[name].to_s.b[/\A\d{1,12}\z/].to_i

        # @return [String, nil]
        def cookie(name)
          pairs = @env["HTTP_COOKIE"].to_s.b.split(/;\s*/n)
          pairs.find { |pair| pair.start_with?("#{name}=") }&.delete_prefix("#{name}=")
        end

        # @return [Boolean]
        def encrypted? = @env["rack.url_scheme"] == "https"

        # @return [String] the host without its port, in lower case
        def host = @env["HTTP_HOST"].to_s.b.downcase.sub(/:\d+\z/, "")

        private

        def query = @query ||= Request.decode_form(@env["QUERY_STRING"].to_s.b)

        def form = @form ||= verb == "POST" ? Request.decode_form(body) : {}

        def body
          type = @env["CONTENT_TYPE"].to_s[/\A[^;\s]*/]
          return "" unless type.casecmp?("application/x-www-form-urlencoded")

          text = @env["rack.input"]&.read(BODY_MAX + 1).to_s
          text.bytesize > BODY_MAX ? raise(TooLong) : text
        end
      end
      private_constant :Request
    end
  end
end
