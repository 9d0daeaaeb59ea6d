# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "support/scheduled"

# What of the language itself has to do with fibers: enumerators, storage, backtraces, autoload, ractors.
class SchedulerLanguageTest < Minitest::Test
  include Scheduled

  # --- Enumerator ---

  def test_an_enumerator_whose_fiber_waits
    assert_both("Hello World") do
      reader, writer = UNIXSocket.pair
      Fiber.schedule do
        writer.write("Hello ")
        sleep(0.001)
        writer.write("World")
        writer.close
      end
      enumerator = reader.to_enum(:each_char)
      text = +""
      loop { text << enumerator.next }
      text
    ensure
      reader.close
    end
  end

  def test_two_enumerators_side_by_side
    assert_everywhere([[0, :other, 1, 2], [0, 1, 2]]) do
      make = -> { Enumerator.new { |y| 3.times { |i| sleep(0.001).then { y << i } } } }
      one, other = make.call, make.call
      order = []
      second = []
      waiting = schedule { 3.times { second << other.next } }
      order << one.next << :other << one.next << one.next
      join(waiting)
      [order, second]
    end
  end

  def test_an_enumerator_that_two_strands_use
    assert_everywhere([1, 2, 3, 4]) do
      enumerator = Enumerator.new { |y| (1..4).each { |i| y << i } }
      got = []
      join(*Array.new(2) { schedule { 2.times { (got << enumerator.next).then { sleep(0.001) } } } })
      got.sort
    end
  end

  def test_the_fiber_of_an_enumerator_is_not_blocking
    assert_everywhere([false, true]) do
      enumerator = Enumerator.new { |y| y << Fiber.current.blocking? << !Fiber.current_scheduler.nil? }
      [enumerator.next, enumerator.next]
    end
  end

  def test_a_lazy_one_and_a_chain
    assert_everywhere([2, 4, 6, 8]) do
      slow = Enumerator.new { |y| (1..).each { |i| sleep(0).then { y << i } } }
      slow.lazy.map { |i| i * 2 }.first(2) + (slow.take(4).each + [].each).drop(2).map { |i| i * 2 }
    end
  end

  def test_an_enumerator_of_its_own_size
    assert_everywhere([1, 2, 3]) do
      enumerator = Enumerator.produce(1) { |i| sleep(0).then { i + 1 } }
      [enumerator.next, enumerator.next, enumerator.next]
    end
  end

  # --- storage ---

  def test_storage_is_inherited_and_not_shared
    assert_everywhere([:foo, nil, :foo]) do
      Fiber[:inherited] = :foo
      seen = []
      Fiber.schedule { (seen << Fiber[:inherited]).then { Fiber[:inherited] = :changed }.then { Fiber[:own] = 1 } }
      seen << Fiber[:own] << Fiber[:inherited]
    ensure
      Fiber[:inherited] = nil
    end
  end

  def test_storage_stays_over_a_wait
    assert_everywhere([0, 1, 2]) do
      got = []
      join(*Array.new(3) { |i| schedule { (Fiber[:number] = i).then { sleep(0.001) }.then { got << Fiber[:number] } } })
      got
    end
  end

  def test_storage_of_a_thread_and_an_enumerator
    assert_everywhere([10, 10, nil]) do
      seen = nil
      done = schedule do
        Fiber[:x] = 10
        in_enumerator = Enumerator.new { |y| (y << Fiber[:x]).then { Fiber[:y] = 1 } }.next
        seen = [in_enumerator, Thread.new { Fiber[:x].tap { Fiber[:y] = 1 } }.value, Fiber[:y]]
      end
      join(done)
      seen
    end
  end

  def test_storage_of_another_fiber
    assert_everywhere(ArgumentError) { error_of { Fiber.schedule { sleep(0) }.storage }.class }
  end

  # --- backtraces ---

  def test_the_backtrace_of_a_fiber_that_waits
    assert_everywhere([true, true]) do
      fiber = Fiber.schedule { wait_here }
      texts = [fiber.backtrace.first(6), fiber.backtrace_locations.first(6).map(&:to_s)]
      fiber.kill
      texts.map { |lines| lines.any? { |line| line.include?("wait_here") } }
    end
  end

  def wait_here = Thread::Queue.new.pop

  def test_the_backtrace_of_an_error
    error = assert_raises(Failure) { with_scheduler { Fiber.schedule { fail_here } } }
    assert_match(/fail_here/, error.backtrace.first)
    assert_match(/#{Regexp.escape(__FILE__)}:#{__LINE__ - 2}/, error.backtrace[1])
  end

  def fail_here = raise(Failure)

  # --- autoload, require ---

  def test_autoload_from_many_strands
    in_folder("sleep(0.001)\nmodule SchedulerAutoloaded; end\n") do |path|
      3.times do
        Object.autoload(:SchedulerAutoloaded, path)
        found = []
        with_scheduler { 10.times { Fiber.schedule { found << Object.const_get(:SchedulerAutoloaded) } } }
        assert_equal [SchedulerAutoloaded] * 10, found
      ensure
        $LOADED_FEATURES.delete(path)
        Object.send(:remove_const, :SchedulerAutoloaded)
      end
    end
  end

  def test_autoload_inside_a_run
    in_folder("sleep(0.001)\nmodule SchedulerAutoloaded; end\n") do |path|
      Object.autoload(:SchedulerAutoloaded, path)
      found = []
      Ringspun.run { 10.times { Fiber.schedule { found << SchedulerAutoloaded } } }
      assert_equal [SchedulerAutoloaded] * 10, found
    ensure
      $LOADED_FEATURES.delete(path)
      Object.send(:remove_const, :SchedulerAutoloaded)
    end
  end

  def test_require_from_many_strands_loads_once
    in_folder("sleep(0.001)\n($scheduler_loaded ||= []) << __FILE__\n") do |path|
      answers = []
      with_scheduler { 5.times { Fiber.schedule { answers << require(path) } } }
      assert_equal [[path], [false] * 4 + [true]], [$scheduler_loaded, answers.sort_by(&:to_s)]
    ensure
      $LOADED_FEATURES.delete(path)
      $scheduler_loaded = nil
    end
  end

  # The lock behind it is an object without a class.
  def test_what_one_that_requires_waits_for
    in_folder("sleep(0.1)\n") do |path|
      seen = []
      Ringspun.run do
        strands = Array.new(2) { machine.spin { require(path) } }
        # Not only for that, and not which one: Ruby 3.4 has files looked at by another thread.
        machine.sleep(0.001).then { seen.concat(strands.map(&:waits_for)) } while strands.any?(&:alive?)
      end
      assert_includes seen, "a file that another strand or thread loads"
    ensure
      $LOADED_FEATURES.delete(path)
    end
  end

  def test_require_in_a_simulation
    in_folder("sleep(3600)\n") do |path|
      result = simulate { join(*Array.new(3) { schedule { require(path) } }) }
      assert_in_delta 3600, result.elapsed, 0.1
    ensure
      $LOADED_FEATURES.delete(path)
    end
  end

  def in_folder(code)
    Dir.mktmpdir do |folder|
      path = File.join(File.realpath(folder), "loaded_by_scheduler_test.rb")
      File.write(path, code)
      yield path
    end
  end

  # --- the rest ---

  # Which the compiler asks of what it reads.
  def test_a_file_is_always_ready
    assert_both([true, true, true]) do
      [__FILE__, File::NULL].map { |path| File.open(path) { |file| file.wait_readable.equal?(file) } } <<
        File.open(File::NULL, "w") { |file| file.wait_writable.equal?(file) }
    end
  end

  def test_in_a_ractor
    assert_child "[:slept, :item]\n", <<~RUBY
      Warning[:experimental] = false
      ractor = Ractor.new do
        got = []
        Fiber.set_scheduler(Ringspun::Scheduler.new)
        queue = Thread::Queue.new
        Fiber.schedule { got << queue.pop }
        Fiber.schedule { sleep(0.001).then { got << :slept }.then { queue << :item } }
        Fiber.set_scheduler(nil)
        got
      end
      p(ractor.respond_to?(:value) ? ractor.value : ractor.take)
    RUBY
  end

  def test_throw_and_break_out_of_a_wait
    assert_everywhere([:thrown, :broken]) do
      [catch(:out) { sleep(0.001).then { throw :out, :thrown } }, [1].each { sleep(0.001) and break :broken }]
    end
  end

  def test_an_error_stays_the_current_one_over_a_wait
    assert_everywhere([Failure, Failure, nil]) do
      seen = []
      begin
        raise Failure
      rescue Failure
        Fiber.schedule { error_of { raise ArgumentError }.then { sleep(0.001) } }
        seen << $!.class
        sleep(0.002)
        seen << $!.class
      end
      seen << $!
    end
  end
end
