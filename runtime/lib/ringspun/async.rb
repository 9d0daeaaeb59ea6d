# frozen_string_literal: true

require "ringspun"

module Ringspun
  # Loaded by `require "ringspun/async"`. Code that uses the gem async (`Async {}`, `Sync {}`, async-http) runs inside a
  # {Ringspun.run} then. Each task of Async runs in a strand.
  #
  # Async uses `Fiber.scheduler` as its reactor, and keeps its tasks in a tree with the reactor as its root. So {Scheduler} gets
  # the methods of a reactor, and a {Root} is the root of the tree. Each task has a strand, which resumes the fiber that Async has
  # made for the task, and ends with it.
  #
  # Threads with Async's own scheduler are not affected.
  #
  # @api private
  module AsyncBridge
    begin
      require "async"
    rescue LoadError => e
      raise unless e.path == "async"

      raise UsageError, "ringspun/async is for the gem async, which is not there; add `gem \"async\"` to the Gemfile"
    end

    # The methods of async that are called here, or must call this. Versions before Async::Promise are not supported: their tasks
    # wake each other by more than their fibers.
    NEEDED = {
      "Async::Node" => %i[add_child remove_child children finished? transient? traverse print_hierarchy terminate],
      "Async::Scheduler" => %i[resume push raise transfer yield with_timeout load async run],
      "Async::Task" => %i[run stop wait fiber transient=],
      "Async::Promise" => %i[wait resolve],
      "Async::Timeout" => %i[duration= cancel!],
      "Kernel" => %i[Async Sync],
      "Fiber" => %i[async_task]
    }.freeze

    class << self
      # @raise [UsageError] when this version of async lacks one of them
      def check(needed = NEEDED)
        missing = needed.flat_map do |name, methods|
          next name unless Object.const_defined?(name)

          owner = Object.const_get(name)
          methods.reject { |method| has?(owner, method) }.map { |method| "#{name}##{method}" }
        end
        return if missing.empty?

        raise UsageError, "ringspun/async cannot work with async #{::Async::VERSION}, which has no #{missing.join(", ")}; " \
                          "it is made for 2.29 and later"
      end

      private

      def has?(owner, method) = owner.method_defined?(method) || owner.private_method_defined?(method)
    end
    check
  end
  private_constant :AsyncBridge
end

require_relative "async/blocks"
require_relative "async/scheduling"
require_relative "async/transient"

module Ringspun
  module AsyncBridge
    Scheduler.prepend(Scheduling)
    Blocks.then { |blocks| Object.include(blocks) } # YARD knows no Object
    Transient.then { |transient| ::Async::Task.prepend(transient) }
  end
end
