# frozen_string_literal: true

require "test_helper"
require "support/api_extension_build"
require "support/strands"

# The C API of ringspun.h, through an extension that is built against it as another gem would be.
class ApiTest < Minitest::Test
  include Strands
  include ApiExtensionBuild

  def test_a_thread_of_its_own_wakes_a_strand_with_a_value
    assert_equal 7, api.park(7, -1, nil)
    assert_equal([1, 2, 3], machine.await(*[1, 2, 3].map { |value| machine.spin { api.park(value, -1, nil) } }))
  end

  def test_a_wake_before_the_park
    assert_equal 2**40, api.park_woken(2**40)
  end

  def test_others_run_meanwhile
    reader, writer = IO.pipe
    strand = parked { api.park(1, reader.fileno, nil) }
    assert_equal "an extension to wake it", strand.waits_for
    writer.write("x")
    assert_equal 1, strand.await
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_deadline_and_then_a_wake_that_is_late
    reader, writer = IO.pipe
    dropped = machine.metrics[:wakes_dropped]
    assert_nil api.park(1, reader.fileno, 0.001)
    writer.write("x")
    yield_until { machine.metrics[:wakes_dropped] > dropped }
    assert_kind_of Integer, machine.sleep(0.001)
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_cancelled_park
    reader, writer = IO.pipe
    strand = parked { api.park(1, reader.fileno, nil) }
    dropped = machine.metrics[:wakes_dropped]
    machine.terminate(strand)
    assert_ends_with Ringspun::TerminatedError, strand
    writer.write("x")
    yield_until { machine.metrics[:wakes_dropped] > dropped }
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_park_that_did_not_begin_leaves_no_ticket_to_the_next_wait
    assert_raises(Failure) { api.park_interrupted(Failure.new) }
    strand = machine.running
    other = machine.spin do
      api.wake_kept(5)
      3.times { machine.yield }
      machine.schedule(strand, :value)
    end
    assert_equal :value, machine.park
    other.join
  end

  # Nobody but the thread knows that it will come, and yet it is no deadlock; and one that comes after the end hurts nobody.
  def test_a_wake_after_the_machine_was_closed
    assert_child "closed\n", <<~RUBY, ApiExtensionBuild::LIBRARY
      require ARGV.first
      reader, writer = IO.pipe
      Thread.new do
        strand = machine.spin { ApiExtension.park(1, reader.fileno, nil) }
        machine.yield
        machine.close
      end.join
      writer.write("x")
      GC.start
      sleep 0.01
      puts "closed"
    RUBY
  end

  def test_reading_and_writing
    reader, writer = machine.pipe
    strand = parked { api.read(reader, 10) }
    assert_equal 5, api.write(writer, "hello")
    assert_equal "hello", strand.await
    strand = parked { api.wait_readable(reader) }
    api.write(writer, "x")
    assert_equal IO::READABLE, strand.await & IO::READABLE
    assert_raises(Ringspun::ClosedError) { api.read(9999, 1) }
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  def test_time
    before = machine.now
    assert_operator api.now, :>=, (before * 1e9).to_i - 1000
    assert_raises(Ringspun::TimeoutError) { api.within(0.001) { machine.sleep } }
    assert_equal(5, api.within(nil) { 5 })
    assert_raises(Ringspun::UsageError) { api.within("soon") { nil } }
    order = []
    strand = machine.spin { order << :other }
    api.yield
    assert_equal [:other], order
    strand.join
  end

  def test_a_version_that_is_not_there_yet
    assert api.demand(1)
    assert_match(/update ringspun/, assert_raises(LoadError) { api.demand(1000) }.message)
  end
end
