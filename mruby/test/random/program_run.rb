# frozen_string_literal: true

# Runs a Program on a machine, and judges what has come of it.
class ProgramRun
  include ProgramParts

  # The error of a step, with a number.
  class Failure < StandardError
    attr_reader :number

    def initialize(number)
      super("failure #{number}")
      @number = number
    end
  end

  FOREVER = Float::INFINITY
  LONG = 10_000

  # @return [String, nil] what is wrong
  def self.failure(program, seed, real: false) = new(program).run(seed, real)

  def initialize(program)
    @program = program
    @entered = 0
    @left = 0
    @late = false
  end

  def run(seed, real)
    return Ringspun.run { |machine| @machine = machine and main } && wrong if real

    result = Ringspun::Simulation.run(seed: seed) { |machine| @machine = machine and main }
    wrong || ("#{result.open_descriptors} descriptors are left" if result.open_descriptors > 0)
  rescue StandardError, Ringspun::Cancelled => error
    "#{error.class}: #{error.message}"
  end

  private

  def main
    @outcome = outcome_of(@program)
    @machine.spin do
      Ringspun.wait(0.005)
      @late = true
    end
    true
  end

  def outcome_of(step)
    [:returned, value_of(step)]
  rescue Failure, Ringspun::TimeoutError => error
    [:raised, code_of(error)]
  end

  def code_of(error) = error.is_a?(Failure) ? error.number : :timeout

  def wrong
    return "a strand of the run has not ended with it" unless @late
    return "#{@entered} ensure blocks, and #{@left} have run to their end" unless @entered == @left

    @program.judge(@outcome)
  end

  # --- steps ---

  def value_of(step) = __send__(step.kind, step)
  def first_of(step) = value_of(step.parts[0])

  def number(step) = step.numbers[0]

  def wait(step)
    Ringspun.wait(step.seconds)
    first_of(step)
  end

  def give_way(step)
    step.times.times { @machine.yield }
    first_of(step)
  end

  def failure(step) = failure_now(step.numbers[0])
  def failure_now(number) = raise(Failure.new(number))

  def rescued(step)
    first_of(step)
  rescue Failure, Ringspun::TimeoutError => error
    [:rescued, code_of(error)]
  end

  def ensured(step) = ensuring(step.seconds) { first_of(step) }

  # The block, behind which an ensure block runs that waits.
  def ensuring(seconds)
    @entered += 1
    yield
  ensure
    begin
      Ringspun.wait(seconds)
    ensure
      @left += 1
    end
  end

  def for_ever = ensuring(0) { Ringspun.wait(FOREVER) }

  def all(step)
    @machine.scope do |scope|
      strands = spin_all(scope, step)
      values = step.choose([strands, strands.reverse]).map(&:await)
      step.choose([values, values.reverse])
    end
  end

  def spin_all(scope, step) = step.parts.map { |part| scope.spin { value_of(part) } }

  def strand(step) = @machine.spin { first_of(step) }.await

  def within(step) = @machine.timeout(LONG) { first_of(step) }

  def limited(step)
    @machine.timeout(step.seconds) do
      @machine.scope { |scope| spin_all(scope, step) and for_ever }
    end
  end

  def cancelled(step)
    @machine.scope do |scope|
      spin_all(scope, step)
      scope.spin { for_ever }
      step.times.times { @machine.yield }
      Ringspun.wait(step.seconds) if step.choose([true, false])
      scope.cancel
      nil
    end
  end

  def failing(step)
    @machine.scope do |scope|
      spin_all(scope, step)
      scope.spin { for_ever }
      scope.spin { Ringspun.wait(step.seconds) and failure_now(step.numbers[0]) }
      step.choose([nil, true]) && for_ever
    end
  end

  def terminated(step)
    @machine.scope do |scope|
      strand = scope.spin do
        first_of(step)
        for_ever
      end
      step.times.times { @machine.yield }
      @machine.terminate(strand)
      begin
        strand.await
      rescue Ringspun::TerminatedError
        :terminated
      end
    end
  end

  # The strand is cancelled as soon as it is in there, and goes on to the end.
  def shielded(step)
    value = nil
    began = Ringspun::Queue.new
    @machine.scope do |scope|
      scope.spin do
        Ringspun.shield do
          began.push(:now)
          value = first_of(step)
        end
      end
      began.pop
      scope.cancel
    end
    value
  end

  def generator(step)
    values = Enumerator.new { |out| step.parts.each { |part| out << value_of(part) } }
    step.parts.map { values.next }
  end

  # A run of its own, with a strand that has ended when it returns.
  def nested(step)
    ended = false
    value = Ringspun.run do
      @machine.spin do
        ensuring(step.seconds) { Ringspun.wait(step.seconds) }
      ensure
        ended = true
      end
      first_of(step)
    end
    ended ? value : "a strand of a run inside has not ended with it"
  end

  def evaluation(step)
    value = Ringspun.concurrent_proc { first_of(step) }.__send__(step.choose(%i[call call_nonblock call_detached]))
    value.is_a?(Ringspun::Evaluation) ? value.await_result : value
  end
end
