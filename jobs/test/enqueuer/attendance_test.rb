# frozen_string_literal: true

require "jobs_helper"
require "support/program"
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

  def storage = @storage ||= Storage::Memory.new

  # Its clock goes on when it waits: until then it stands, and it stops where the test says.
  def attendance
    @attendance ||= Attendance.new(storage, clock: -> { @now }, pause: ->(seconds) { wait(seconds) }) { |text| @said << text }
  end

  def teardown
    @attendance&.close
    Attendance.told = @told
    super
  end

  # In its thread.
  def wait(seconds)
    waits << seconds
    goes.pop
  end

  def waits = @waits ||= Thread::Queue.new

  def goes = @goes ||= Thread::Queue.new

  def push(count = 1)
    storage.push(Array.new(count) { |number| Storage::Push.new(queue: "default", entry: "{}", jid: number.to_s) })
    attendance.pass(@now)
  end

  # The wait under way ends. Returns when the thread waits again, or has ended.
  #
  # @return [Numeric] how long it was
  def later
    seconds = waits.pop
    @now += seconds
    thread = attendance.instance_variable_get(:@thread)
    goes << true
    Thread.pass while waits.empty? && thread.alive?
    seconds
  end

  def idle? = waits.empty? && !attendance.instance_variable_get(:@thread)&.alive?

  def work(info = {}) = storage.announce("host:1:aa", { "concurrency" => 1, "queues" => %w[default], **info }, [])

  def test_a_minute_without_a_worker_is_told_once
    push(2)
    assert_equal 45, later
    assert_empty @said
    assert_equal 15, later
    assert_equal [format(TEXT, "2 jobs wait")], @said
    push
    assert_predicate self, :idle?
    other = Attendance.new(storage, pause: ->(_) { flunk }) { flunk }
    other.pass(@now)
    assert_nil other.instance_variable_get(:@thread)
  end

  def test_a_worker_that_is_being_replaced_is_no_matter
    push
    later
    work
    later
    assert_predicate self, :idle?
    storage.retract("host:1:aa")
    push
    later
    work
    later
    push
    work("quiet" => true)
    later
    assert_predicate self, :idle?
    assert_empty @said
  end

  def test_nothing_waits
    push
    storage.clear("default")
    later
    assert_predicate self, :idle?
    assert_empty @said
  end

  # The first one has begun the minute.
  def test_a_later_job
    push
    later
    push
    assert_equal 15, later
    assert_equal [format(TEXT, "2 jobs wait")], @said
  end

  def test_what_the_storage_has_against_it_is_no_matter_of_the_jobs
    push
    storage.define_singleton_method(:nodes) { |**| raise Jobs::UnavailableError, "away" }
    later
    storage.singleton_class.remove_method(:nodes)
    assert_predicate self, :idle?
    push
    later
    later
    assert_equal [format(TEXT, "2 jobs wait")], @said
  end

  # A forked child has none of the threads of its parent.
  def test_a_forked_child_looks_as_well
    push
    waits.pop
    reader, writer = IO.pipe
    pid = fork do
      @waits = Thread::Queue.new
      push
      writer.puts(waits.pop)
      exit!(0)
    end
    writer.close
    assert_equal "45.0\n", reader.read
    Process.wait(pid)
  ensure
    reader&.close
  end

  # --- who looks ---

  def entry = Storage::Push.new(queue: "default", entry: "{}", jid: "a")

  def test_each_strategy_begins_to_look
    %i[group_commit single named_pool pool].each do |strategy|
      [->(&block) { block.call }, Ringspun.method(:run)].each do |way|
        enqueuer = Jobs::Enqueuer.new(storage, strategy:)
        enqueuer.attend { flunk }
        enqueuer.attendance.instance_variable_set(:@pause, ->(seconds) { wait(seconds) })
        way.call { enqueuer.push(entry) }
        assert_in_delta 45, waits.pop, 40, strategy
        enqueuer.close
      end
    end
  end

  # The run ends, although its thread waits.
  def test_a_strand_that_stores_one_job_and_waits
    enqueuer = Jobs::Enqueuer.new(storage)
    enqueuer.attend { |text| @said << text }
    enqueuer.attendance.instance_variable_set(:@pause, ->(seconds) { waits << seconds })
    Ringspun.run do |machine|
      enqueuer.push(entry)
      machine.sleep(0.001) while @said.empty?
    end
    assert_equal [format(TEXT, "1 job waits")], @said
    assert_equal 2, waits.size
  ensure
    enqueuer.close
  end

  # --- a process's own ---

  def test_a_program_whose_strand_stores_one_job_in_a_file
    @folder = Dir.mktmpdir("ringspun-attendance-")
    program = Program.ruby(<<~'RUBY', @folder, env: { "RACK_ENV" => "development" })
      require "ringspun/jobs"
      require "logger"

      Jobs = Ringspun::Jobs
      attendance = Jobs::Enqueuer.const_get(:Attendance)
      { FIRST_SECONDS: 0.02, SECOND_SECONDS: 0.01 }.each do |name, seconds|
        attendance.__send__(:remove_const, name)
        attendance.const_set(name, seconds)
      end
      reader, writer = IO.pipe
      Jobs.configure do |config|
        config.storage = "sqlite:#{ARGV.first}/jobs.sqlite3"
        config.logger = Logger.new(writer, formatter: ->(_, _, _, text) { "#{text}\n" })
      end
      Ringspun.run do
        Jobs.enqueue("Mail")
        puts reader.gets, reader.gets
      end
    RUBY
    assert_predicate program.wait, :success?, program.log
    place = "sqlite:#{@folder}/jobs.sqlite3"
    assert_equal <<~TEXT, program.log
      jobs are kept in #{place}
      no worker runs, and 1 job waits in #{place}: start ringspun-jobs, and see that its log names the same place
    TEXT
  ensure
    program&.close
    FileUtils.rm_rf(@folder)
  end

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
