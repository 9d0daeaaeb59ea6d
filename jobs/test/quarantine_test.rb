# frozen_string_literal: true

require "jobs_helper"
require "tempfile"

class QuarantineTest < Minitest::Test
  include Strands

  Quarantine = Ringspun::Jobs::Quarantine
  Fetched = Ringspun::Jobs::Storage::Fetched
  JOB = { "jid" => "b4a5", "class" => "MailJob", "queue" => "default", "args" => [1] }.freeze

  # What a parent holds of its children.
  def teardown = assert_empty(Ringspun::Jobs.const_get(:Child).leashes)

  def run_alone(quarantine = Quarantine.new(grace: 5), &block)
    Ringspun.run { quarantine.run(Fetched.new("default", "{}"), JOB, &block) }
  end

  # A pipe to see what a child does.
  def told
    reader, writer = IO.pipe
    yield reader, writer
  ensure
    [reader, writer].each { |io| io.close unless io.closed? }
  end

  # --- what it answers ---

  def test_the_value_of_the_block
    result = run_alone { |fetched, job| [fetched.entry, job["jid"], Process.pid] }
    refute_predicate result, :died?
    assert_equal ["{}", "b4a5"], result.value.first(2)
    refute_equal Process.pid, result.value.last
    assert_equal "exit 0", result.fate
  end

  def test_nothing_is_an_answer_too
    result = run_alone { nil }
    assert_equal [nil, false], [result.value, result.died?]
  end

  def test_an_answer_longer_than_a_pipe
    assert_equal 300_000, run_alone { "x" * 300_000 }.value.bytesize
  end

  # Whose making takes other strands their turn, as that of a class which is only loaded then may.
  class Slow
    def marshal_dump = 7

    def marshal_load(number)
      Ringspun::Machine.current.sleep(0.001)
      @number = number
    end
    attr_reader :number
  end

  def test_an_answer_that_waits_while_it_is_read
    result = run_alone { Slow.new }
    assert_equal [7, "exit 0"], [result.value.number, result.fate]
  end

  def test_a_machine_of_its_own
    parents = Ringspun::Machine.current
    result = run_alone do
      strands = Array.new(3) { |i| machine.spin { machine.sleep(0.001) && i } }
      [machine.equal?(parents), machine.await(*strands), Thread.current.equal?(Thread.main), Thread.list.size]
    end
    assert_equal [false, [0, 1, 2], true, 2], result.value
  end

  def test_the_strands_of_the_parent_go_on
    Ringspun.run do |machine|
      gate = Ringspun::Queue.new
      other = machine.spin { gate.pop }
      quarantine = Quarantine.new
      runs = Array.new(2) { |i| machine.spin { quarantine.run(Fetched.new("default", "{}"), JOB) { i } } }
      gate.push(:on)
      assert_equal :on, other.await
      assert_equal([0, 1], machine.await(*runs).map(&:value))
    end
  end

  def test_a_portable_error_is_itself
    error = run_alone { Quarantine.portable(error_of { raise ArgumentError, "no" }) }.value
    assert_equal [ArgumentError, "no"], [error.class, error.message]
    assert_match(/quarantine_test/, error.backtrace.first)
  end

  def test_an_error_that_cannot_be_handed_over
    error = RuntimeError.new("no").tap { |one| one.instance_variable_set(:@lock, Thread::Mutex.new) }
    error.set_backtrace(["app.rb:1"])
    portable = Quarantine.portable(error)
    assert_equal [RuntimeError, "RuntimeError: no", ["app.rb:1"]], [portable.class, portable.message, portable.backtrace]
  end

  def test_an_error_whose_class_only_the_child_has_loaded
    result = run_alone do
      Object.const_set(:OfTheChild, Class.new(StandardError))
      Quarantine.portable(error_of { raise OfTheChild, "no" })
    end
    refute_predicate result, :died?
    assert_equal [RuntimeError, "OfTheChild: no"], [result.value.class, result.value.message]
    assert_match(/quarantine_test/, result.value.backtrace.first)
  end

  # --- how it dies ---

  def test_a_child_that_kills_itself
    result = run_alone { Process.kill(:KILL, Process.pid) && sleep }
    assert_equal [true, "SIGKILL", nil], [result.died?, result.fate, result.value]
  end

  def test_a_child_that_is_told_to_end_by_others
    result = run_alone { Process.kill(:TERM, Process.pid) && sleep }
    assert_equal [true, true, "SIGTERM"], [result.died?, result.told, result.fate]
  end

  def test_a_child_that_exits
    assert_equal [true, "exit 3"], run_alone { exit 3 }.then { |result| [result.died?, result.fate] }
    assert_equal [true, "exit 4"], run_alone { exit!(4) }.then { |result| [result.died?, result.fate] }
    assert_equal [true, "exit 0"], run_alone { exit!(0) }.then { |result| [result.died?, result.fate] }
  end

  def test_a_child_that_raises_says_so
    told do |reader, writer|
      result = run_alone do
        $stderr.reopen(writer)
        raise "of the child"
      end
      writer.close
      assert_equal [true, "exit 1"], [result.died?, result.fate]
      assert_match(/of the child \(RuntimeError\)/, reader.read)
    end
  end

  def test_no_at_exit_blocks
    program = <<~'RUBY'
      require "ringspun/jobs"
      $stdout.sync = true
      at_exit { puts "at_exit #{Process.pid == PARENT}" }
      PARENT = Process.pid
      result = Ringspun.run { Ringspun::Jobs::Quarantine.new.run(nil, {}) { at_exit { puts "never" }; 5 } }
      puts result.value
    RUBY
    lib = File.expand_path("../lib", __dir__)
    answer = ruby_child(program, env: { "RUBYOPT" => "-I#{lib}" })
    assert_equal ["5\nat_exit true\n", ""], [answer.out, answer.err]
  end

  # A process of the job's that lives on has the pipe as well.
  def test_what_the_child_has_forked_holds_nobody_up
    told do |reader, writer|
      result = run_alone do
        pid = fork { sleep }
        writer.syswrite("#{pid}\n")
        5
      end
      assert_equal 5, result.value
      Process.kill(:KILL, Integer(reader.gets))
    end
  end

  # --- how it is ended ---

  def test_cancelled_it_runs_ensure_blocks
    told do |reader, writer|
      Ringspun.run do |machine|
        strand = machine.spin do
          Quarantine.new.run(nil, JOB) do
            writer.syswrite("begun\n")
            machine_of_child.sleep
          ensure
            writer.syswrite("unwound\n")
          end
        end
        assert_equal "begun\n", reader.gets
        machine.terminate(strand)
        assert_ends_with Ringspun::TerminatedError, strand
      end
      writer.close
      assert_equal "unwound\n", reader.read
    end
  end

  def machine_of_child = Ringspun::Machine.current

  def test_one_that_does_not_end_is_killed
    told do |reader, writer|
      Ringspun.run do |machine|
        strand = machine.spin do
          Quarantine.new(grace: 0.01).run(nil, JOB) do
            trap("TERM") {}
            writer.syswrite("#{Process.pid}\n")
            loop { sleep }
          end
        end
        pid = Integer(reader.gets)
        machine.terminate(strand)
        assert_ends_with Ringspun::TerminatedError, strand
        assert_raises(Errno::ESRCH) { Process.kill(0, pid) }
      end
    end
  end

  # Ctrl-C is for the parent, who says what becomes of it.
  def test_signals_of_the_terminal_are_the_parents
    result = run_alone do
      %i[INT TSTP].each { |name| Process.kill(name, Process.pid) }
      :alive
    end
    assert_equal :alive, result.value
  end

  def test_it_ends_with_its_parent
    told do |reader, writer|
      parent = fork do
        Ringspun.run do
          Quarantine.new.run(nil, JOB) do
            trap("TERM") {}
            writer.syswrite("#{Process.pid}\n")
            nil while true # nothing of Ruby's could interrupt that
          end
        end
      ensure
        exit!
      end
      writer.close
      assert_match(/\A\d+\n\z/, reader.gets)
      Process.kill(:KILL, parent)
      Process.wait(parent)
      assert_nil reader.gets, "the child has the pipe until it ends"
    end
  end

  # --- what is told ---

  def logged
    file = Tempfile.create("log")
    log = Ringspun::Jobs::Log.new(Ringspun::Jobs::Log.open(path: file.path))
    Ringspun.run { yield log, Quarantine.new(log:) }
    File.readlines(file.path, chomp: true)
  ensure
    log.logger.close
    file.close
    File.unlink(file.path)
  end

  def test_what_the_child_logs_is_in_the_same_log
    lines = logged do |log, quarantine|
      log.event(:info, "before")
      quarantine.run(nil, JOB) { log.event(:info, "alone") }
      log.event(:info, "after")
    end
    assert_equal %w[after alone before], lines.map { |line| line[/\w+\z/] }.sort
  end
end
