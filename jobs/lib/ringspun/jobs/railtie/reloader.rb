# frozen_string_literal: true

module Ringspun
  module Jobs
    class Railtie
      # Makes a run of a job a unit of work of the application, with its newest code:
      # https://guides.rubyonrails.org/threading_and_code_execution.html
      #
      # Rails unloads old code once no other thread runs it. Strands share their thread, so here a job that comes after a change
      # waits itself until the others have ended.
      #
      # @api private
      class Reloader
        SOURCE = "job.ringspun"

        def initialize(app)
          @app = app
          @reloads = app.config.reloading_enabled?
          @lock = Thread::Mutex.new
          @calm = Thread::ConditionVariable.new
          @inside = 0
        end

        # May switch strands.
        #
        # @return [Object] the block's value
        def call(&)
          return @app.reloader.wrap(source: SOURCE, &) unless @reloads

          enter
          begin
            @app.reloader.wrap(source: SOURCE, &)
          ensure
            leave
          end
        end

        private

        def enter
          @lock.synchronize do
            if @app.reloaders.any?(&:updated?)
              @calm.wait(@lock) until @inside.zero?
              @app.reloader.wrap {} # loads the new code
            end
            @inside += 1
          end
        end

        def leave
          @lock.synchronize do
            @inside -= 1
            @calm.broadcast
          end
        end
      end
      private_constant :Reloader
    end
  end
end
