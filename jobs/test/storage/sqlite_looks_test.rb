# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"

# How who waits for jobs hears of some: by a datagram that names the queue, or by a look at the file's version.
class SqliteLooksTest < SqliteCase
  include AnyBackend

  # Counts, of what is made to do so.
  module Counted
    attr_reader :count

    def look(...) = (@count = count.to_i + 1) && super
    def call(...) = (@count = count.to_i + 1) && super
  end

  # Tells when somebody waits.
  module Told
    class << self
      attr_accessor :gate
    end

    def wait(...)
      Told.gate&.push(true)
      super
    end
  end

  def engine = @engine ||= storage.tap(&:stats).instance_variable_get(:@engine)

  def version = engine.__send__(:data_version)

  def teardown
    Told.gate = nil
    super
  end

  def test_who_is_named_fetches_without_a_look
    Sqlite.const_get(:Bells).const_get(:Bell).prepend(Told)
    engine.define_singleton_method(:data_version) { nil }
    storage.singleton_class.prepend(Counted)
    Told.gate = Thread::Queue.new
    waiting = Thread.new { storage.wait_any(NODE, ["default"], 60) }
    Told.gate.pop
    open_storage.push([push_of("a")])
    assert_equal %w[a], jids(waiting.value)
    assert_equal 1, storage.count # before it waited
  end

  def test_a_look_at_the_version_wakes_no_other_thread
    reader = engine.instance_variable_get(:@reader).extend(Counted)
    before = Array.new(3) { version }
    assert_equal [1, nil], [before.uniq.size, reader.count]
    open_storage.push([push_of("a")])
    refute_equal before.last, version
    assert_nil reader.count
  end

  # A look is never lost.
  def test_a_look_beside_a_read_waits_for_it
    versions = engine.read { |_| Thread.new { version }.tap { |looking| looking.join(0.001) } }.value # must pass
    assert_equal version, versions
  end

  def test_a_look_keeps_nobody_from_using_the_wal_anew
    push("a")
    3.times { version }
    assert_equal [[0, 0, 0]], query("PRAGMA wal_checkpoint(TRUNCATE)")
  end

  def test_of_several_threads_one_works_at_a_time
    pause = Sqlite.const_get(:Pause).new
    assert_nil(pause.work { pause.try { :in_vain } })
    assert_equal(:done, pause.try { :done })
    second = pause.try { Thread.new { pause.work { :later } }.tap { |thread| Thread.pass until thread.stop? } }
    assert_equal :later, second.value
    pause.begin
    assert_nil(pause.try { :in_vain })
    pause.end
    assert_equal(:done, pause.try { :done })
  end
end
