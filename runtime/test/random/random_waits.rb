# frozen_string_literal: true

require "support/patience"
require "timeout"

# Random programs for a simulation, drawn from a seed: strands that make every waiting call there is, each with a limit of virtual
# time. So every program ends by itself, and early; one that does not has met a wait that nobody ends, or time that runs away.
class RandomWaits
  # Name => what a strand does. The files beside this one put in theirs.
  CALLS_OF = {}

  STRANDS = 2..5
  CALLS = 1..6
  LIMIT_MAX = 0.005
  # Far more than the limits of all calls together, with what the faults delay.
  ELAPSED_MAX = 10
  # Of so many seeds one runs twice and must do the same.
  TWICE_EVERY = 8
  # A seed takes a few milliseconds.
  REAL_SECONDS_MAX = 20

  # What a wait may end with. All else is a fault.
  ENDS = [Ringspun::TimeoutError, Ringspun::Evaluation::TimeoutError, Ringspun::ClosedError, Ringspun::TerminatedError, Timeout::Error,
          SystemCallError, EOFError, ThreadError].freeze

  class << self
    # @return [Integer] how many programs have run
    def explore(seeds, from: 0)
      watched do
        seeds.times do |i|
          @seed = from + i
          @patience = Patience.new(REAL_SECONDS_MAX)
          once = run(@seed)
          again = @seed % TWICE_EVERY == 0 ? run(@seed) : once
          raise "seed #{@seed}: a second run differs" unless once == again
        end
      end
      seeds
    end

    def run(seed)
      result = Ringspun::Simulation.run(seed: seed) { |machine| new(machine, seed).call }
      raise "time ran away: #{result.elapsed} s" if result.elapsed > ELAPSED_MAX
      raise "#{result.open_descriptors} descriptors are left" unless result.open_descriptors.zero?

      [result.trace_hash, result.elapsed]
    rescue StandardError => error
      raise error.class, "seed #{seed}: #{error.message}", error.backtrace
    end

    private

    # A program that goes round for ever must not take its seed along.
    def watched
      done = false
      watching = Thread.new do
        until done
          sleep 1
          next unless !done && @patience.over?

          warn "seed #{@seed}: runs longer than #{REAL_SECONDS_MAX} s"
          Process.abort
        end
      end
      yield
    ensure
      done = true
      watching.wakeup.join
    end
  end

  def initialize(machine, seed)
    @machine = machine
    @random = Random.new(seed)
    @strands = []
  end

  def call
    make_things
    @strands = Array.new(@random.rand(STRANDS)) { @machine.spin { @random.rand(CALLS).times { one_call } } }
    @strands.each { |strand| ending { strand.join } }
  ensure
    ending { @stream.close(timeout: LIMIT_MAX) }
    @descriptors.each { |descriptor| @machine.close(descriptor) }
    @machine.close(@file)
    @machine.unlink("/file")
  end

  private

  def make_things
    @pipe, @other_pipe = @machine.pipe, @machine.pipe
    @pair = @machine.socketpair
    far, near = @machine.socketpair
    @stream = Ringspun::Stream.new(near)
    @descriptors = [*@pipe, *@other_pipe, *@pair, far]
    @far = far
    @reading = Ringspun::Mutex.new
    @file = @machine.open("/file", File::RDWR | File::CREAT)
    @queue, @sized = Ringspun::Queue.new, Ringspun::SizedQueue.new(1)
    @mutex, @semaphore = Ringspun::Mutex.new, Ringspun::Semaphore.new(1)
    @condition, @barrier = Ringspun::Condition.new, Ringspun::Barrier.new(2)
    @channel = Ringspun::Channel.new(1)
    @stock_queue, @stock_sized = Thread::Queue.new, Thread::SizedQueue.new(1)
    @stock_mutex, @stock_condition, @monitor = Thread::Mutex.new, Thread::ConditionVariable.new, Monitor.new
    @monitor_condition = @monitor.new_cond
  end

  def one_call
    name = CALLS_OF.keys.sample(random: @random)
    ending { @machine.timeout(limit) { instance_exec(&CALLS_OF.fetch(name)) } }
  end

  # Often the same, so that several waits end at once.
  def limit = LIMIT_MAX / [1, 2, 5, @random.rand(1.0..1000.0)].sample(random: @random)

  # One that was spun later waits for no one before it.
  def other = @strands[((@strands.index(@machine.running) || @strands.size) + 1)..]&.sample(random: @random)

  def ending
    yield
  rescue *ENDS
    nil
  end
end

require "random/random_waits/machine"
require "random/random_waits/streams"
require "random/random_waits/strands"
require "random/random_waits/evaluations"
require "random/random_waits/sync"
require "random/random_waits/stock"
