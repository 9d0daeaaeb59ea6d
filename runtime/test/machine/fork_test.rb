# frozen_string_literal: true

require "test_helper"
require "support/strands"

# A machine in a forked child: the strand that forked goes on there, every other is forgotten.
class ForkTest < Minitest::Test
  include Strands

  # Runs the block in a child of this strand, where it must not raise.
  def assert_in_child(&block) = assert_predicate(in_child(&block), :success?)

  # Runs the block in a child of a strand that is not the root.
  def assert_in_child_of_strand(&block)
    machine.spin { assert_in_child(&block) }.join
  end

  def end_of(pid) = Process.wait2(pid).last

  # --- the machine in the child ---

  def test_the_child_of_the_root_uses_its_machine
    assert_in_child { use_machine }
    use_machine
  end

  def test_the_child_of_a_strand_uses_its_machine
    assert_in_child_of_strand { use_machine }
    use_machine
  end

  def use_machine
    machine.sleep(0.000_1)
    assert_equal [1, 2], machine.await(machine.spin { 1 }, machine.spin { machine.yield || 2 })
    assert_equal(3, machine.scope { |scope| scope.spin { machine.sleep(0.000_1).then { 3 } }.await })
    assert_raises(Ringspun::TimeoutError) { machine.timeout(0.000_1) { machine.sleep } }
    assert_equal "through a pipe", through_pipe("through a pipe")
  end

  # What comes next from there.
  def read_from(io) = (+"").tap { |buffer| machine.read(io, buffer) }

  def through_pipe(text)
    reader, writer = IO.pipe
    strand = machine.spin { read_from(reader) }
    until_parked(strand)
    machine.write(writer, text)
    strand.await
  ensure
    [reader, writer].each(&:close)
  end

  def test_the_strand_that_forked_is_the_root_of_the_child
    assert_in_child_of_strand { assert_equal [machine.running], machine.strands }
  end

  def test_the_child_of_the_child
    assert_in_child_of_strand do
      use_machine
      other = parked { machine.park }
      machine.spin do
        assert_in_child do
          use_machine
          assert_raises(Ringspun::TerminatedError) { other.await }
        end
      end.join
      machine.schedule(other, 1)
      assert_equal 1, other.await
    end
  end

  def test_a_wake_from_a_thread_of_the_child
    assert_in_child_of_strand do
      mine, me = machine, machine.running
      thread = Thread.new { mine.schedule(me, 5) }
      assert_equal 5, machine.park
      thread.join
    end
  end

  def test_the_child_closes_its_machine_and_makes_another
    assert_in_child_of_strand do
      machine.close
      use_machine
    end
  end

  def test_a_run_in_the_child
    assert_in_child { assert_equal(5, Ringspun.run { |machine| machine.spin { machine.yield || 5 }.await }) }
  end

  # --- what the child has forgotten ---

  def test_other_strands_are_neither_resumed_nor_unwound
    reader, writer = IO.pipe
    parent = Process.pid
    others = Array.new(3) do |i|
      parked do
        machine.park
      ensure
        writer.syswrite("#{i} #{Process.pid == parent}\n")
      end
    end
    assert_in_child_of_strand do
      machine.sleep(0.000_1)
      3.times { machine.yield }
      machine.close
      GC.start
    end
    others.each { |strand| machine.schedule(strand) }
    others.each(&:join)
    writer.close
    assert_equal ["0 true\n", "1 true\n", "2 true\n"], reader.readlines
  ensure
    [reader, writer].each(&:close)
  end

  # As above, but the child ends as fork's block does, and collects the forgotten fibers.
  def test_nothing_is_unwound_when_the_child_ends
    assert_child "parent 0\nforgotten\n", <<~'RUBY'
      parent = Process.pid
      other = machine.spin do
        machine.park
      ensure
        puts Process.pid == parent ? "forgotten" : "unwound"
      end
      machine.yield
      pid = machine.spin { fork { GC.start; machine.sleep(0.001); GC.start } }.await
      puts "parent #{Process.wait2(pid).last.exitstatus}"
      machine.terminate(other)
      other.join rescue nil
    RUBY
  end

  def test_awaiting_a_strand_of_the_parent
    other = parked { machine.park }
    assert_in_child_of_strand do
      assert_raises(Ringspun::TerminatedError) { other.await }
      assert_raises(Ringspun::TerminatedError) { machine.await(other) }
      refute_includes machine.strands, other
    end
    machine.schedule(other, 5)
    assert_equal 5, other.await
  end

  def test_strands_of_another_threads_machine_do_not_come_along
    strand = nil
    thread = Thread.new do
      strand = machine.spin { machine.park }
      machine.yield
      strand.await
      machine.close
    end
    Thread.pass until strand && strand.state == :parked && thread.stop?
    assert_in_child { assert_equal [false, :done, false], [strand.alive?, strand.state, strand.machine.schedule(strand, 1)] }
    strand.machine.schedule(strand, 1)
    thread.join
  end

  def test_telling_a_strand_of_the_parent_reaches_nobody
    other = parked { machine.park }
    assert_in_child_of_strand do
      machine.schedule(other, :lost)
      machine.schedule(other, Failure.new)
      machine.terminate(other)
      use_machine
    end
    assert_equal :parked, other.state
    machine.schedule(other, :kept)
    assert_equal :kept, other.await
  end

  def test_a_strand_that_had_ended_keeps_its_value
    done = machine.spin { 5 }.join
    assert_in_child_of_strand { assert_equal 5, done.await }
  end

  def test_spinning_into_a_scope_of_the_parent
    machine.scope do |scope|
      scope.spin do
        assert_in_child { assert_raises(Ringspun::ClosedError) { scope.spin {} } }
      end
    end
  end

  # The generator came along, the strand that opened its scope did not.
  def test_a_generator_leaves_a_scope_that_a_forgotten_strand_opened
    [->(&block) { machine.timeout(10, &block) }, ->(&block) { machine.scope(&block) }].each do |opener|
      items = Enumerator.new { |list| opener.call { 2.times { |i| list << i } }.then { list << :after } }
      strand = parked { items.next.then { machine.park } }
      assert_in_child { assert_equal [1, :after], [items.next, items.next].tap { use_machine } }
      machine.schedule(strand)
      strand.join
    end
  end

  def test_the_child_goes_on_with_a_generator_of_its_own
    assert_in_child_of_strand do
      items = Enumerator.new { |list| machine.timeout(0.000_1) { list << 1 && machine.sleep } }
      items.next
      use_machine
      assert_predicate(in_child do
        use_machine
        assert_raises(Ringspun::TimeoutError) { items.next }
        use_machine
      end, :success?)
    end
  end

  def test_a_scope_of_the_strand_that_forked_is_the_childs_too
    strand = machine.spin do
      machine.scope do |scope|
        scope.spin { machine.park(50) }
        machine.yield
        assert_in_child { assert_equal 5, scope.spin { machine.yield || 5 }.await }
        scope.cancel
      end
    end
    strand.join
  end

  # Nobody in the child could ever unlock it.
  def test_a_lock_that_another_strand_holds_is_free_in_the_child
    mutex = Ringspun::Mutex.new
    holder = parked { mutex.synchronize { machine.park } }
    assert_in_child_of_strand { assert_equal(5, mutex.synchronize { machine.yield || 5 }) }
    assert_predicate mutex, :locked?
    machine.schedule(holder)
    holder.join
    refute_predicate mutex, :locked?
  end

  def test_timers_of_the_parent_are_forgotten
    others = Array.new(3) { parked { machine.sleep(50) } }
    assert_in_child_of_strand { assert_equal 0, machine.metrics[:timers] }
    others.each { |strand| machine.terminate(strand) }
    others.each { |strand| error_of { strand.join } }
  end

  # --- the parent ---

  def test_the_parents_strands_go_on
    gate = Ringspun::Queue.new
    others = Array.new(3) { parked { gate.pop } }
    assert_in_child_of_strand do
      use_machine
      gate.push(:childs)
    end
    3.times { |i| gate.push(i) }
    assert_equal [0, 1, 2], machine.await(*others)
  end

  # The child must not take the parent's descriptors out of an epoll that both see.
  def test_a_read_that_was_waiting_goes_on
    reader, writer = IO.pipe
    strand = parked { read_from(reader) }
    assert_in_child_of_strand do
      use_machine
      reader.close
      machine.close
    end
    machine.write(writer, "for the parent")
    assert_equal "for the parent", strand.await
  ensure
    [reader, writer].each(&:close)
  end

  def test_child_and_parent_talk
    to_child, to_parent = Array.new(2) { IO.pipe }
    pid = machine.spin do
      fork do
        machine.write(to_parent.last, read_from(to_child.first).upcase)
        exit!(true)
      end
    end.await
    answer = machine.spin { read_from(to_parent.first) }
    until_parked(answer)
    machine.write(to_child.last, "word")
    assert_equal "WORD", answer.await
    assert_predicate end_of(pid), :success?
  ensure
    [*to_child, *to_parent].each(&:close)
  end

  # --- how a child ends ---

  def test_fork_with_a_block
    expected = { "" => 0, "exit 4" => 4, "exit!(3)" => 3, "raise 'x'" => 1, "machine.sleep(0.001)" => 0 }
    expected.each do |body, status|
      answer = child(<<~RUBY)
        $stderr = File.open(File::NULL, "w")
        Ringspun.run { |machine| puts Process.wait2(machine.spin { fork { #{body} } }.await).last.exitstatus }
      RUBY
      assert_equal ["#{status}\n", 0], [answer.out, answer.status.exitstatus], body
    end
  end

  # The child goes on after fork, in its strand, and has nothing to go back to when that has ended.
  def test_fork_without_a_block
    expected = { "" => 0, "exit!(3)" => 3, "machine.yield; raise 'x'" => 1, "machine.sleep(0.001)" => 0,
                 # What cannot be written out is lost, and no reason for another end.
                 "$stdout.close; exit 7" => 7, "$stdout.reopen('/dev/full', 'w'); print 'x'; exit 7" => 7,
                 "$stdout = Class.new { def write(*) = 0 }.new" => 0 }
    expected.each do |body, status|
      answer = child(<<~RUBY)
        parent = Process.pid
        pid = nil
        Ringspun.run do |machine|
          machine.spin do
            pid = fork
            unless pid
              $stderr.reopen(File::NULL)
              #{body}
            end
          end.await
          puts "only the parent" if Process.pid == parent
        end
        puts "after the run"
        puts Process.wait2(pid).last.exitstatus
      RUBY
      assert_equal ["only the parent\nafter the run\n#{status}\n", ""], [answer.out, answer.err], body
      assert_predicate answer.status, :success?
    end
  end

  def test_an_error_of_a_childs_strand_is_told
    answer = child(<<~'RUBY')
      pid = machine.spin { fork || (machine.yield && nil) || raise("in the child") }.await
      puts Process.wait2(pid).last.exitstatus
    RUBY
    assert_equal "1\n", answer.out
    assert_match(/in the child/, answer.err)
  end

  def test_fork_from_the_root_without_a_block
    assert_child "child\nparent 0\n", <<~'RUBY'
      pid = fork
      if pid
        puts "parent #{Process.wait2(pid).last.exitstatus}"
      else
        machine.sleep(0.001)
        puts machine.spin { "child" }.await
      end
    RUBY
  end

  def test_what_was_printed_reaches_the_parent
    assert_child "from the child\n0\n", <<~'RUBY'
      $stdout.sync = false
      pid = machine.spin { fork || print("from the child\n") }.await
      puts Process.wait2(pid).last.exitstatus
    RUBY
  end

  # --- several threads ---

  def test_fork_on_a_thread_with_a_machine_of_its_own
    others = machine
    mine = parked { machine.park }
    on_thread do
      use_machine
      machine.spin do
        assert_in_child do
          use_machine
          refute_same others, machine
          assert_raises(Ringspun::WrongThreadError) { mine.await }
          GC.start
        end
      end.join
    end
    machine.schedule(mine, 5)
    assert_equal 5, mine.await
  end

  def test_the_machine_of_a_thread_that_did_not_come_along
    asked, go_on = Array.new(2) { Thread::Queue.new }
    thread = Thread.new do
      asked << parked { machine.park }
      go_on.pop
      machine.strands.last.then { |strand| machine.terminate(strand) && error_of { strand.join } }
      machine.close
    end
    other = asked.pop
    assert_in_child do
      other.machine.schedule(other, :lost)
      assert_raises(Ringspun::WrongThreadError) { other.machine.yield }
      use_machine
    end
    go_on << true
    thread.join
  end

  def test_workers_in_the_child
    assert_child "child true\n0\n", <<~'RUBY'
      Ringspun::Machine.new(file_io: :offload)
      File.open("/proc/self/status") { |file| machine.read(file, +"") }
      pid = machine.spin do
        fork { File.open("/proc/self/status") { |file| puts "child #{machine.read(file, +"").positive?}" } }
      end.await
      puts Process.wait2(pid).last.exitstatus
    RUBY
  end
end
