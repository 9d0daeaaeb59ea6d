# frozen_string_literal: true

# A thread that has a lock until the thread of its maker waits, for that lock or for anything else.
module Keeper
  # Returns when it has the lock, and never waits.
  #
  # @param owner [Object] which has a ShortLock
  # @return [Thread]
  def self.hold(owner)
    waiting = Thread.current
    lock = owner.instance_variable_get(:@lock).instance_variable_get(:@mutex)
    keeper = Thread.new { lock.synchronize { Thread.pass until waiting.stop? } }
    Thread.pass until lock.locked?
    keeper
  end
end
