# frozen_string_literal: true

require "ipaddr"

module Ringspun
  module Jobs
    class Web
      # Decides who may see the pages.
      #
      # @api private
      class Admission
        # What stands in front of the pages asks who it is.
        OUTSIDE = :outside

        # @param check [#call, Symbol, nil]
        # @raise [ConfigError]
        def initialize(check)
          @check = check
          unless check.nil? || check == OUTSIDE || check.respond_to?(:call)
            raise ConfigError, "authenticate: must be a block that gets Rack's env, or :outside, got #{check.inspect}"
          end

          refuse(Home.environment) if check.nil? && Home.production?
        end

        # @param request [Request]
        # @return [true, String, Array] true: come in; a String says why not; an Array is the answer of Rack's to give
        def judge(request)
          return @check.nil? ? local(request) : true unless @check.respond_to?(:call)

          answer = @check.call(request.env)
          return answer if answer.is_a?(Array)

          answer ? true : "You may not see this page."
        end

        private

        # Where nobody is asked for a name, a site could have a name of its own lead here, and read the pages in the browser of
        # whoever visits it (DNS rebinding). It cannot do so with an address.
        def local(request)
          host = request.host
          return true if host == "localhost" || host.end_with?(".localhost") || address?(host)

          "Without authenticate the pages are for localhost and for addresses, and not for a name such as this one."
        end

        def address?(host)
          IPAddr.new(host.delete("[]"))
          true
        rescue IPAddr::Error
          false
        end

        def refuse(environment)
          raise ConfigError, <<~TEXT.tr("\n", " ").strip
            the web pages can delete jobs, and this is #{environment}: say who may see them. Write
            Ringspun::Jobs::Web.authenticate { |env| ... }, which gets Rack's env and returns whether they may, or an answer of
            Rack's; or Ringspun::Jobs::Web.new(authenticate: :outside), if something in front of them asks
          TEXT
        end
      end
      private_constant :Admission
    end
  end
end
