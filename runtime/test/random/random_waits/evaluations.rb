# frozen_string_literal: true

# Concurrent procs and their evaluations.
class RandomWaits
  CALLS_OF.merge!(
    evaluation: -> { Ringspun::ConcurrentProc.new { @machine.sleep(limit) }.call_detached.await_result(within: limit) },
    conclude: -> { Ringspun::ConcurrentProc.new { @machine.sleep(1) }.call_nonblock.conclude_to(1) },
    fastest: -> { fastest },
    wait: -> { Ringspun.wait(limit) },
    resume: -> { resumed },
    call: -> { sleeper.call },
    call_and_forget: -> { sleeper.call_and_forget },
    await_readable: -> { Ringspun.await_readable(@pair.sample(random: @random), within: limit) },
    await_writable: -> { Ringspun.await_writable(@pair.sample(random: @random), within: limit) },
    scope_concurrently: -> { scope_concurrently }
  )

  private

  def sleeper = Ringspun::ConcurrentProc.new { ending { @machine.sleep(limit) } }

  def scope_concurrently
    @machine.scope(deadline: limit) { |scope| scope.concurrently { @machine.sleep(limit) }.await_result }
  end

  def fastest
    evaluations = Array.new(2) { sleeper.call_detached }
    Ringspun.await_fastest(*evaluations, within: limit)
  ensure
    evaluations.each { |evaluation| evaluation.conclude_to(1) unless evaluation.concluded? }
  end

  def resumed
    evaluation = Ringspun::ConcurrentProc.new { ending { Ringspun.await_resume!(within: limit) } }.call_detached
    @machine.sleep(limit)
    evaluation.resume!(1) if evaluation.waiting?
    evaluation.await_result(within: limit)
  end
end
