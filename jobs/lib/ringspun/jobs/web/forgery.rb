# frozen_string_literal: true

require "openssl"
require "securerandom"

module Ringspun
  module Jobs
    class Web
      # Keeps other sites from pressing our buttons in the browser of somebody who may. A form has a secret that is also in the
      # session; or, where there is no session, in a cookie that browsers do not send with other sites' requests. And what
      # browsers say of the origin of a request must not be another site:
      # https://cheatsheetseries.owasp.org/cheatsheets/Cross-Site_Request_Forgery_Prevention_Cheat_Sheet.html
      #
      # @api private
      class Forgery
        # The name of the secret in forms, in the session, and as a cookie.
        NAME = "ringspun_jobs_secret"
        SECRET = /\A\h{64}\z/

        # @param request [Request]
        def initialize(request)
          @request = request
          @session = request.env["rack.session"]
        end

        # @return [String]
        def secret = @secret ||= known || (@fresh = keep(SecureRandom.hex(32)))

        # @return [String, nil] the header that sets the cookie, if it is to be set
        def cookie
          return unless @fresh && !@session

          base = @request.base.empty? ? "/" : @request.base
          "#{NAME}=#{@fresh}; path=#{base}; httponly; samesite=strict#{"; secure" if @request.encrypted?}"
        end

        # @return [String, nil] why the request may be another site's; nil: it is not
        def doubt
          site = @request.env["HTTP_SEC_FETCH_SITE"]
          return "the browser says that it comes from elsewhere" if site && site != "same-origin"
          return "it comes from #{@request.env["HTTP_ORIGIN"]}" if site.nil? && foreign?

          given = @request[NAME].to_s
          "the form is too old; go back, reload the page, and press again" unless known && OpenSSL.secure_compare(given, known)
        end

        private

        def known
          value = @session ? @session[NAME] : @request.cookie(NAME)
          value if value.is_a?(String) && value.match?(SECRET)
        end

        def keep(secret)
          @session[NAME] = secret if @session
          secret
        end

        # The scheme is not compared: where a proxy ends TLS this one is http.
        def foreign?
          origin = @request.env["HTTP_ORIGIN"]
          origin && origin.sub(%r{\Ahttps?://}, "") != @request.env["HTTP_HOST"]
        end
      end
      private_constant :Forgery
    end
  end
end
