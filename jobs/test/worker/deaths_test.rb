# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/scripted_quarantine"
require_relative "../support/worked"

# What Config#on_process_death hears of.
class WorkerDeathsTest < Minitest::Test
  include AnyBackend
  include Worked

  def setup
    super
    @runs = Hash.new(0)
    on("note") { |name, _| @runs[name] += 1 }
  end

  def note(name, **) = entry("note", name, jid: name, **)

  def with_hook(*deeds, on_death:, **settings)
    simulate do
      @storage ||= Faulty.new(Storage::Memory.new(clock: -> { machine.now }))
      @worker = new_worker(options: { quarantine: ScriptedQuarantine.new(*deeds) }, **settings)
      config.on_process_death(&on_death)
      strand = machine.spin { worker.run }
      yield
      worker.stop
      strand.join
    end
  end

  def test_a_hook_hears_of_each_that_was_taken_over_or_died_with_its_process
    told = []
    on_death = lambda { |job, death|
      told << [job["jid"], death.kind, death.fate, death.queue]
      raise "of the hook" if job["jid"] == "b"
    }
    with_hook(:die, :die, queues: %w[other], on_death:) do
      died(note("a"), note("b"))
      until_done
    end
    quarantine = Storage::QUARANTINE
    both = [[:taken_over, nil, "default"], [:died, "SIGKILL", quarantine]].flat_map { |how| %w[a b].map { |name| [name, *how] } }
    assert_equal both + [["a", :died, "SIGKILL", quarantine]], told
    assert_equal({ done: 2, died: 1 }, worker.counts)
    assert_match(/error jid=b error=RuntimeError message="?of the hook"? on_process_death raises/, lines.to_s)
  end

  def test_a_hook_that_raises_what_is_no_standard_error
    on_death = ->(_, death) { raise death.kind == :died ? NotImplementedError : SystemExit }
    with_hook(:die, on_death:) do
      died(note("a"))
      yield_slowly { @runs["a"] == 1 }
      until_done
    end
    assert_equal({ done: 1, died: 1 }, worker.counts)
    assert_equal %w[SystemExit NotImplementedError], lines.to_s.scan(/error=(\w+) .*on_process_death raises/).flatten
  end

  def test_a_hook_that_waits_delays_nobody
    told = 0
    on_death = ->(_, death) { machine.sleep(1000).then { told += 1 } if death.kind == :died }
    with_hook(->(jids) { :die if jids.include?("poison") }, on_death:) do
      push_entry(note("a"), note("poison"), queue: Storage::QUARANTINE)
      began = machine.now
      yield_slowly { [@runs["a"], storage.stats[:dead]] == [1, 1] }
      assert_operator machine.now - began, :<, 100
      yield_slowly { told == 5 } # of two in one child, and three times of the poison job
    end
  end

  def test_what_exq_has_left_is_taken_over_on_request
    [true, false].each do |wanted|
      @storage = Faulty.new(Storage::Memory.new(clock: -> { Ringspun::Machine.current.now }))
      left = Storage::Recovered.new("host", "default", note("a"), :queue)
      storage.__getobj__.define_singleton_method(:recover_exq) { |*, **| [left].compact.tap { left = nil } }
      told = []
      on_death = ->(job, death) { told << [job["jid"], *death.to_a] }
      with_hook(on_death:, recover_exq: wanted) { machine.sleep(60) }
      assert_equal wanted ? [["a", :taken_over, nil, "default", "host"]] : [], told
      assert_equal wanted ? 1 : 0, lines.all.grep(/jid=a .*node=host taken over from a dead process: back in its queue/).size
      lines.all.clear
    end
  end
end
