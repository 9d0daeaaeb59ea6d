# frozen_string_literal: true

require "jobs_helper"

# Random callers of one enqueuer, on a clock that jumps: they are cancelled, run out of time, push many at once and in shields,
# and the storage takes its time, refuses and falls silent. Whatever was accepted is stored, nothing twice, and nobody waits for
# ever: that would be a deadlock, which the machine tells.
class GroupCommitStormTest < Minitest::Test
  include AnyBackend
  include Strands

  Jobs = Ringspun::Jobs

  class Storage
    attr_reader :stored, :most

    def initialize(random)
      @random = random
      @stored = []
      @calls = @most = 0
    end

    def push(pushes)
      @most = [@most, @calls += 1].max
      luck = @random.rand(20)
      raise Jobs::UnavailableError, "down" if luck.zero?

      @stored.concat(pushes.map(&:jid))
      sleep(0.001 * @random.rand(4)) if luck > 3
      raise Jobs::UnknownOutcomeError, "cut" if luck == 1
      raise "a bug" if luck == 2
    ensure
      @calls -= 1
    end
  end

  Over = Class.new(StandardError)

  # Found leaders of batches whom nobody called any more, for two reasons.
  (1..40).each do |seed|
    define_method("test_seed_#{seed}") do
      @random = Random.new(seed)
      @storage = Storage.new(@random)
      @enqueuer = Jobs::Enqueuer.new(@storage)
      @accepted = []
      begin
        simulate(seed: seed) { storm }
      rescue Over
        nil
      end
      assert_empty @accepted - @storage.stored
      assert_equal @storage.stored.uniq, @storage.stored
      assert_operator @storage.most, :<=, 2
    end
  end

  def storm
    callers = Array.new(5 + @random.rand(30)) { |number| machine.spin { 15.times { |turn| turn("#{number}/#{turn}") } } }
    machine.spin do
      10.times do
        machine.sleep(0.002 * @random.rand(4))
        machine.terminate(callers.sample(random: @random))
      end
    end
    machine.sleep(0.01 * @random.rand(5))
    raise Over if @random.rand(3).zero?

    callers.each { |caller| caller.join rescue Ringspun::TerminatedError }
    assert_equal "end", until_stored("end")
  end

  def turn(jid)
    case @random.rand(4)
    when 0 then machine.timeout(0.001 * @random.rand(4)) { push(jid) }
    when 1 then Ringspun.shield { push(jid) }
    when 2 then Ringspun.scope(deadline: 0.001 * (1 + @random.rand(5))) { |scope| scope.spin { push(jid) } }
    else push(jid)
    end
    machine.sleep(0.001 * @random.rand(3)) if @random.rand(3).zero?
  rescue Ringspun::TimeoutError
    nil
  end

  def push(jid)
    one = Jobs::Storage::Push.new("q", "x" * (@random.rand(20).zero? ? 70_000 : 1), jid)
    answers = @random.rand(10).zero? ? @enqueuer.push_all([one]) : [@enqueuer.push(one)]
    @accepted.concat(answers)
  rescue Jobs::Error, RuntimeError
    nil
  end

  def until_stored(jid)
    number = 0
    begin
      @enqueuer.push(Jobs::Storage::Push.new("q", "x", "#{jid}#{number += 1}"))
    rescue Jobs::Error, RuntimeError
      retry
    end
    jid
  end
end
