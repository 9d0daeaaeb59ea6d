# frozen_string_literal: true

require "rails/railtie"
require "ringspun/railtie"

module Ringspun
  module HTTP
    # Makes the server at home in a Rails application: `bin/rails server -u ringspun`. `require "ringspun/http"` loads this if
    # Rails is loaded, as Bundler does.
    #
    # - `config.active_support.isolation_level` is `:fiber` unless the application sets it, see {Ringspun::Railtie}. One that sets
    #   `:thread` is not served.
    # - As many requests run at once as the smallest connection pool has connections; the others wait.
    #   `config.ringspun_http.requests` is another number, or `false` for any. Where that is larger than the pool, a warning at
    #   the start says which size fits.
    # - In development changed code is loaded while no other request runs.
    #
    # @since 0.1.0
    class Railtie < ::Rails::Railtie
      config.ringspun_http = ::ActiveSupport::OrderedOptions.new
    end
  end
end
