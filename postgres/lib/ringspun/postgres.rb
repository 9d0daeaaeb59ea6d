# frozen_string_literal: true

require "ringspun"
require_relative "postgres/cancel_request"
require_relative "postgres/errors"
require_relative "postgres/options"
require_relative "postgres/poolers"
require_relative "postgres/startup"
require_relative "postgres/values"
require_relative "postgres/literals"

module Ringspun
  # A client of PostgreSQL for thousands of strands that share a few connections.
  module Postgres
    # As of the runtime's own extension: a checkout has one per Ruby, an installed gem just its own.
    built = File.expand_path("#{RUBY_VERSION[/\d+\.\d+/]}/postgres_native.so", __dir__)
    require File.exist?(built) ? built : "ringspun/postgres_native"

    # A client with one shared connection a machine. See {Pool}, of which this is one.
    #
    # @param source [String, nil] a URI
    # @param options as for {Pool#initialize}
    # @return [Client]
    # @raise [UsageError]
    # @since 0.1.0
    def self.connect(source = nil, **options)
      lanes = { lanes: 1 } unless Options.of_pool(source).key?(:lanes)
      Pool.new(source, **lanes.to_h, **options)
    end
  end
end

require_relative "postgres/row"
require_relative "postgres/result"
require_relative "postgres/types"
require_relative "postgres/lane"
require_relative "postgres/copy/errors"
require_relative "postgres/copy/statement"
require_relative "postgres/copy/lane"
require_relative "postgres/copy/copy_in"
require_relative "postgres/copy/copying"
require_relative "postgres/copy/insert_many"
require_relative "postgres/sharing"
require_relative "postgres/canceller"
require_relative "postgres/opener"
require_relative "postgres/crowd"
require_relative "postgres/lanes"
require_relative "postgres/holder"
require_relative "postgres/connections"
require_relative "postgres/notifying"
require_relative "postgres/client"
require_relative "postgres/lease"
require_relative "postgres/session"
require_relative "postgres/copy/of_session"
require_relative "postgres/courier/errand"
require_relative "postgres/courier/question"
require_relative "postgres/courier"
require_relative "postgres/observers"
require_relative "postgres/script"
require_relative "postgres/subscription"
require_relative "postgres/hub"
require_relative "postgres/hub/audience"
require_relative "postgres/hub/hearing"
require_relative "postgres/pool"
