# frozen_string_literal: true

require "test_helper"
require "support/strands"

# Forked children, looked at more closely than in fork_test.rb: what they have of the parent's, how they end, and signals.
class ChildProcessTest < Minitest::Test
  include Strands

  # What the child's block answers, sent through a pipe; flunks unless the child ends well.
  def answer_of_child
    reader, writer = IO.pipe
    status = in_child do
      reader.close
      writer.write(Marshal.dump(yield))
      writer.close
    end
    writer.close
    assert_predicate status, :success?
    Marshal.load(reader.read)
  ensure
    [reader, writer].each(&:close)
  end

  # --- what the child has ---

  def test_the_others_are_forgotten_in_the_child
    seen = []
    scope = nil
    timed = parked do
      machine.scope { |own| (scope = own).then { machine.sleep } }
    rescue Ringspun::TimeoutError
      seen << :timer
    end
    others = [timed, parked { machine.park.then { seen << :parked } }]
    late = machine.spin { seen << :started }
    scope.deadline = 0.1 # until the fork nobody waits, so that it does not pass before
    answer = answer_of_child do
      before = [machine.strands.size, machine.metrics.values_at(:strands_live, :run_queue, :timers, :ops_in_flight)]
      machine.sleep(0.12)
      [before, seen]
    end
    assert_equal [[1, [1, 0, 0, 0]], []], answer
    machine.schedule(others.last)
    machine.join(late, *others)
    assert_equal %i[parked started timer], seen.sort
  end

  def test_handles_of_forgotten_strands
    ended = machine.spin { 5 }.tap(&:join)
    waiting = parked { machine.park }
    answer = answer_of_child do
      [waiting.state, waiting.alive?, waiting.waits_for, machine.schedule(waiting, 1), machine.terminate(waiting),
       [-> { waiting.await }, -> { waiting.join }, -> { machine.await(waiting) }].map { |use| error_of(&use).class },
       ended.await]
    end
    assert_equal [:done, false, nil, false, false], answer.first(5)
    assert_equal [[Ringspun::TerminatedError], 5], [answer[5].uniq, answer[6]]
    machine.schedule(waiting)
    waiting.join
  end

  # A child that closes what both share must not disturb the parent's epoll instance, nor the other way round.
  def test_the_child_waits_on_a_descriptor_that_the_parent_waits_on
    reader, writer = machine.pipe
    strand = parked { machine.read(reader, bytes = +"", 1).then { bytes } }
    answer = answer_of_child do
      listener = machine.spin { machine.read(reader, bytes = +"", 1).then { bytes } }
      machine.yield
      machine.write(writer, "c")
      listener.await.tap { machine.close(reader) }
    end
    assert_equal "c", answer
    machine.write(writer, "p")
    assert_equal "p", strand.await
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  # Names and numbers say nothing: those of a descriptor that was inherited are the same. The kernel numbers each eventfd,
  # and tells what an epoll instance watches, and of a ring which ops are in it.
  def test_descriptors_are_made_anew
    reader, writer = machine.pipe
    strand = parked { machine.read(reader, +"") }
    machine.sleep(0.001) # a ring is given what has gathered when nobody can run
    mine = event_descriptors
    theirs = answer_of_child { machine.yield.then { event_descriptors } }
    assert_equal mine.map(&:first).tally, theirs.map(&:first).tally
    ids = [mine, theirs].map { |descriptors| descriptors.join("\n").scan(/^eventfd-id:\s*(\d+)$/).flatten }
    refute_empty ids[0]
    assert_empty ids[0] & ids[1]
    assert_match waits_on(reader), mine.join("\n")
    refute_match waits_on(reader), theirs.join("\n")
    machine.write(writer, "x")
    assert_equal 1, strand.await
  ensure
    [reader, writer].each { |fd| machine.close(fd) }
  end

  # In what the kernel tells of the machine's descriptors.
  def waits_on(reader)
    return /^\s*op=22,/ if machine.backend.name == :uring # IORING_OP_READ

    /^tfd:.* ino:#{File.stat("/proc/self/fd/#{reader}").ino.to_s(16)} /
  end

  # [what it is, what the kernel tells of it] of each.
  def event_descriptors
    Dir.children("/proc/self/fd").filter_map do |fd|
      name = File.readlink("/proc/self/fd/#{fd}")
      [name[/\[\w+\]/], File.read("/proc/self/fdinfo/#{fd}")] if name.match?(/event|io_uring/)
    rescue Errno::ENOENT
      nil
    end
  end

  # --- what the forking strand has open ---

  def test_a_scope_of_the_forking_strand_stays_without_its_strands
    scope_strand = nil
    answer = machine.scope do |scope|
      scope_strand = scope.spin { machine.park }
      machine.yield
      answer_of_child do
        size = scope.size
        value = scope.spin { machine.yield || 7 }.await
        [size, value, error_of { machine.timeout(0.001) { machine.sleep } }.class]
      end.tap { machine.schedule(scope_strand) }
    end
    assert_equal [0, 7, Ringspun::TimeoutError], answer
  end

  def test_a_deadline_of_the_forking_strand_goes_on_in_the_child
    answer = machine.timeout(60) do
      answer_of_child { error_of { machine.scope(deadline: 0.001) { machine.sleep } }.class }
    end
    assert_equal Ringspun::TimeoutError, answer
    assert_equal 0, machine.metrics[:timers]
  end

  def test_a_timeout_around_the_fork_fires_in_the_child_as_well
    answer = nil
    error = error_of do
      machine.timeout(0.05) do
        answer = answer_of_child { error_of { machine.sleep }.class }
        machine.sleep
      end
    end
    assert_equal [Ringspun::Cancelled, Ringspun::TimeoutError], [answer, error.class]
  end

  def test_locks_and_queues_name_nobody_who_waits
    mutex, queue = Ringspun::Mutex.new, Ringspun::Queue.new
    holder = parked { mutex.synchronize { machine.park } }
    waiting = [parked { mutex.lock }, parked { queue.pop }]
    answer = answer_of_child do
      [mutex.locked?, mutex.waiting, queue.num_waiting, mutex.synchronize { 1 }, queue.push(2).pop]
    end
    assert_equal [false, 0, 0, 1, 2], answer
    assert_equal [1, 1], [mutex.waiting, queue.num_waiting]
    [holder, *waiting].each { |strand| machine.terminate(strand).then { error_of { strand.join } } }
  end

  def test_a_lock_of_the_forking_strand_stays_its_own
    mutex = Ringspun::Mutex.new
    assert_equal([true, false], mutex.synchronize { answer_of_child { [mutex.owned?, mutex.unlock.locked?] } })
    refute_predicate mutex, :locked?
  end

  # --- forks of forks, and of many ---

  def test_many_children_at_once
    strands = Array.new(5) { |i| machine.spin { answer_of_child { machine.sleep(0.001).then { i } } } }
    assert_equal [0, 1, 2, 3, 4], machine.await(*strands)
  end

  def test_a_child_of_a_thread_without_a_machine_makes_its_own
    status = Thread.new { in_child { machine.sleep(0.001) } }.value
    assert_predicate status, :success?
  end

  # --- how the child ends ---

  def test_exit_statuses
    { "fork { exit 3 }" => 3, "fork { exit!(4) }" => 4, 'fork { raise "x" }' => 1, "fork { machine.sleep(0.001) }" => 0,
      "fork { machine.spin { exit 5 }; machine.sleep }" => 5, "fork { Ringspun.run { exit 6 } }" => 6 }.each do |code, status|
      from_root = child("p Process.wait2(#{code})[1].exitstatus")
      assert_equal "#{status}\n", from_root.out, code
      from_strand = child("Ringspun.run { |machine| p Process.wait2(#{code})[1].exitstatus }")
      assert_equal "#{status}\n", from_strand.out, "#{code} in a strand"
    end
  end

  def test_at_exit_with_a_block
    ["%s", "Ringspun.run { %s }"].each do |around|
      forking = 'Process.wait(fork { machine.yield; puts "child" })'
      assert_child "child\nat_exit\nat_exit\n", format(<<~RUBY, format(around, forking))
        at_exit { puts "at_exit" }
        %s
      RUBY
    end
  end

  def test_without_a_block_in_a_strand_the_child_ends_with_the_strand
    assert_child "child\nparent 0\nafter\n", <<~RUBY
      Ringspun.run do |machine|
        if (pid = fork)
          puts "parent \#{Process.wait2(pid)[1].exitstatus}"
        else
          machine.sleep(0.001)
          puts "child"
        end
      end
      puts "after"
    RUBY
  end

  FAILING_CHILD = <<~RUBY
    if (pid = fork)
      puts Process.wait2(pid)[1].exitstatus
    else
      machine.sleep(0.001)
      raise "in the child"
    end
  RUBY

  def test_an_error_in_a_child_that_a_strand_has_forked_without_a_block
    ["machine.spin { %s }.join", "Ringspun.run { %s }", "machine.scope { |scope| scope.spin { %s } }",
     "Ringspun.run { |machine| machine.spin { %s }.join }"].each do |around|
      answer = child(format(around, FAILING_CHILD))
      assert_equal "1\n", answer.out, "#{around}\n#{answer.err}"
      assert_equal 1, answer.err.scan("in the child").size, "#{around}\n#{answer.err}"
    end
  end

  def test_exit_in_a_child_that_a_strand_has_forked_without_a_block
    assert_child "3\n", <<~RUBY
      Ringspun.run do
        if (pid = fork)
          puts Process.wait2(pid)[1].exitstatus
        else
          exit 3
        end
      end
    RUBY
  end

  def test_strands_that_the_child_has_spun_when_its_strand_ends
    assert_child "spun\nparent\n", <<~RUBY
      Ringspun.run do |machine|
        if (pid = fork)
          Process.wait(pid)
          puts "parent"
        else
          machine.spin { machine.sleep(0.001).then { puts "spun" } }
        end
      end
    RUBY
  end

  # --- signals ---

  def test_signals_in_the_child_end_it
    %w[INT TERM].each do |signal|
      answer = child(<<~RUBY)
        Ringspun.run do |machine|
          others = Array.new(3) { machine.spin { machine.sleep } }
          machine.yield
          reader, writer = IO.pipe
          pid = fork do
            writer.write("ready")
            machine.sleep
          ensure
            puts "unwound"
          end
          reader.readpartial(5)
          Process.kill("#{signal}", pid)
          puts Process.wait2(pid)[1].termsig
          others.each { |strand| machine.terminate(strand) }
        end
      RUBY
      assert_equal ["unwound", Signal.list[signal].to_s], answer.out.split, "#{signal}\n#{answer.err}"
      assert_predicate answer.status, :success?
    end
  end

  def test_a_run_in_the_child
    assert_child "unwound\nINT\n", <<~RUBY
      Ringspun.run do |machine|
        pid = fork do
          Ringspun.run do
            Process.kill(:INT, Process.pid)
            machine.sleep
          ensure
            puts "unwound"
          end
        rescue Interrupt
          puts "INT"
        end
        Process.wait(pid)
      end
    RUBY
  end

  # --- other ways to make a process ---

  def test_spawn_and_friends_beside_strands
    strand = machine.spin { 20.times { machine.sleep(0.000_1) }.then { :done } }
    assert_equal "hello\n", machine.spin { `echo hello` }.await
    assert system("true")
    assert_equal :done, strand.await
  end

  def test_daemon
    assert_child "", <<~RUBY
      Process.daemon(true, true)
      machine.spin { machine.sleep(0.001) }.join
    RUBY
  end
end
