# frozen_string_literal: true

require "jobs_helper"
require "support/strands"

# Jobs wait, and no worker runs.
class AttendanceTest < Minitest::Test
  include AnyBackend

  Jobs = Ringspun::Jobs
  Storage = Jobs::Storage
  Attendance = Jobs::Enqueuer.const_get(:Attendance)

  TEXT = "no worker runs, and %s in the memory of process #{Process.pid}: start ringspun-jobs, and see that its log names the " \
         "same place".freeze

  def setup
    super
    @told = Attendance.told
    Attendance.told = false
    @now = 1000.0
    @said = []
  end

  def teardown
    Attendance.told = @told
    super
  end

  def storage = @storage ||= Storage::Memory.new

  def attendance = @attendance ||= Attendance.new(storage, clock: -> { @now }) { |text| @said << text }

  def push(count = 1)
    storage.push(Array.new(count) { |number| Storage::Push.new(queue: "default", entry: "{}", jid: number.to_s) })
    attendance.pass(@now)
  end

  def later(seconds)
    @now += seconds
    attendance.look
  end

  def work(info = {}) = storage.announce("host:1:aa", { "concurrency" => 1, "queues" => %w[default], **info }, [])

  def test_a_minute_without_a_worker_is_told_once
    push(2)
    assert_equal [45.0, false], [attendance.left, attendance.late?]
    later(44)
    assert_empty @said
    later(1)
    assert_empty @said
    assert_in_delta 15, attendance.left
    later(15)
    assert_equal [format(TEXT, "2 jobs wait")], @said
    push
    assert_nil attendance.left
    later(100)
    assert_equal 1, @said.size
    other = Attendance.new(storage, clock: -> { @now }) { flunk }
    other.pass(@now)
    assert_nil other.left
  end

  def test_a_worker_that_is_being_replaced_is_no_matter
    push
    later(45)
    work
    later(15)
    assert_nil attendance.left
    storage.retract("host:1:aa")
    push
    later(45)
    work
    later(15)
    push
    work("quiet" => true)
    later(60)
    assert_empty @said
  end

  def test_nothing_waits
    push
    storage.clear("default")
    later(45)
    assert_nil attendance.left
    later(100)
    assert_empty @said
  end

  # Who stores the next job sees that a look is due.
  def test_a_later_job
    push
    refute_predicate attendance, :late?
    @now += 50
    refute_predicate attendance, :late?
    push
    assert_predicate attendance, :late?
    later(0)
    refute_predicate attendance, :late?
    @now += 14
    push
    refute_predicate attendance, :late?
    later(1)
    assert_equal [format(TEXT, "3 jobs wait")], @said
  end

  def test_what_the_storage_has_against_it_is_no_matter_of_the_jobs
    push
    storage.define_singleton_method(:nodes) { |**| raise Jobs::UnavailableError, "away" }
    later(45)
    storage.singleton_class.remove_method(:nodes)
    assert_nil attendance.left
    push
    later(45)
    later(15)
    assert_equal [format(TEXT, "2 jobs wait")], @said
  end

  # --- who looks ---

  # Its clock stands at a look that is due.
  def enqueuer(**)
    @enqueuer ||= Jobs::Enqueuer.new(storage, **).tap do |one|
      one.attend { |text| @said << text }
      one.attendance.instance_variable_set(:@clock, -> { @now })
    end
  end

  def entry = Storage::Push.new(queue: "default", entry: "{}", jid: "a")

  def test_the_thread_that_stores_jobs_looks_while_it_waits_for_more
    looks = Thread::Queue.new
    enqueuer.attendance.define_singleton_method(:left) { 0 if looks.empty? }
    enqueuer.attendance.define_singleton_method(:look) { looks << Thread.current }
    enqueuer.push(entry)
    assert_equal "ringspun enqueuer", looks.pop.name
    enqueuer.close
  end

  def test_a_client_whose_job_is_the_first_after_a_look_is_due
    Ringspun.run do
      client = client_of(enqueuer)
      3.times do
        client.push(template, [])
        @now = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 100
        enqueuer.attendance.instance_variable_set(:@due, 0)
      end
      assert_equal [format(TEXT, "3 jobs wait")], @said
    end
    enqueuer.close
  end

  def client_of(enqueuer) = Jobs.const_get(:Client).new(enqueuer, chain: Jobs::Chain.new, milliseconds: false)

  def template = Jobs.const_get(:Template).new("Mail", { queue: "default", retry: true })

  def test_each_strategy_sees_that_a_look_is_due
    %i[group_commit single named_pool pool].each do |strategy|
      enqueuer = Jobs::Enqueuer.new(storage, strategy:)
      enqueuer.attend { flunk }
      enqueuer.push(entry)
      assert_in_delta 45, enqueuer.attendance.left, 40, strategy
      enqueuer.close
    end
  end

  # --- a process's own ---

  def test_a_process_attends_unless_it_is_one_of_tests_or_keeps_its_jobs_for_itself
    assert_nil attendance_of(storage)
    shared = Class.new(Storage::Memory) { def shared? = true }.new
    assert_kind_of Attendance, attendance_of(shared)
    before = ENV.fetch("RACK_ENV", nil)
    ENV["RACK_ENV"] = "test"
    assert_nil attendance_of(shared)
  ensure
    ENV["RACK_ENV"] = before
  end

  def attendance_of(storage)
    Jobs.config.logger = Logger.new(nil)
    Jobs.storage = storage
    Jobs.enqueuer.attendance
  ensure
    Jobs.storage = nil
    Jobs.config.__send__(:remove_instance_variable, :@logger)
  end
end
