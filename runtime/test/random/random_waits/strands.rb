# frozen_string_literal: true

# Time, strands, scopes, and what one strand does to another.
class RandomWaits
  CALLS_OF.merge!(
    sleep: -> { @machine.sleep(limit) },
    yield: -> { @machine.yield },
    park: -> { @machine.park(limit) },
    schedule: -> { @machine.schedule(@strands.sample(random: @random), 1) },
    schedule_error: -> { rarely { @machine.schedule(anyone, Errno::EPERM.new) } },
    terminate: -> { @random.rand(4).zero? && @machine.terminate(@strands.sample(random: @random)) },
    join: -> { other&.join },
    await: -> { other&.await },
    join_several: -> { several { |strands| @machine.join(*strands) } },
    await_several: -> { several { |strands| @machine.await(*strands) } },
    scope: -> { @machine.scope(deadline: limit) { |scope| 2.times { scope.spin { @machine.sleep(limit) } } } },
    shield: -> { @machine.scope(shield: true, deadline: limit) { @machine.sleep(limit) } },
    scope_cancel: -> { cancelled_scope },
    scope_deadline: -> { @machine.scope(deadline: limit) { |scope| scope.extend_deadline(limit).then { @machine.sleep } } },
    timeouts: -> { @machine.timeout(limit) { @machine.timeout(limit) { @machine.read(@pipe[0], +"", 2) } } },
    periodically: -> { @machine.timeout(limit) { @machine.periodically(LIMIT_MAX / 4) { @machine.yield } } },
    offload: -> { Ringspun.offload { 1 } }
  )

  private

  def anyone = @strands.sample(random: @random)

  def rarely = @random.rand(4).zero? && yield

  # Those that wait for others may be awaited themselves, but by none of these.
  def several
    strands = [other, other].compact.uniq
    yield strands if strands.any?
  end

  def cancelled_scope
    @machine.scope do |scope|
      scope.spin { @machine.read(@pipe[0], +"", 2) }
      @machine.sleep(limit)
      scope.cancel
    end
  end
end
