# frozen_string_literal: true

require "postgres_helper"
require "support/on_scripted_pool"

# Notices of statements whose callers have left, on connections that end before anybody else asks there.
class PostgresLateNoticesTest < Minitest::Test
  include AnyBackend
  include OnScriptedPool

  # Says what comes, before it works.
  class Telling < ScriptedServer
    private

    def new_backend(...) = super.tap { |backend| backend.extend(Notices) }

    module Notices
      private

      def work(seconds)
        say("N", "SNOTICE\0VNOTICE\0C00000\0Mit takes #{seconds} s\0\0") if seconds
        flush
        super
      end
    end
  end

  def server_class = Telling

  def setup
    super
    @told = []
  end

  def test_those_of_a_lane_that_was_taken_aside
    on_pool(lanes: 1, max: 2, on_notice: hook) do |pool, machine|
      40.times { pool.query("select echo $1", "x") } # known as quick, and waits for a lane
      capture_io do
        slow = leave(machine, timeout: 1) { |timeout| pool.query("select work $1, $2, 'known'", "x", "3", timeout:) }
        others = Array.new(3) { |number| machine.spin { pool.query_value("select echo $1", number.to_s) } }
        machine.await([slow, *others])
        machine.sleep(5)
      end
      assert_operator pool.metrics[:held_up], :>, 0
      pool.query("select echo $1", "a")
      assert_equal [["it takes 3 s", nil]], @told
    end
  end

  def test_those_of_a_shared_connection_that_is_closed_with_the_pool
    on_pool(on_notice: hook) do |pool, machine|
      leave(machine, timeout: 1) { |timeout| pool.query("select work $1, $2", "x", "3", timeout:) }.await
      pool.close
      assert_equal [["it takes 3 s", nil]], @told
    end
  end

  # What the library asks itself takes none along.
  def test_those_of_a_connection_that_is_made_clean
    on_pool(on_notice: hook) do |pool, machine|
      leave(machine, timeout: 1) { |timeout| pool.transaction { |t| t.query("work $1, $2", "x", "3", timeout:) } }.await
      pool.query("select echo $1", "a")
      assert_includes [[["it takes 3 s", "work $1, $2"]], [["it takes 3 s", nil]]], @told
    end
  end

  def test_those_of_a_session_go_to_the_hook_of_that
    others = []
    [{}, { on_notice: ->(notice) { others << notice } }].each do |options|
      on_pool(**options) do |pool, machine|
        @told.clear
        leave(machine, timeout: 1) do |timeout|
          pool.session(on_notice: hook) { |session| session.query("work $1, $2", "x", "3", timeout:) }
        end.await
        assert_equal ["it takes 3 s"], @told.map(&:first)
        pool.session { |session| session.query("select echo $1", "a") }
        assert_empty others
      end
    end
  end

  def test_a_statement_is_not_said_to_have_the_notice_of_another
    on_pool(lanes: 1, on_notice: hook) do |pool, machine|
      pool.query("select echo $1", "a")
      leave(machine, timeout: 1) { |timeout| pool.query("select work $1, $2", "x", "3", timeout:) }.await
      machine.sleep(1) # until it is cancelled
      pool.query("select work $1, $2, 'another'", "x", "0.001")
      assert_equal [["it takes 3 s", nil], ["it takes 0.001 s", "select work $1, $2, 'another'"]], @told
    end
  end

  private

  def hook = ->(notice) { @told << [notice.message, notice.sql] }

  # A strand whose time is over before its answer has come.
  def leave(machine, timeout:)
    machine.spin { assert_raises(Ringspun::TimeoutError) { yield timeout } }.tap { machine.yield }
  end
end
