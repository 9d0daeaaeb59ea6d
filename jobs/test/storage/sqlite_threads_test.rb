# frozen_string_literal: true

require "jobs_helper"
require_relative "../support/sqlite_case"
require_relative "../../../runtime/test/support/killed_anywhere"

# The threads of a storage in a file: what becomes of those who wait for one when it ends, and of the threads when the storage is
# closed by a strand that has been cancelled.
class SqliteThreadsTest < SqliteCase
  include AnyBackend
  include KilledAnywhere
  include Strands

  NAMES = ["ringspun sqlite bells", "ringspun sqlite reader", "ringspun sqlite writer"].freeze

  def names = Thread.list.filter_map(&:name).grep(/sqlite/).sort

  def descriptors = Dir["/proc/self/fd/*"].filter_map { |fd| File.readlink(fd) rescue nil }.grep(/#{folder}|socket|inotify/)

  # Says when somebody is about to wait for a bell.
  module Waiting
    class << self
      attr_accessor :gate
    end

    def wait(...)
      Waiting.gate&.push(true)
      super
    end
  end

  def setup
    super
    Sqlite.const_get(:Bells).const_get(:Bell).prepend(Waiting)
  end

  def teardown
    Waiting.gate = nil
    super
  end

  # A thread that waits for jobs by now. One that has waited before may have said so more than once.
  def waiting
    Waiting.gate = Thread::Queue.new
    thread = Thread.new { storage.wait_any(NODE, ["default"], 600) }
    assert Waiting.gate.pop(timeout: SECONDS_MAX), "it does not wait"
    thread
  end

  # Whoever waits for its work is answered.
  def test_a_lane_that_is_killed_anywhere
    lane = Sqlite.const_get(:Lane)
    seen = 1.step.lazy.map { |number| another_killed_at(number, "sqlite/lane.rb") { asked_twice(lane) } }.take_while(&:first).to_a
    answers = seen.map(&:last)
    assert_empty answers.flatten.uniq - [:first, :second, Jobs::UnknownOutcomeError, Jobs::UnavailableError]
    assert_operator answers.size, :>, 8
  end

  def asked_twice(lane)
    one = lane.new("a lane") do |requests|
      requests.each do |request|
        request.value = request.work.call
        request.error = nil
      end
    end
    %i[first second].map { |name| one.call(-> { name }) rescue $!.class }
  end

  # Whoever waits looks again, and the next one has a thread that looks.
  def test_bells_whose_thread_is_killed
    before = waiting
    Thread.list.find { |thread| thread.name == NAMES.first }.kill.join
    assert before.join(SECONDS_MAX), "it waits for ever"
    assert_empty before.value
    after = waiting
    assert_equal NAMES, names
    open_storage.push([push_of("a")])
    assert_equal ["a"], jids(after.value)
  end

  # As by Ctrl-C, with `ensure storage.close`.
  def test_a_cancelled_strand_that_closes
    hold_a_job
    before = descriptors
    waits = waiting
    Ringspun.run do |machine|
      machine.scope do |scope|
        scope.cancel
      ensure
        storage.close
      end
    end
    assert_empty waits.value
    assert_equal [[], []], [names, Dir.children("#{path}-wake")]
    assert_empty descriptors - before
  end

  def hold_a_job
    push("a")
    storage.extend([NODE], 60)
    storage.fetch(NODE, ["default"], 1)
  end

  # The sockets are gone with it, and so is the way by which others could ring.
  def test_a_folder_that_is_moved_away_for_a_moment
    waits = waiting.tap { |thread| thread.report_on_exception = false }
    File.rename(folder, "#{folder}-moved")
    errors = nil
    told = capture_io { errors = [error_of { storage.close }, error_of { waits.join }] }
    assert_equal [["", ""], []], [told, names]
    assert_empty errors.compact.map(&:class) - [Jobs::UnavailableError]
  ensure
    File.rename("#{folder}-moved", folder)
  end

  def test_who_waits_where_the_folder_of_sockets_is_gone
    first = waiting
    storage.rouse(NODE)
    assert_empty first.value
    FileUtils.rm_r("#{path}-wake")
    after = waiting # which has to wake its thread
    open_storage.push([push_of("a")]) # which is seen by a look alone
    assert_equal ["a"], jids(after.value)
  end
end
