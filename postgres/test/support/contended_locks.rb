# frozen_string_literal: true

# Stands before all locks of a pool, and counts the sections under them. At one section the strand that enters it is terminated,
# and at that one or a later one a thread has the lock, until another thread waits for it or nothing else goes on.
#
# No section may switch strands or close a connection: what does is in `faults`.
class ContendedLocks
  # A lock in the place of another.
  Door = Struct.new(:locks, :lock) do
    def synchronize(&) = locks.enter(lock) { lock.synchronize { locks.inside(&) } }
  end
  # To watch the calls of all methods is to walk the heap, whenever a section begins.
  CLOSE = Ringspun::Postgres.const_get(:Lane).instance_method(:close)
  private_constant :Door, :CLOSE

  # @return [Array<String>]
  attr_reader :faults

  # @param terminate_at [Integer, nil] nil: nobody is terminated
  # @param contend_at [Integer]
  # @param only [Strand, nil] whose sections count; nil: those of all strands
  def initialize(pool, terminate_at, contend_at, only = nil)
    @only = only
    @terminate_at = terminate_at
    @contend_at = contend_at
    @entered = 0
    @faults = []
    hub = pool.instance_variable_get(:@hub)
    parts = [pool, pool.connections, pool.opener, pool.canceller, pool.config.sharing, hub,
             hub&.instance_variable_get(:@audience)]
    parts.compact.product(%i[@lock @beginning]) { |part, name| stand_before(part, name) }
  end

  # @return [Boolean] whether a thread had the lock at the section that was asked for
  def reached? = @entered >= @contend_at

  def enter(lock)
    return yield if @left || (@only && !@only.equal?(Ringspun::Machine.current.running))

    @entered += 1
    Ringspun::Machine.current.running&.terminate if @entered == @terminate_at
    keep(lock) if @entered == @contend_at
    yield
  end

  def inside(&)
    thread = Thread.current
    closing = TracePoint.new(:call) { |point| @faults << told(point) if Thread.current.equal?(thread) }
    switching = TracePoint.new(:fiber_switch) { |point| @faults << told(point) }
    closing.enable(target: CLOSE) { switching.enable(target_thread: thread, &) }
  end

  # From now on it only watches the sections.
  def let_go
    @left = true
    Fiber.blocking { @thread&.join }
  end

  private

  def stand_before(part, name)
    lock = part.instance_variable_get(name) or return
    part.instance_variable_set(name, Door.new(self, lock))
  end

  def told(point) = "#{point.event} #{point.method_id}\n#{caller.first(12).join("\n")}"

  # Without a wait of the caller's, which is to be seen to wait for the lock alone.
  def keep(lock)
    waiter = Thread.current
    kept = false
    @thread = Thread.new do
      lock.synchronize do
        kept = true
        Thread.pass until @left || waiter.stop?
      end
    end
    Thread.pass until kept
  end
end
