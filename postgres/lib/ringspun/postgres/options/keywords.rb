# frozen_string_literal: true

require_relative "of_pool"

module Ringspun
  module Postgres
    class Options
      # The names of options, and their values as text.
      #
      # @api private
      module Keywords
        # By its name in a URI the variable of the environment that an option has.
        # https://www.postgresql.org/docs/17/libpq-envars.html
        ALL = {
          "host" => "PGHOST", "hostaddr" => "PGHOSTADDR", "port" => "PGPORT", "dbname" => "PGDATABASE", "user" => "PGUSER",
          "password" => "PGPASSWORD", "passfile" => "PGPASSFILE", "require_auth" => "PGREQUIREAUTH",
          "channel_binding" => "PGCHANNELBINDING", "allow_cleartext" => nil,
          "min_protocol_version" => "PGMINPROTOCOLVERSION", "max_protocol_version" => "PGMAXPROTOCOLVERSION",
          "connect_timeout" => "PGCONNECT_TIMEOUT", "client_encoding" => nil, "options" => "PGOPTIONS",
          "application_name" => "PGAPPNAME", "fallback_application_name" => nil,
          "keepalives" => nil, "keepalives_idle" => nil, "keepalives_interval" => nil, "keepalives_count" => nil,
          "tcp_user_timeout" => nil, "requirepeer" => "PGREQUIREPEER",
          "sslmode" => "PGSSLMODE", "sslnegotiation" => "PGSSLNEGOTIATION", "sslrootcert" => "PGSSLROOTCERT",
          "sslcrl" => "PGSSLCRL", "sslcrldir" => "PGSSLCRLDIR", "sslcert" => "PGSSLCERT", "sslkey" => "PGSSLKEY",
          "sslpassword" => nil, "sslcertmode" => "PGSSLCERTMODE", "sslsni" => "PGSSLSNI", "sslcompression" => "PGSSLCOMPRESSION",
          "ssl_min_protocol_version" => "PGSSLMINPROTOCOLVERSION", "ssl_max_protocol_version" => "PGSSLMAXPROTOCOLVERSION",
          "gssencmode" => "PGGSSENCMODE", "target_session_attrs" => "PGTARGETSESSIONATTRS",
          "load_balance_hosts" => "PGLOADBALANCEHOSTS", "service" => "PGSERVICE", "servicefile" => "PGSERVICEFILE"
        }.freeze

        # What libpq has and this has not: to leave out a check that somebody has asked for would be worse than to refuse.
        UNSUPPORTED = %w[
          gssdelegation gsslib krbsrvname oauth_client_id oauth_client_secret oauth_issuer oauth_scope replication requiressl
          scram_client_key scram_server_key sslkeylogfile
        ].freeze

        # Those of {Pool#initialize}, which are no business of libpq's.
        POOL = %w[
          lanes max min timeout checkout_timeout max_lifetime statement_cache pipelining types
          on_notice on_statement log log_slower_than
        ].freeze

        # Of these there may be several.
        LISTS = %w[host hostaddr port].freeze
        SECRETS = %w[password sslpassword].freeze
        private_constant :UNSUPPORTED, :POOL, :LISTS, :SECRETS

        class << self
          # @param keywords [Hash{Symbol => Object}]
          # @return [Hash{String => String}]
          def read(keywords)
            keywords.to_h { |name, value| [name.to_s, value] }.compact.to_h { |name, value| [name, text(name, value)] }
          end

          # @param from [String] begins the message
          def check_names(values, from = "")
            name = values.keys.find { |key| !ALL.key?(key) } or return
            raise UsageError, "#{from}#{what_is_wrong(name)}"
          end

          # @return [String] as a message shows it
          def shown(name, value) = SECRETS.include?(name) ? "something else" : value.inspect

          private

          def text(name, value)
            case value
            when String, Symbol, Integer, Float, true, false then value.to_s
            when Array then LISTS.include?(name) ? value.join(",") : wrong(name, value)
            else wrong(name, value)
            end
          end

          def wrong(name, value)
            several = ", or an Array of them" if LISTS.include?(name)
            raise UsageError, "#{name}: expected text, a number or a Boolean#{several}, got #{shown(name, value)}"
          end

          def what_is_wrong(name)
            return "libpq's option #{name} is not supported; there are #{ALL.keys.join(", ")}" if UNSUPPORTED.include?(name)
            return of_pool(name) if POOL.include?(name.delete_prefix("pool_"))

            "there is no option #{name}#{Suggestion.for(name, ALL.keys, nearest_of: ALL.keys + POOL + OfPool::NAMES)}"
          end

          # Those that a URI can have are not asked for here when they stand there.
          def of_pool(name)
            name = name.delete_prefix("pool_")
            also = ", or as pool_#{name} in the URI" if OfPool::ALL.key?(name.to_sym)
            "#{name} is an option of Pool.new, and is given there#{also}"
          end
        end
      end
      private_constant :Keywords
    end
  end
end
