# frozen_string_literal: true

module Ringspun
  module Jobs
    class Storage
      class Sqlite < Storage
        # A child inherits no connection: see {Engine#rest}. Ruby calls Process._fork for every fork, see
        # https://docs.ruby-lang.org/en/master/Process.html#method-c-_fork
        #
        # @api private
        module Forks
          def _fork
            engines = Engine.living
            return super if engines.empty?

            pauses = []
            parent = Process.pid
            begin
              Forks.rest(engines, pauses)
              super
            ensure # also in a child in which the hook of another library has failed
              Process.pid == parent ? Forks.go_on(pauses) : Forks.leave(engines)
            end
          end

          class << self
            # Stops all strands meanwhile. A thread of its own waits, for a handler of a signal may take no lock. Whoever is
            # interrupted ends it.
            def rest(engines, pauses)
              thread = Aside.start { engines.each { |engine| engine.rest(pauses) } }
              Fiber.blocking { thread.value }
            ensure
              Fiber.blocking { thread.kill.join } if thread&.alive?
            end

            # In the child.
            def leave(engines)
              Engine.forget
              engines.each(&:abandon)
            end

            # It goes on even where whoever waits is interrupted.
            def go_on(pauses) = Aside.call { pauses.each(&:end) }
          end
        end
        private_constant :Forks

        Process.singleton_class.prepend(Forks)
      end
    end
  end
end
