# frozen_string_literal: true

require "jobs_helper"
require "support/worked"

# What a worker tells the program's blocks for events.
class EventsTest < Minitest::Test
  include AnyBackend
  include Worked

  def registered(*events)
    seen = []
    config = Jobs::Config.new.update(concurrency: 10)
    events.each { |event| config.on(event) { |*arguments| seen << [event, *arguments] } }
    [config, seen]
  end

  def run_with(config)
    simulate do
      @storage = Storage::Memory.new(clock: -> { machine.now })
      @worker = Jobs::Worker.new(config, storage:, logger: lines)
      strand = machine.spin { worker.run }
      yield
      worker.stop
      strand.join
    end
  end

  def test_the_life_of_a_worker
    config, seen = registered(*Jobs::Config::LIFECYCLE)
    run_with(config) { machine.sleep(12) }
    assert_equal %i[startup heartbeat beat beat beat quiet shutdown exit], seen.flatten
  end

  def test_the_block_that_was_registered_last_is_the_first_at_the_end
    seen = []
    config = Jobs::Config.new
    2.times { |number| %i[startup shutdown].each { |event| config.on(event) { seen << [event, number] } } }
    run_with(config) { machine.sleep(1) }
    assert_equal [[:startup, 0], [:startup, 1], [:shutdown, 1], [:shutdown, 0]], seen
  end

  def test_jobs_that_fail_and_die
    on("fail") { raise IOError, "as told" }
    config, seen = registered(:failure, :death)
    run_with(config) do
      push("fail", "retry" => 1)
      yield_slowly { seen.size == 3 }
    end
    assert_equal %i[failure death failure], seen.map(&:first)
    assert_equal [[%w[fail], 0, "as told"], [%w[fail], 1, "as told"]],
                 seen.map { |_, job, error| [job["args"], job["retry_count"], error.message] }.uniq
  end

  def test_a_job_that_is_not_tried_again_dies_also_when_it_is_not_kept
    on("fail") { raise IOError }
    config, seen = registered(:death)
    run_with(config) do
      push("fail", "retry" => false)
      yield_slowly { seen.any? }
    end
    assert_empty dead
  end

  def test_a_block_that_raises_is_logged
    on("fail") { raise IOError }
    config = Jobs::Config.new
    seen = []
    %i[quiet failure].each { |event| config.on(event) { raise "oh" } }
    config.on(:failure) { seen << 1 }
    run_with(config) do
      push("fail")
      yield_slowly { seen.any? }
    end
    assert_match(/error error=RuntimeError message=oh a block for quiet raises/, lines.to_s)
    assert_match(/message=oh a block for failure raises/, lines.to_s)
  end

  def test_a_block_for_the_start_that_raises_ends_the_worker
    config = Jobs::Config.new
    config.on(:startup) { raise IOError, "no start" }
    config.on(:exit) { flunk "it has begun" }
    simulate do
      worker = Jobs::Worker.new(config, storage: Storage::Memory.new(clock: -> { machine.now }), logger: lines)
      assert_equal "no start", assert_raises(IOError) { worker.run }.message
    end
  end

  def test_an_unknown_event_is_refused
    error = assert_raises(Jobs::ConfigError) { Jobs::Config.new.on(:begin) }
    assert_match(/no event :begin; there are startup/, error.message)
  end
end
