# frozen_string_literal: true

module Ringspun
  # A lock for what strands and threads share. Nothing refuses it: a strand that is cancelled cannot wait for a Thread::Mutex, so
  # it would leave behind what it has to take back under the lock. A thread that is interrupted does a section to its end, or
  # does not begin it.
  #
  # The whole machine stands still while one of its strands waits. So a section is a few instructions long: it does no IO,
  # switches no strands, and calls nothing of the user's. What it finds to be closed is closed after it. Inside of it
  # Fiber.current_scheduler is nil.
  #
  # @api private
  class ShortLock
    NEVER = { Object => :never }.freeze
    private_constant :NEVER

    def initialize
      @mutex = Thread::Mutex.new
    end

    # Switches no strands. The mask is the thread's, and holds for this strand alone, because no other one runs meanwhile.
    #
    # @return [Object] the block's value
    def synchronize(&) = Thread.handle_interrupt(NEVER) { Fiber.blocking { @mutex.synchronize(&) } }
  end
  private_constant :ShortLock
end
