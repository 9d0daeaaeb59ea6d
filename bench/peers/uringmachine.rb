# frozen_string_literal: true

# UringMachine as in its own benchmarks: benchmark/common.rb in https://github.com/digital-fabric/uringmachine

require "uringmachine"
require "uringmachine/fiber_scheduler"

module Bench
  module UringMachine
    # The block starts fibers on the machine, and returns them.
    def self.run(ring)
      machine = UM.new(**ring)
      machine.await(yield(machine))
    end

    # Stock Ruby on its fiber scheduler. The block gets a function that starts a fiber.
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
