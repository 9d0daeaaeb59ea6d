# frozen_string_literal: true

require "postgres_helper"

# Connections whose holders have ended without giving them back: by Enumerators and Fibers that nobody resumes.
# servers: all
class PostgresReclaimTest < Minitest::Test
  include OnPool
  include NoNames

  ROWS = "select generate_series(1, 5000)"
  WARNING = %r{\Aringspun: a connection was not given back, and is closed: #<(?<who>.*)> has ended, who had it for \d+\.\d s \
and had asked for it at\n\t.*/reclaim_test\.rb:(?<line>\d+):in }

  def test_an_enumerator_that_is_collected
    on_pool(max: 3, checkout_timeout: 0.01) do |pool|
      assert_reclaimed("Ringspun::Strand", pool) { pool.stream(ROWS).next }
    end
  end

  def test_an_enumerator_that_is_kept_by_a_strand_that_has_ended
    on_pool(max: 1) do |pool, machine|
      kept = pool.stream(ROWS, as: :array)
      machine.spin { kept.next }.await
      assert_warned("Ringspun::Strand", __LINE__ - 2) { assert_equal 1, pool.session { |s| s.query_value("select 1") } }
      error = assert_raises(Postgres::ConnectionLost) { 5000.times { kept.next } }
      assert_equal "the connection is lost: it was reclaimed, because nobody was there to give it back", error.message
      assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  # As long as there are others, it may be resumed by another strand.
  def test_one_that_another_strand_goes_on_with
    on_pool(max: 2) do |pool, machine|
      kept = pool.stream(ROWS, as: :array)
      machine.spin { kept.next }.await
      assert_output("", "") { assert_equal 1, pool.session { |s| s.query_value("select 1") } }
      assert_equal (2..5000).to_a, machine.spin { Array.new(4999) { kept.next.first } }.await
      assert_raises(StopIteration) { kept.next }
    end
  end

  def test_an_enumerator_of_a_thread_that_has_ended
    with_pool(max: 1) do |pool|
      kept = pool.stream(ROWS, as: :array)
      Thread.new { kept.next }.join
      assert_warned("Thread", __LINE__ - 2) { assert_equal 1, pool.session { |s| s.query_value("select 1") } }
    end
  end

  def test_one_of_a_thread_that_has_ended_its_run
    with_pool(max: 1) do |pool|
      kept = pool.stream(ROWS, as: :array)
      Thread.new { Ringspun.run { kept.next } }.join
      assert_warned("Ringspun::Strand", __LINE__ - 2) { assert_equal 1, pool.session { |s| s.query_value("select 1") } }
    end
  end

  def test_a_fiber_that_is_collected
    with_pool(max: 3, checkout_timeout: 0.01) do |pool|
      assert_reclaimed("Thread", pool) { Fiber.new { pool.session { |session| Fiber.yield(session) } }.resume }
    end
  end

  def test_an_enumerator_that_a_thread_has_left_while_others_wait
    with_pool(max: 3) do |pool|
      ready = Thread::Queue.new
      threads = Array.new(3) { Thread.new { pool.stream(ROWS).tap { |kept| ready << kept.next && Thread.stop } } }
      threads.each { ready.pop }
      waiting = Thread.new { pool.session { |session| session.query_value("select 1") } }
      wait_until { pool.metrics[:waiting] == 1 }
      _, said = capture_io { threads.each { |thread| thread.kill.join } && assert_equal(1, waiting.value) }
      assert_match WARNING, said
    end
  end

  # The pool's thread for all that are no strands: its connections end with it, and nobody is to blame.
  def test_a_courier_that_was_killed
    with_pool(max: 1) do |pool|
      held = Thread::Queue.new
      going_on = Thread::Queue.new
      holder = Thread.new { pool.session { |_| (held << true) && going_on.pop } }
      held.pop
      Thread.list.find { |thread| thread.name == "ringspun-postgres" }.kill.join
      assert_silent { assert_equal 1, pool.session { |s| s.query_value("select 1") } }
      going_on << :went_on
      assert_equal :went_on, holder.value
      assert_equal({ connections: 1, idle: 1, waiting: 0 }, pool.metrics.first(3).to_h)
    end
  end

  def test_the_error_of_a_pool_that_is_exhausted_names_who_has_made_an_enumerator
    on_pool(max: 1, checkout_timeout: 0.01) do |pool, machine|
      kept = pool.stream(ROWS, as: :array)
      before = machine.now
      kept.next
      said = assert_raises(Postgres::PoolTimeoutError) { pool.session { |_| nil } }.message
      who = /\n#<Ringspun::Strand.*> for (?<seconds>\d+\.\d) s, at .*reclaim_test\.rb:#{__LINE__ - 4}:in/
      assert_match who, said
      assert_operator said[who, :seconds].to_f, :<=, (machine.now - before).round(1)
    end
  end

  private

  # The collector may believe that some are still in use, but not all.
  def assert_reclaimed(who, pool)
    _, said = capture_io do
      3.times { deeper(100) { yield } }
      assert_equal 1, asked_until_there_is_one(pool)
    end
    assert_match WARNING, said
    assert_match(/\A#{who}/, said[WARNING, :who])
  end

  def deeper(levels, &) = levels.zero? ? yield && nil : deeper(levels - 1, &)

  def asked_until_there_is_one(pool)
    GC.start
    pool.session { |session| session.query_value("select 1") }
  rescue Postgres::PoolTimeoutError
    retry
  end

  def assert_warned(who, line)
    _, said = capture_io { yield }
    assert_match WARNING, said
    assert_equal [true, line.to_s], [said[WARNING, :who].start_with?(who), said[WARNING, :line]]
  end
end
