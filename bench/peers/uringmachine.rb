# frozen_string_literal: true

# UringMachine as the scripts run it that it measures itself with (benchmark/common.rb in the gem).

require "uringmachine"
require "uringmachine/fiber_scheduler"

module Bench
  module UringMachine
    # The block starts fibers on the machine, and answers them.
    def self.run(ring)
      machine = UM.new(**ring)
      machine.await(yield(machine))
    end

    # Stock Ruby on its fiber scheduler. The block is given how to start something.
    def self.schedule
      scheduler = UM::FiberScheduler.new(UM.new)
      Fiber.set_scheduler(scheduler)
      yield Fiber.method(:schedule)
      scheduler.join
    ensure
      Fiber.set_scheduler(nil)
    end
  end
end
