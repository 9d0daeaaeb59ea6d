# frozen_string_literal: true

module Ringspun
  # What depends on the version of CRuby, as far as it can be done in Ruby. Nothing here asks for the version. The part in C is
  # in ext/ringspun/binding/cruby.
  #
  # @api private
  module CRuby
    # From 4.0 on a forked child has no fiber scheduler, and its fiber is a blocking one, in which no hook is called. So the fiber
    # is made blocking during the fork, in parent and child, and the scheduler is set again. Ruby calls Process._fork for every
    # fork except that of Process.daemon; its documentation asks libraries to override it.
    module Forks
      def _fork = CRuby.with_scheduler { super }
      def daemon(...) = CRuby.with_scheduler { super }
    end

    # Keeps the thread's scheduler, if it is a Ringspun::Scheduler, over a fork in the block, in parent and child.
    def self.with_scheduler(&block)
      scheduler = Fiber.scheduler
      return yield unless scheduler.is_a?(Scheduler)

      Fiber.blocking(&block).tap { Fiber.set_scheduler(scheduler) unless Fiber.scheduler }
    end
  end
  private_constant :CRuby
end

Process.singleton_class.prepend(Ringspun.const_get(:CRuby)::Forks)
