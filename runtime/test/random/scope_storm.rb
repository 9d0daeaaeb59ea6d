# frozen_string_literal: true

require_relative "../support/strands"
require_relative "../support/tally"

# Random programs of scopes, timeouts, shields, locks, queues and strands that fail, are told things, cancelled and killed,
# all drawn from a seed. What must hold afterwards: whatever began has ended, nobody waits or holds anything, a lock had one
# holder at a time, every item was popped once or is still there, and no cancellation has come out of its scope.
# Included by a test class, which says how many `seconds` a test may take.
module ScopeStorm
  include Strands

  DEPTH = 4
  EXPECTED = [NilClass, Strands::Failure, Ringspun::TimeoutError, Ringspun::TerminatedError, Ringspun::DeadlockError].freeze

  def test_random_programs
    until_time_is_up { |seed| assert_holds(seed) { |program| program.run(machine) } }
  end

  def test_random_programs_in_simulation
    until_time_is_up do |seed|
      assert_holds(seed) { |program| Ringspun::Simulation.run(seed: seed) { |machine| program.run(machine) } }
    end
  end

  def test_the_same_program_runs_in_the_same_way
    until_time_is_up do |seed|
      hashes = Array.new(2) do
        Ringspun::Simulation.run(seed: seed) { |machine| Program.new(seed).tap { |program| program.run(machine) } }.trace_hash
      end
      assert_equal hashes[0], hashes[1], "seed #{seed}"
    end
  end

  private

  def until_time_is_up
    first = Integer(ENV.fetch("SEED") { Random.new_seed % 1_000_000_000 })
    deadline = Minitest.clock_time + seconds.fdiv(3)
    seed = first
    while Minitest.clock_time < deadline || seed == first
      Tally.add(programs: 1)
      yield seed
      break if ENV["SEED"]

      seed += 1
    end
  end

  def assert_holds(seed)
    program = Program.new(seed)
    yield program
    assert_empty program.complaints, "seed #{seed}"
    machine.sleep(0)
    assert_equal [1, 0, 0], machine.metrics.values_at(:strands_live, :timers, :run_queue), "seed #{seed}"
  rescue StandardError => error
    flunk "seed #{seed}: #{error.full_message(highlight: false)}"
  end

  # One random program.
  class Program
    attr_reader :complaints

    def initialize(seed)
      @random = Random.new(seed)
      @complaints = []
      @entered = @left = @holders = @pushed = @popped = 0
      @strands = []
      @homes = {} # strand => its own fiber
      @inside = Hash.new(0) # strand => how deep in fibers of its own making
    end

    def run(machine)
      @machine = machine
      @mutex = Ringspun::Mutex.new
      @queue = Ringspun::SizedQueue.new(3)
      @semaphore = Ringspun::Semaphore.new(2)
      top = Array.new(1 + pick(4)) { machine.spin { part(DEPTH) } }
      @strands.concat(top)
      @strands.each { |strand| end_of(strand) } # grows meanwhile
      Tally.add(strands: @strands.size)
      look_back
    end

    private

    def pick(count) = @random.rand(count)
    def complain(text) = @complaints << text

    # An exception that was scheduled for one that never waits again is still there when it ends: nothing to complain about.
    def end_of(strand)
      strand.join
    rescue *EXPECTED.drop(1)
      nil
    rescue Exception => e
      complain("a strand ended with #{e.full_message(highlight: false)}")
    end

    def look_back
      complain("#{@entered} began, #{@left} ended") unless @entered == @left
      complain("the lock is held") if @mutex.locked? || @mutex.waiting.positive?
      complain("a permit is missing") unless @semaphore.available == 2 && @semaphore.waiting.zero?
      complain("somebody waits at the queue") unless @queue.num_waiting.zero?
      complain("#{@pushed} items pushed, #{@popped} popped, #{@queue.size} left") unless @pushed == @popped + @queue.size
    end

    # A piece of a strand: counts that its ensure block runs, once.
    def part(depth)
      @entered += 1
      @homes[@machine.running] ||= Fiber.current
      (1 + pick(4)).times { step(depth) }
      depth
    ensure
      @left += 1
    end

    STEPS = %i[rest rest rest lock queue permit scope scope timeout shield spin tell tell inner fail farewell].freeze

    def step(depth) = __send__(depth.zero? ? :rest : STEPS[pick(STEPS.size)], depth - 1)

    def moment = pick(4) * 0.000_05

    def rest(_depth)
      case pick(4)
      when 0 then @machine.sleep(moment)
      when 1 then park
      else @machine.yield
      end
    end

    def park
      @machine.park(moment)
    rescue Ringspun::TimeoutError
      nil
    end

    def lock(depth)
      @mutex.synchronize do
        complain("two hold the lock") unless (@holders += 1) == 1
        rest(depth)
      ensure
        @holders -= 1
      end
    end

    def queue(_depth)
      if pick(2).zero?
        @pushed += 1 if @queue.push(:item, timeout: moment)
      elsif @queue.pop(timeout: moment)
        @popped += 1
      end
    end

    def permit(depth) = @semaphore.hold { rest(depth) }

    def scope(depth)
      deadline = pick(3).zero? ? moment : nil
      catch(:out) do
        @machine.scope(deadline: deadline, shield: pick(8).zero?) do |scope|
          pick(4).times { @strands << scope.spin { part(depth) } }
          part(depth)
          leave(scope)
        end
      end
    rescue Strands::Failure, Ringspun::TimeoutError
      raise if pick(2).zero?
    end

    def leave(scope)
      case pick(6)
      when 0 then scope.cancel
      when 1 then throw :out
      when 2 then raise Strands::Failure, "of a block"
      when 3 then scope.cancelled? || scope.deadline = moment
      end
    end

    def timeout(depth)
      @machine.timeout(moment) { part(depth) }
    rescue Ringspun::TimeoutError
      raise if pick(3).zero?
    end

    def shield(depth) = Ringspun.shield(deadline: 0.001) { part(depth) }

    def spin(depth)
      strand = @machine.spin { part(depth) }
      @strands << strand
      error = await(strand)
      raise error if error && pick(3).zero?
    end

    def await(strand)
      strand.await
      nil
    rescue Strands::Failure, Ringspun::TerminatedError, Ringspun::TimeoutError => e
      e
    end

    # Somebody, perhaps itself or one that has ended, gets to hear something.
    def tell(_depth)
      strand = @strands[pick(@strands.size)] or return
      case pick(4)
      when 0 then @machine.terminate(strand)
      when 1 then @machine.schedule(strand, Strands::Failure.new("scheduled"))
      when 2 then @machine.schedule(strand, :value)
      else switch(strand)
      end
    end

    # From outside. Not from an inner fiber: it would not be found again by the machine.
    def switch(strand)
      fiber = @homes[strand]
      return unless fiber && strand.state == :parked && Fiber.current.equal?(@homes[@machine.running])

      if pick(3).zero?
        fiber.kill if @inside[strand].zero? # CRuby does not kill through an inner fiber
      else
        fiber.raise(Strands::Failure, "from outside")
      end
    end

    def inner(depth)
      strand = @machine.running
      @inside[strand] += 1
      in_fiber(depth)
    ensure
      @inside[strand] -= 1
    end

    def in_fiber(depth)
      case pick(3)
      when 0 then Fiber.new { part(depth) }.resume
      when 1 then Enumerator.new { |out| 2.times { part(depth).then { out << 1 } } }.then { |each|
        (1 + pick(2)).times {
          each.next
        }
      }
      else raise_in_between(depth)
      end
    end

    def raise_in_between(depth)
      raise Strands::Failure
    rescue Strands::Failure
      @machine.yield
      complain("$! is #{$!.inspect}") unless $!.is_a?(Strands::Failure)
      part(depth)
    end

    def fail(_depth) = pick(2).zero? && raise(Strands::Failure, "of a step")

    # An ensure block that waits.
    def farewell(depth)
      part(depth)
    ensure
      pick(2).zero? ? Ringspun.shield(deadline: 0.001) { @machine.yield } : quietly { @machine.yield }
    end

    def quietly
      yield
    rescue Ringspun::Cancelled, Strands::Failure
      nil
    end
  end
end
