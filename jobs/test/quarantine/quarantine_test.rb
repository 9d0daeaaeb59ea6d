# frozen_string_literal: true

require "jobs_helper"
require "etc"
require "fileutils"
require "tempfile"
require "tmpdir"
require_relative "../support/held_seconds"

class QuarantineTest < Minitest::Test
  include Strands

  Quarantine = Ringspun::Jobs::Quarantine

  # What stands for a job.
  Member = Struct.new(:name, :asked) do
    def ask(why) = self.asked = why
  end

  # How one job has ended that had a child of its own.
  Result = Struct.new(:ending, :ended, :value) do
    def died? = !ended
    def fate = ending.fate
    def told = ending.told
  end

  # What a parent holds of its children.
  def teardown = assert_empty(Ringspun::Jobs.const_get(:Child).lifelines)

  def run_isolated(quarantine = Quarantine.new(grace: 5), &block)
    result = Result.new(nil, false)
    group = quarantine.group([Member.new("a")], title: "MailJob b4a5", &block)
    result.ending = Ringspun.run { group.run { |_, value| result.ended, result.value = true, value } }
    result
  end

  def group_of_one(quarantine, &) = quarantine.group([Member.new("a")], &).run { |member, _| member }

  # For a job that is to be cut short, which computes until then. One test leaves the limit as it is.
  SOONER_SECONDS = 0.15

  # Runs some in one child, and answers what they came to and how that has ended.
  def run_group(*names, quarantine: Quarantine.new, held: nil, &block)
    return HeldSeconds.set(held) { run_group(*names, quarantine:, &block) } if held

    ended = {}
    ending = Ringspun.run do
      quarantine.group(names.map { |name| Member.new(name) }, &block).run { |member, value| ended[member.name] = value }
    end
    [ended, ending]
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
    result = run_isolated { |member| [member.name, File.read("/proc/self/cmdline"), Process.pid] }
    refute_predicate result, :died?
    assert_equal "a", result.value.first
    assert_match(/ringspun-jobs quarantine MailJob b4a5/, result.value[1])
    refute_equal Process.pid, result.value.last
    assert_equal "exit 0", result.fate
  end

  # Which is no exception.
  def test_a_thread_that_is_killed_as_it_forks
    began, gate = Array.new(2) { Thread::Queue.new }
    child = Class.new(Ringspun::Jobs.const_get(:Child))
    child.define_method(:fork) { |&block| (began << true) && gate.pop.then { super(&block) } }
    thread = Thread.new { child.new { |lifeline| lifeline.read.size } }
    began.pop
    thread.kill.join
    assert_empty(Ringspun::Jobs.const_get(:Child).lifelines)
    gate.close
  end

  # For children, Thread.new fails after so many calls.
  def with_threads(number)
    limited = Class.new(Thread)
    limited.define_singleton_method(:new) do |&block|
      (number -= 1).negative? ? raise(ThreadError, "can't create Thread: Resource temporarily unavailable") : Thread.new(&block)
    end
    Ringspun::Jobs.const_get(:Child).const_set(:Thread, limited)
    yield
  ensure
    Ringspun::Jobs.const_get(:Child).__send__(:remove_const, :Thread)
  end

  def test_when_no_process_can_be_made
    child = Class.new(Ringspun::Jobs.const_get(:Child)) { define_method(:fork) { raise Errno::EAGAIN, "fork(2)" } }
    assert_match(/fork\(2\)/, with_threads(1) { assert_raises(Errno::EAGAIN) { child.new { 0 } } }.message)
    assert_match(/create Thread/, with_threads(0) { assert_raises(Errno::EAGAIN) { child.new { 0 } } }.message)
  end

  def test_a_thread_that_is_killed_as_it_forks_when_no_other_can_be_made
    began, gate = Array.new(2) { Thread::Queue.new }
    child = Class.new(Ringspun::Jobs.const_get(:Child))
    child.define_method(:fork) { (began << true) && gate.pop.then { raise Errno::EAGAIN } }
    thread = Thread.new { child.new { 0 } }
    began.pop
    with_threads(0) { thread.kill.join }
    gate.close
  end

  def test_nothing_is_an_answer_too
    result = run_isolated { nil }
    assert_equal [nil, false], [result.value, result.died?]
  end

  def test_an_answer_longer_than_a_pipe
    assert_equal 300_000, run_isolated { "x" * 300_000 }.value.bytesize
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
    result = run_isolated { Slow.new }
    assert_equal [7, "exit 0"], [result.value.number, result.fate]
  end

  def test_a_machine_of_its_own
    parents = Ringspun::Machine.current
    result = run_isolated do
      strands = Array.new(3) { |i| machine.spin { machine.sleep(0.001) && i } }
      [machine.equal?(parents), machine.await(*strands), Thread.current.equal?(Thread.main), Thread.list.size]
    end
    assert_equal [false, [0, 1, 2], true, 2], result.value # one thread more holds the lifeline
  end

  def test_the_strands_of_the_parent_go_on
    Ringspun.run do |machine|
      gate = Ringspun::Queue.new
      other = machine.spin { gate.pop }
      quarantine = Quarantine.new
      values = []
      runs = Array.new(2) { |i| machine.spin { quarantine.group([Member.new("a")]) { i }.run { |_, value| values << value } } }
      gate.push(:on)
      assert_equal :on, other.await
      machine.await(*runs)
      assert_equal [0, 1], values.sort
    end
  end

  def test_a_portable_error_is_itself
    error = run_isolated { Quarantine.portable(error_of { raise ArgumentError, "no" }) }.value
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
    result = run_isolated do
      Object.const_set(:OfTheChild, Class.new(StandardError))
      Quarantine.portable(error_of { raise OfTheChild, "no" })
    end
    refute_predicate result, :died?
    assert_equal [RuntimeError, "OfTheChild: no"], [result.value.class, result.value.message]
    assert_match(/quarantine_test/, result.value.backtrace.first)
  end

  # --- several in one ---

  # The next child may start then, although this one has only begun.
  def test_it_is_told_when_all_have_had_a_turn
    told do |reader, writer|
      ended = []
      group = Quarantine.new.group(%w[a b].map { |name| Member.new(name) }, settled: -> { writer.syswrite("go") }) do |member|
        reader.read(1)
        member.name
      end
      refute_predicate group, :settled?
      Ringspun.run { group.run { |member, _| ended << member.name } }
      assert_equal [%w[a b], true], [ended.sort, group.settled?]
    end
  end

  def test_several_share_a_child
    ended, ending = run_group(*"a".."e") { |member| [member.name, Process.pid] }
    assert_equal [*"a".."e"].to_h { |name| [name, name] }, ended.transform_values(&:first)
    assert_equal [1, "exit 0", false], [ended.values.map(&:last).uniq.size, ending.fate, ending.broken_up]
  end

  # The child dies when its parent has heard of the first.
  def test_what_has_ended_before_the_child_dies_is_told
    told do |reader, writer|
      ended = {}
      group = Quarantine.new.group(%w[a b c].map { |name| Member.new(name) }) do |member|
        next 1 if member.name == "a"

        reader.getc if member.name == "b"
        Process.kill(:KILL, Process.pid) if member.name == "b"
        sleep
      end
      ending = Ringspun.run { group.run { |member, value| writer.syswrite("x") && ended[member.name] = value } }
      assert_equal [{ "a" => 1 }, "SIGKILL", true], [ended, ending.fate, ending.died?]
    end
  end

  # Else it would hold up others once more in each half. It may do something at its end, which gives the next one its turn.
  def test_one_that_was_cut_short_just_before_the_child_dies_is_told
    ended, ending = run_group("a", "b", "c", held: SOONER_SECONDS) do |member|
      nil while member.name == "a"
      Process.kill(:KILL, Process.pid) if member.name == "b"
    ensure
      Ringspun.shield { sleep 0.1 } if member.name == "a"
    end
    assert_equal [{ "a" => :held }, "SIGKILL", true], [ended, ending.fate, ending.died?]
  end

  # The others have begun before and go on afterwards.
  def test_one_that_holds_the_thread_is_cut_short
    told do |reader, writer|
      ended, ending = run_group("a", "b", "c") do |member|
        machine.sleep(0.01)
        nil while member.name == "b"
        machine.sleep(0.01)
        1
      ensure
        writer.syswrite(member.name)
        sleep if member.name == "b" # which is refused
      end
      assert_equal [{ "a" => 1, "b" => :held, "c" => 1 }, "exit 0", false], [ended, ending.fate, ending.broken_up]
      assert_equal %w[a b c], reader.read_nonblock(10).chars.sort
    end
  end

  # By a strand that it has spun, in each way that there is.
  def test_one_whose_strand_holds_the_thread_is_cut_short
    { scope: -> { Ringspun.scope { |scope| scope.spin { nil while true } } },
      evaluation: -> { Ringspun.scope { |scope| scope.concurrently { nil while true }.await_result } } }.each do |how, hold|
      ended, ending = run_group("a", "b", "c", held: SOONER_SECONDS) do |member|
        hold.call if member.name == "b"
        machine.sleep(0.01) && 1
      end
      assert_equal [{ "a" => 1, "b" => :held, "c" => 1 }, "exit 0", false], [ended, ending.fate, ending.broken_up], how
    end
  end

  # Nobody knows whose that is, so the others run anew in halves.
  def test_a_strand_that_holds_the_thread_and_is_no_jobs
    ended, ending = run_group("a", "b", "c", held: SOONER_SECONDS) do |member|
      machine.sleep(0.01)
      Fiber.schedule { nil while true } if member.name == "b"
      sleep
    end
    assert_equal [{}, true, nil], [ended, ending.broken_up, ending.held]
  end

  def test_one_that_rescues_what_cuts_it_short_has_not_come_to_anything
    [-> {}, -> { raise "wrapped" }].each do |answer|
      ended, ending = run_group("a", "b", held: SOONER_SECONDS) do |member|
        nil while member.name == "b"
        machine.sleep(0.01) && 1
      rescue Exception
        answer.call
      end
      assert_equal [{ "a" => 1, "b" => :held }, "exit 0"], [ended, ending.fate]
    end
  end

  def test_one_that_holds_the_thread_by_a_wait_is_cut_short
    ended, ending = run_group("a", "b") do |member|
      Fiber.blocking { sleep } if member.name == "b"
      machine.sleep(0.01)
    end
    assert_equal [%w[a b], :held, "exit 0"], [ended.keys.sort, ended["b"], ending.fate]
  end

  # How many looks it takes until a strand is cut short; nil when others had their turn before that.
  #
  # @param computes [Float] seconds from one look to the next, as the processor tells
  def looks_until_cut(computes:, asleep:)
    process = Quarantine.const_get(:GroupProcess).new([], nil, nil, nil, log: nil, title: nil)
    strand = Struct.new(:state).new(:running)
    looks = 0
    process.define_singleton_method(:sleep) { |_| looks += 1 }
    process.define_singleton_method(:cpu_time) { looks * computes }
    process.define_singleton_method(:asleep?) { asleep }
    process.define_singleton_method(:count_resumes) { looks / 1000 }
    looks if process.__send__(:holds_on?, strand, 0, computing: 0.5, waiting: 2)
  end

  # By the clock alone a job of a busy computer would be cut short that has hardly run.
  def test_one_that_hardly_gets_the_processor_is_not_cut_short
    assert_equal [10, 40, nil], [looks_until_cut(computes: 0.05, asleep: false), looks_until_cut(computes: 0, asleep: true),
                                 looks_until_cut(computes: 0.0001, asleep: false)]
  end

  # It computed for long, but less than it may, and nobody else wanted the thread afterwards.
  def test_one_that_held_the_thread_and_waits_is_not_cut_short
    ended, ending = run_group("a", "b") do |member|
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      nil while member.name == "b" && Process.clock_gettime(Process::CLOCK_MONOTONIC) - began < 0.8
      machine.sleep(4) && 1
    end
    assert_equal [{ "a" => 1, "b" => 1 }, false], [ended, ending.broken_up]
  end

  def test_one_that_holds_the_thread_and_cannot_be_cut_short_is_named_and_the_child_ends
    ended, ending = run_group("a", "b", "c", held: SOONER_SECONDS) do |member|
      machine.sleep(0.01)
      begin
        nil while member.name == "b"
      rescue Ringspun::Cancelled
        retry
      end
      machine.sleep(0.01)
      sleep if member.name == "c"
      1
    end
    assert_equal [true, "b", false], [ending.broken_up, ending.held.name, ending.died?]
    refute_includes ended, "b"
  end

  # Nothing of Ruby's gets a turn in that process, so only its silence tells of it.
  def test_one_that_holds_the_lock_of_ruby
    _, ending = run_group("a", "b", "c") do |member|
      Process.kill(:STOP, Process.pid) if member.name == "b"
      sleep
    end
    assert_equal [true, "b", "SIGKILL"], [ending.broken_up, ending.held.name, ending.fate]
  end

  # It holds up nobody.
  def test_the_last_one_may_hold_the_thread
    told do |reader, writer|
      waits = 4 * SOONER_SECONDS # twice what is allowed beside others
      ended, ending = run_group("a", "b", held: SOONER_SECONDS) do |member|
        next 1 if member.name == "a"

        writer.syswrite("held")
        began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
        nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) - began < waits
        2
      end
      assert_equal [{ "a" => 1, "b" => 2 }, "exit 0", "held"], [ended, ending.fate, reader.read_nonblock(10)]
    end
  end

  def test_one_of_several_is_cancelled
    members = %w[a b c].map { |name| Member.new(name) }
    told do |reader, writer|
      group = Quarantine.new.group(members) do |member|
        writer.syswrite("begun\n")
        machine.sleep if member.name != "a"
        1
      rescue Ringspun::Cancelled
        raise unless member.name == "b"

        member.asked # it ends although it is cancelled
      end
      ended = {}
      Ringspun.run do |machine|
        run = machine.spin { group.run { |member, value| ended[member.name] = value } }
        3.times { reader.gets }
        group.cancel(members[1], :return)
        group.cancel(members[2], :cancel)
        run.join
      end
      assert_equal({ "a" => 1, "b" => :return, "c" => nil }, ended)
    end
  end

  def test_one_that_does_not_end_when_it_is_cancelled
    told do |reader, writer|
      group = Quarantine.new.group([Member.new("a"), Member.new("b")]) do
        writer.syswrite("begun\n")
        Ringspun.shield { machine.sleep }
      end
      ending = nil
      Ringspun.run do |machine|
        run = machine.spin { ending = group.run {} }
        2.times { reader.gets }
        group.break_up
        run.join
      end
      assert_equal [true, "SIGKILL", false], [ending.broken_up, ending.fate, ending.died?]
    end
  end

  # --- how many ---

  # With files of the kernel's as the test has them. A child costs 100 KB, and there is one.
  def places(available, **files)
    pages = 100 * 1024 / Etc.sysconf(Etc::SC_PAGESIZE)
    files = { "proc/self/statm": "999 #{pages} 1", "proc/meminfo": "MemFree: 1 kB\nMemAvailable:  #{available} kB\n", **files }
    Dir.mktmpdir do |folder|
      files.each do |path, text|
        path = File.join(folder, path.name)
        FileUtils.mkdir_p(File.dirname(path))
        File.write(path, text)
      end
      Quarantine.const_get(:Capacity).new(1, folder:).places(1)
    end
  end

  def most = 8 * Etc.nprocessors

  # With a place for one, a job that never ends would hold the last.
  def test_how_many_children_memory_and_cores_bear
    assert_equal [most, 2, 6], [places(1_000_000), places(10), places(1000)]
    assert_same 2, places(340) # 2.7
    assert_equal most, Quarantine.const_get(:Capacity).new(1, folder: "/nowhere").places(1)
    assert_equal [2, 1], Quarantine.const_get(:Capacity).new(1000).then { |shared| [shared.places(0), shared.cores] }
  end

  def test_how_many_children_a_container_bears
    limited = { "memory.max" => "1024000\n", "memory.current" => "512000\n", "memory.stat" => "anon 1\ninactive_file 102400\n" }
    free = { "memory.max" => "max\n", "memory.current" => "5\n", "memory.stat" => "inactive_file 1\n" }
    assert_equal [4, most], [places_in_groups("0::/", "" => limited), places_in_groups("0::/", "" => free)]
    service = { "" => free, "/system.slice" => limited, "/system.slice/jobs.service" => free }
    assert_equal 4, places_in_groups("0::/system.slice/jobs.service", **service)
    first = { "memory.limit_in_bytes" => "1024000\n", "memory.usage_in_bytes" => "512000\n",
              "memory.stat" => "total_inactive_file 102400\n" }
    assert_equal 4, places_in_groups("5:cpu:/x\n4:memory:/jobs\n0::/", "/memory/jobs" => first)
  end

  def places_in_groups(path, **groups)
    files = groups.flat_map { |folder, texts| texts.map { |name, text| [:"sys/fs/cgroup#{folder}/#{name}", text] } }
    places(1_000_000, "proc/self/cgroup": "#{path}\n", **files.to_h)
  end

  # --- how it dies ---

  def test_a_child_that_kills_itself
    result = run_isolated { Process.kill(:KILL, Process.pid) && sleep }
    assert_equal [true, "SIGKILL", nil], [result.died?, result.fate, result.value]
  end

  def test_a_child_that_is_told_to_end_by_others
    result = run_isolated { Process.kill(:TERM, Process.pid) && sleep }
    assert_equal [true, true, "SIGTERM"], [result.died?, result.told, result.fate]
  end

  def test_a_child_that_exits
    assert_equal [true, "exit 3"], run_isolated { exit 3 }.then { |result| [result.died?, result.fate] }
    assert_equal [true, "exit 4"], run_isolated { exit!(4) }.then { |result| [result.died?, result.fate] }
    assert_equal [true, "exit 0"], run_isolated { exit!(0) }.then { |result| [result.died?, result.fate] }
  end

  def test_a_child_that_raises_says_so
    told do |reader, writer|
      result = run_isolated do
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
      Ringspun.run do
        Ringspun::Jobs::Quarantine.new.group([1]) { at_exit { puts "never" }; 5 }.run { |_, value| puts value }
      end
    RUBY
    lib = File.expand_path("../../lib", __dir__)
    answer = ruby_child(program, env: { "RUBYOPT" => "-I#{lib}" })
    assert_equal ["5\nat_exit true\n", ""], [answer.out, answer.err]
  end

  # A process of the job's that lives on has the pipe as well.
  def test_what_the_child_has_forked_holds_nobody_up
    told do |reader, writer|
      result = run_isolated do
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
          group_of_one(Quarantine.new) do
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
          group_of_one(Quarantine.new(grace: 0.01)) do
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
    result = run_isolated do
      %i[INT TSTP].each { |name| Process.kill(name, Process.pid) }
      :alive
    end
    assert_equal :alive, result.value
  end

  def test_it_ends_with_its_parent
    told do |reader, writer|
      parent = fork do
        Ringspun.run do
          group_of_one(Quarantine.new) do
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
      group_of_one(quarantine) { log.event(:info, "isolated") }
      log.event(:info, "after")
    end
    assert_equal %w[after before isolated], lines.map { |line| line[/\w+\z/] }.sort
  end
end
