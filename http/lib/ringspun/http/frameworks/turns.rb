# frozen_string_literal: true

module Ringspun
  module HTTP
    module Frameworks
      # Lets as many requests run at once as the database has connections for; the others wait for their turn, the oldest first.
      # So none fails because it finds no connection. A request comes here with all of its body, and has its turn until the
      # program has returned its answer: bodies that stream, connections that the program has taken and ActionController::Live go
      # on without.
      #
      # @api private
      class Turns
        class << self
          # @param app [#call]
          # @param telling [Telling]
          # @return [#call] the program itself, where any number may run
          # @raise [UsageError] the setting is no number
          def around(app, telling)
            pool = smallest_pool
            asked = setting
            most = asked.nil? ? pool&.size : asked
            text = warning(pool, most, derived: asked.nil?) if pool
            telling.puts(text) if text
            most ? new(app, most) : app
          end

          private

          # @return [Integer, false, nil] false: any number; nil: that of the connections
          def setting
            asked = HTTP::Railtie.config.ringspun_http.requests if defined?(HTTP::Railtie)
            return asked if asked.nil? || asked == false || (asked.is_a?(Integer) && asked.positive?)

            raise UsageError, "config.ringspun_http.requests must be an Integer above 0, or false for any number, " \
                              "got #{asked.inspect}"
          end

          # nil where there is no database, or where all pools are without a limit, as max_connections: -1 makes them.
          def smallest_pool
            return unless defined?(::ActiveRecord::Base)

            ::ActiveRecord::Base.connection_handler.connection_pool_list(:all).select(&:size).min_by(&:size)
          end

          def warning(pool, most, derived:)
            name, size = pool.db_config.name, pool.size
            return "#{size} requests run at once, as the pool of the database #{name} has connections: #{raised(pool)}" if derived
            return if most && most <= size

            text = "the pool of the database #{name} has #{size} connection#{"s" if size > 1} for #{most || "any number of"} " \
                   "requests at once, so that they wait for one and may fail: "
            text << (most ? "#{fitting(pool, most)}, or config.ringspun_http.requests = #{size}" : raised(pool))
          end

          def fitting(pool, most) = "set #{word}: #{most} for #{pool.db_config.name} in config/database.yml"

          def raised(pool)
            "set #{word} for #{pool.db_config.name} in config/database.yml to as many as are to use the database at once"
          end

          # Rails 8.1 has renamed it.
          def word = ::ActiveRecord.version >= Gem::Version.new("8.1") ? "max_connections" : "pool"
        end

        # @param app [#call]
        # @param most [Integer]
        def initialize(app, most)
          @app = app
          @turns = Semaphore.new(most)
        end

        # May switch strands.
        #
        # @param env [Hash]
        # @return [Array]
        def call(env) = @turns.hold { @app.call(env) }
      end
      private_constant :Turns
    end
  end
end
