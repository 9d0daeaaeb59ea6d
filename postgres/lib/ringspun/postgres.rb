# frozen_string_literal: true

require "ringspun"
require_relative "postgres/cancel_request"
require_relative "postgres/errors"
require_relative "postgres/options"
require_relative "postgres/startup"
require_relative "postgres/values"

module Ringspun
  # A client of PostgreSQL for thousands of strands that share a few connections.
  module Postgres
    # As of the runtime's own extension: a checkout has one per Ruby, an installed gem just its own.
    built = File.expand_path("#{RUBY_VERSION[/\d+\.\d+/]}/postgres_native.so", __dir__)
    require File.exist?(built) ? built : "ringspun/postgres_native"
  end
end
