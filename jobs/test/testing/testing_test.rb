# frozen_string_literal: true

require "jobs_helper"
require "ringspun/jobs/testing/assertions"

Ringspun::Jobs::Testing.real! # for the other tests of this process

# What a program's own tests use.
class TestingTest < Minitest::Test
  include AnyBackend
  include Strands

  Jobs = Ringspun::Jobs
  Testing = Jobs::Testing

  class Mail
    include Jobs::Job

    class << self
      def ran = @ran ||= []
    end

    def perform(*arguments) = Mail.ran << [jid, arguments]
  end

  class Order
    include Jobs::Job
    job_options queue: "orders"

    def perform(number)
      Mail.perform_async("order #{number}")
      raise "no order #{number}" if number.negative?
    end
  end

  class Parent
    include Jobs::Job

    def perform(name)
      follow_with(Mail, name)
      raise "no #{name}" if name == "nobody"
    end
  end

  class Sleepy
    include Jobs::Job

    def perform = snooze(5)
  end

  class Once
    include Jobs::Job
    job_options unique_for: 60

    def perform = nil
  end

  def setup
    @storage = Jobs.storage = Jobs::Storage::Memory.new
    Testing.fake!
  end

  def teardown
    Testing.real!
    Testing.clear_all
    Jobs.config.server_middleware.clear
    Jobs.config.client_middleware.clear
    Jobs.storage = nil
    Mail.ran.clear
  end

  def test_fake_keeps_jobs
    jid = Mail.perform_async("a", { "b" => [1] })
    Order.perform_in(60, 5)
    assert_equal [["TestingTest::Mail", ["a", { "b" => [1] }], jid]],
                 (Mail.jobs.map { |job| job.values_at("class", "args", "jid") })
    assert_equal 2, Testing.jobs.size
    refute Mail.jobs.first.key?("at")
    assert_in_delta Time.now.to_f + 60, Order.jobs.first["at"], 30
    assert_empty Mail.ran
    Mail.clear
    assert_equal(["TestingTest::Order"], Testing.jobs.map { |job| job["class"] })
    Testing.clear_all
    assert_empty Testing.jobs
    assert_empty @storage.list("default", 0, 10)
  end

  def test_fake_refuses_what_is_refused_elsewhere
    assert_raises(Jobs::InvalidJobError) { Mail.perform_async(:symbol) }
    assert Once.perform_async
    assert_nil Once.perform_async
    Once.drain
    assert Once.perform_async
    assert_equal [String, NilClass], Once.perform_bulk([[1], [1]]).map(&:class)
  end

  def test_drain_runs_jobs_and_those_that_they_enqueue
    Order.perform_bulk([[1], [2]])
    assert_equal 2, Order.drain
    assert_equal 2, Mail.jobs.size
    jids = Mail.jobs.map { |job| job["jid"] }
    Order.perform_at(Time.now + 60, 3)
    assert_equal 4, Testing.drain
    assert_equal(jids.zip([["order 1"], ["order 2"]]), Mail.ran.first(2))
    assert_equal ["order 3"], Mail.ran.last.last
    assert_empty Testing.jobs
  end

  def test_drain_raises_what_a_job_raises
    Order.perform_async(-1)
    assert_equal "no order -1", assert_raises(RuntimeError) { Order.drain }.message
    assert_empty Order.jobs
  end

  def test_what_follows_a_job_is_enqueued_when_it_has_run
    Testing.fake! do
      Parent.perform_async("a")
      assert_equal [1, 0], [Parent.drain, Parent.jobs.size]
      assert_equal [["a"]], (Mail.jobs.map { |job| job["args"] })
      Parent.perform_async("nobody")
      assert_raises(RuntimeError) { Parent.drain }
      assert_equal 1, Mail.jobs.size
      Parent.new.perform("b")
      assert_equal 2, Mail.jobs.size
    end
    Testing.inline! { Parent.perform_async("c") }
    assert_equal [["c"]], Mail.ran.map(&:last).last(1)
  end

  def test_a_job_that_snoozes_is_kept
    Sleepy.perform_async
    jid = Sleepy.jobs.first["jid"]
    assert_equal 1, Testing.drain
    assert_equal [jid], (Sleepy.jobs.map { |job| job["jid"] })
    assert_in_delta Time.now.to_f + 5, Sleepy.jobs.first["at"], 4.9
  end

  def test_inline_runs_jobs_at_once
    Testing.inline!
    Order.perform_in(60, 1)
    assert_equal [["order 1"]], Mail.ran.map(&:last)
    Mail.perform_async({ "a" => 1 })
    assert_equal [{ "a" => 1 }], Mail.ran.last.last
    assert_raises(RuntimeError) { Order.perform_async(-1) }
    assert_match(/Other is no class of jobs/, assert_raises(Jobs::InvalidJobError) { Jobs.enqueue("Other") }.message)
    assert_match(/String is no class of jobs/, assert_raises(Jobs::InvalidJobError) { Jobs.enqueue("String") }.message)
    assert_empty Testing.jobs
  end

  def test_arguments_are_copies
    Testing.inline!
    text = +"a"
    Mail.perform_async(text)
    refute_same text, Mail.ran.last.last.first
  end

  def test_middleware_of_both_sides_is_called
    Jobs.config.client_middleware.add(->(_job_class, job, _queue, &block) { job["args"] << "client" and block.call })
    Jobs.config.server_middleware.add(lambda { |instance, job, queue, &block|
      Mail.ran << [instance.class, job["args"], queue]
      block.call
    })
    Mail.perform_async("a")
    assert_empty Mail.ran
    Mail.drain
    assert_equal [[Mail, %w[a client], "default"], [String, %w[a client]]],
                 [Mail.ran.first, [Mail.ran.last.first.class, Mail.ran.last.last]]
  end

  def test_real_stores_them
    Testing.real!
    Mail.perform_async("a")
    assert_empty Mail.jobs
    assert_equal 1, @storage.list("default", 0, 10).size
  end

  # --- for a block ---

  def test_a_mode_for_a_block
    value = Testing.inline! do
      Mail.perform_async(1)
      Testing.fake! { Mail.perform_async(2) }
      assert_equal :inline, Testing.mode
      5
    end
    assert_equal [5, :fake, [1], [2]], [value, Testing.mode, Mail.ran.first.last, Mail.jobs.first["args"]]
    assert_raises(RuntimeError) { Testing.real! { raise "over" } }
    assert_equal :fake, Testing.mode
  end

  def test_a_block_holds_for_runs_in_it_and_for_no_thread_that_was_there_before
    asked = Thread::Queue.new
    other = Thread.new { asked.pop && Testing.mode }
    modes = Testing.inline! do
      asked << true
      [other.value, Ringspun.run { machine.spin { Testing.mode }.await }]
    end
    assert_equal %i[fake inline], modes
  end

  def test_a_strands_block_holds_for_all_that_is_started_in_it_and_for_no_other
    Ringspun.run do
      modes = {}
      called = Ringspun::Channel.new(1)
      before = machine.spin { called.pop && modes[:before] = Testing.mode }
      machine.yield
      Testing.inline! do
        called.push(:now)
        before.join
        machine.spin { machine.spin { modes[:spun] = Testing.mode }.join }.join
        Ringspun.scope { |scope| scope.spin { modes[:scope] = Testing.mode } }
        Thread.new { modes[:thread] = Testing.mode }.join
        modes[:enumerator] = Enumerator.new { |all| all << Testing.mode }.next
      end
      assert_equal({ before: :fake, spun: :inline, scope: :inline, thread: :inline, enumerator: :inline }, modes)
      assert_equal :fake, Testing.mode
    end
  end

  def test_what_was_started_in_a_block_has_its_mode_no_longer_than_the_block
    Ringspun.run do
      modes = []
      strand = nil
      Testing.real! do
        Testing.inline! do
          strand = machine.spin do
            3.times do
              modes << Testing.mode
              machine.park
            end
          end
          machine.yield
        end
        machine.schedule(strand)
        machine.yield
      end
      machine.schedule(strand)
      machine.yield
      machine.schedule(strand)
      strand.join
      assert_equal %i[inline real fake], modes
    end
  end

  # --- assertions ---

  # A test of somebody's, which fails with an error of its own.
  class Somebodys
    Failed = Class.new(StandardError)

    module Base
      def before_setup = @set_up = true
      def assert(passed, message) = passed || raise(Failed, message.call)
    end
    include Base
    include Testing::Assertions
  end

  def somebodys = @somebodys ||= Somebodys.new

  def assert_fails(pattern, &)
    assert_match pattern, assert_raises(Somebodys::Failed, &).message
  end

  def test_assertions_pass
    Mail.perform_async("before")
    time = Time.now + 3600
    jobs = somebodys.assert_enqueued(Mail, args: [String, 1..5], queue: :slow, count: 2) do
      Mail.set(queue: "slow").perform_bulk([["a", 1], ["b", 2], ["c", 9]])
    end
    assert_equal([["a", 1], ["b", 2]], jobs.map { |job| job["args"] })
    somebodys.assert_enqueued("TestingTest::Mail", args: ["before"])
    somebodys.assert_enqueued(Mail, in: 60) { Mail.perform_in(60) }
    somebodys.assert_enqueued(Mail, in: 3600) { Mail.perform_at(time) }
    somebodys.assert_enqueued(Mail, at: time) { Mail.perform_at(time) }
    somebodys.assert_enqueued(Mail, at: time) { Mail.perform_in(3600) }
    somebodys.refute_enqueued(Mail, args: ["before"]) { Mail.perform_async("after") }
    somebodys.refute_enqueued(Order)
  end

  def test_assertions_fail_and_say_what_there_is
    assert_fails(/\Aexpected a job TestingTest::Mail, found 0; nothing was enqueued\z/) { somebodys.assert_enqueued(Mail) {} }
    Mail.perform_in(60, "a")
    assert_fails(/args: \["b"\], found 0; .*\n  TestingTest::Mail, args: \["a"\], queue: "default", at: /) do
      somebodys.assert_enqueued(Mail, args: ["b"])
    end
    assert_fails(/expected 2 jobs TestingTest::Mail, found 1/) { somebodys.assert_enqueued(Mail, count: 2) }
    assert_fails(/expected 0 jobs TestingTest::Mail, found 1/) { somebodys.refute_enqueued(Mail) }
    { args: [], queue: "slow", in: 61, at: Time.now }.each do |name, value|
      assert_fails(/found 0/) { somebodys.assert_enqueued(Mail, name => value) }
    end
  end

  def test_assertions_need_jobs_that_are_kept
    Testing.real!
    assert_match(/only in the mode fake!/, assert_raises(Ringspun::UsageError) { somebodys.assert_enqueued(Mail) }.message)
    Testing.fake!
    assert_raises(ArgumentError) { somebodys.refute_enqueued(Mail, count: 1) }
  end

  def test_each_test_begins_without_jobs
    Mail.perform_async
    assert somebodys.before_setup
    assert_empty Testing.jobs
  end
end
