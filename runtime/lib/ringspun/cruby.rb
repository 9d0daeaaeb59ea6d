# frozen_string_literal: true

module Ringspun
  # What has to be done differently for one CRuby than for another, as far as that can be done in Ruby. Nothing here asks for a
  # version. What is done in C lies in ext/ringspun/binding/cruby.
  #
  # @api private
  module CRuby
    # From 4.0 on a forked child has no fiber scheduler, and what goes on in it is a blocking fiber, in which no hook is
    # called. So the fiber that forks is made a blocking one for that time, in parent and child, and the scheduler is set
    # anew. Ruby calls `_fork` for every fork but that of `daemon`, and asks libraries to extend it.
    module Forks
      def _fork = CRuby.with_scheduler { super }
      def daemon(...) = CRuby.with_scheduler { super }
    end

    # The scheduler, if it is one of ours, is the thread's after the block as well, in whatever process.
    def self.with_scheduler(&block)
      scheduler = Fiber.scheduler
      return yield unless scheduler.is_a?(Scheduler)

      Fiber.blocking(&block).tap { Fiber.set_scheduler(scheduler) unless Fiber.scheduler }
    end
  end
  private_constant :CRuby
end

Process.singleton_class.prepend(Ringspun.const_get(:CRuby)::Forks)
