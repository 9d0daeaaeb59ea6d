# frozen_string_literal: true

module Ringspun
  module HTTP
    module Frameworks
      # Lets a Rails application in development load changed code while no request runs the old one.
      #
      # Rails unloads code once no other thread runs it: https://guides.rubyonrails.org/threading_and_code_execution.html. Strands
      # share their thread, so here a request that comes after a change waits itself until the others have left the program, and
      # is alone there until the code is loaded anew. A streaming body runs on, for the stream may have no end.
      #
      # @api private
      class Reloading
        # @return [Boolean]
        def self.needed?
          defined?(::Rails.application.config.reloading_enabled?) && ::Rails.application.config.reloading_enabled?
        end

        # @param app [#call]
        # @param rails [Rails::Application]
        def initialize(app, rails)
          @app = app
          @reloader = rails.reloader
          @change = Condition.new
          @inside = 0
          @alone = nil
          # Before Rails 8.1 a request that comes while another one loads them finds none.
          rails.reload_routes_unless_loaded if rails.respond_to?(:reload_routes_unless_loaded)
          # Otherwise it unloads at the end of each request, which is alone up to there.
          release_when_prepared if rails.config.reload_classes_only_on_change
        end

        # May switch strands.
        #
        # @param env [Hash]
        # @return [Array]
        def call(env)
          enter(env)
          begin
            @app.call(env)
          ensure
            leave(env)
          end
        end

        private

        # Rails keeps in mind until the end of the request that there was a change, and would load for the next one again.
        def release_when_prepared
          release = lambda do
            @reloader.reloaded!
            end_alone
          end
          @reloader.to_prepare { release.call }
        end

        def enter(env)
          @change.wait until enters?(env)
          @inside += 1
        end

        def enters?(env)
          return false if @alone
          return true unless @reloader.check.call
          return false if @inside.positive?

          @alone = env
          true
        end

        def leave(env)
          @inside -= 1
          end_alone if @alone.nil? || @alone.equal?(env)
        end

        def end_alone
          @alone = nil
          @change.broadcast
        end
      end
      private_constant :Reloading
    end
  end
end
