# frozen_string_literal: true

require_relative "hook_case"
require "open3"
require "support/scheduled"
require "timeout"

# Child processes: waited for in strands.
class SchedulerProcessTest < HookCase
  include Scheduled

  def test_wait
    Ringspun.run do
      child, release = held_child("exit 3")
      strand = waiting { [Process.wait(child), $?] }
      release.close
      pid, status = strand.await
      assert_equal [child, child, 3, false], [pid, status.pid, status.exitstatus, status.success?]
    end
    assert_nothing_in_flight
  end

  def test_wait2_and_a_signal
    Ringspun.run do
      child, = held_child
      strand = waiting { Process.wait2(child) }
      Process.kill(:KILL, child)
      pid, status = strand.await
      assert_equal [child, true, Signal.list["KILL"]], [pid, status.signaled?, status.termsig]
    end
  end

  def test_wait_for_any
    Ringspun.run do
      child, release = held_child("exit 4")
      strand = waiting { [Process.wait(-1), $?.exitstatus] }
      release.close
      assert_equal [child, 4], strand.await
      child, release = held_child
      strand = waiting { Process.wait }
      release.close
      assert_equal child, strand.await
    end
    assert_nothing_in_flight
  end

  def test_wait_for_a_group
    Ringspun.run do
      own, release_own = held_child("exit 5")
      other, release_other = held_child("exit 6", pgroup: true)
      strands = [waiting { [Process.wait(0), $?.exitstatus] }, waiting { [Process.wait(-other), $?.exitstatus] }]
      [release_other, release_own].each(&:close)
      assert_equal [[own, 5], [other, 6]], strands.map(&:await)
    end
    assert_nothing_in_flight
  end

  def test_wnohang_does_not_wait
    Ringspun.run do
      child, release = held_child
      assert_nil Process.wait(child, Process::WNOHANG)
      release.close
      assert_equal child, Process.wait(child)
    end
  end

  def test_a_child_that_stops
    Ringspun.run do
      child, release = held_child
      strand = waiting { [Process.wait(child, Process::WUNTRACED), $?.stopsig] }
      Process.kill(:STOP, child)
      assert_equal [child, Signal.list["STOP"]], strand.await
      Process.kill(:CONT, child)
      release.close
      assert_equal child, Process.wait(child)
    end
  end

  def test_a_wait_for_a_child_that_stops_is_given_up
    Ringspun.run do
      child, release = held_child("exit 5")
      strand = waiting(/waitid/) { Process.wait(child, Process::WUNTRACED) }
      machine.terminate(strand)
      assert_ends_with(Ringspun::TerminatedError, strand)
      assert_raises(Timeout::Error) { Timeout.timeout(0.001) { Process.wait(-1, Process::WUNTRACED) } }
      release.close
      assert_equal [child, 5], [Process.wait(child, Process::WUNTRACED), $?.exitstatus]
      assert_raises(Errno::ECHILD) { Process.wait(child, Process::WUNTRACED) }
      assert_raises(Errno::EINVAL) { Process.wait(child, 1 << 20) }
    end
    assert_nothing_in_flight
  end

  def test_waits_for_children_that_stop_leave_the_threads_of_offload
    Ringspun.run do
      child, release = held_child
      strands = Array.new(Ringspun.offload_limit + 1) { waiting(/waitid/) { Process.wait(child, Process::WUNTRACED) } }
      assert_equal(:done, Ringspun.offload { :done })
      release.close
      assert_equal [Errno::ECHILD] * Ringspun.offload_limit, strands.filter_map { |strand| error_of { strand.join }&.class }
    end
  end

  def test_a_wait_for_a_child_that_stops_and_a_signal
    assert_child "ensured\nended\n", <<~RUBY
      reader, writer = IO.pipe
      child = spawn("cat", in: reader)
      begin
        Ringspun.run do
          machine.spin { machine.sleep(0.01).then { Process.kill(:INT, Process.pid) } }
          Process.wait(child, Process::WUNTRACED)
        ensure
          puts "ensured"
        end
      rescue Interrupt
        puts "ended"
      end
      writer.close
    RUBY
  end

  def test_of_no_child
    Ringspun.run do
      assert_raises(Errno::ECHILD) { Process.wait }
      assert_raises(Errno::ECHILD) { Process.wait(Process.ppid) }
      assert_raises(Errno::ECHILD) { Process.wait(0) }
      assert_equal [], Process.waitall
    end
  end

  def test_waitall
    Ringspun.run do
      children = Array.new(3) { |i| held_child("exit #{i}") }
      strand = waiting { Process.waitall }
      children.each { |_, release| release.close }
      assert_equal(children.each_with_index.map { |(child, _), i| [child, i] }.sort,
                   strand.await.map { |pid, status| [pid, status.exitstatus] }.sort)
    end
  end

  def test_detach
    Ringspun.run do
      child, release = held_child("exit 7")
      strand = waiting { Process.detach(child).value }
      release.close
      assert_equal 7, strand.await.exitstatus
    end
  end

  def test_two_wait_for_any
    Ringspun.run do
      children = Array.new(2) { held_child }
      strands = Array.new(2) { waiting { Process.wait } }
      children.each { |_, release| release.close }
      assert_equal children.map(&:first).sort, strands.map(&:await).sort
    end
  end

  # Such a wait may last for ever, and what is done by worker threads must go on beside as many as there may be.
  def test_waits_for_one_of_several_keep_no_worker
    Ringspun.run do
      child, release = held_child(pgroup: true)
      strands = Array.new(10) { waiting(/waitid/) { Process.wait(-child) } }
      assert_nothing_in_flight
      with_file(bytes = sample(200_000)) { |path| assert_bytes bytes, File.binread(path) }
      release.close
      assert_equal [Errno::ECHILD] * 9, strands.filter_map { |strand| error_of { strand.join }&.class }
    end
  end

  def test_a_wait_given_up_leaves_the_child
    Ringspun.run do
      child, release = held_child("exit 8")
      [child, -1].each do |number|
        strand = waiting { Process.wait(number) }
        machine.terminate(strand)
        assert_ends_with(Ringspun::TerminatedError, strand)
      end
      release.close
      assert_equal [child, 8], [Process.wait(child), $?.exitstatus]
    end
  end

  def test_system
    Ringspun.run do
      reader, writer = pipe
      strand = waiting { [system("read line; exit ${#line}", in: reader), $?.exitstatus] }
      writer.puts("four")
      assert_equal [false, 4], strand.await
      assert_equal [true, nil, 127], [system("true"), system("/no/such/program"), $?.exitstatus]
    end
  end

  # CRuby asks the scheduler for the end of the child, and wants a status for it.
  def test_a_scheduler_that_answers_no_status
    asked = []
    scheduler = Class.new(Ringspun::Scheduler) do
      define_method(:process_wait) { |*arguments| super(*arguments).then { |status| (asked << status) && false } }
    end
    error = in_fiber(scheduler.new) { error_of { system("exit 3") } }
    assert_kind_of TypeError, error
    assert_equal([3], asked.map(&:exitstatus))
  end

  def test_backquote
    Ringspun.run do
      reader, writer = pipe
      reader.close_on_exec = false
      strand = waiting { [`read line </dev/fd/#{reader.fileno}; echo "$line"; exit 2`, $?.exitstatus] }
      writer.puts("ok")
      assert_equal ["ok\n", 2], strand.await
    end
  end

  def test_popen_and_its_status
    Ringspun.run do
      go, goer = pipe
      go.nonblock = false # the shell waits for a line there
      strand = machine.spin do
        text = IO.popen("read go <&3; cat; exit 9", "r+", 3 => go) do |io|
          io.write("through")
          io.close_write
          io.read
        end
        [text, $?.exitstatus]
      end
      until_parked(strand)
      goer.puts
      assert_equal ["through", 9], strand.await
    end
    assert_nothing_in_flight
  end

  # One of backquotes has its end of the pipe closed: as long as that is read, nobody waits for the child.
  def test_a_child_whose_wait_was_cut_off_is_no_zombie
    { /poll/ => ->(command) { system(command) }, /poll on/ => ->(command) { `exec >&-; #{command}` },
      /read/ => ->(command) { IO.popen(command, &:read) }, /poll on d/ => ->(command) { IO.popen(command).close } }
      .each { |waits_for, way| assert_no_zombie(waits_for, way) }
  end

  # Of the standard library, whose exceptions are no cancellations.
  def test_a_child_whose_wait_a_timeout_has_cut_off_is_no_zombie
    before = Leaks.children
    Ringspun.run do
      reader, release = pipe
      reader.close_on_exec = false
      command = "read line </dev/fd/#{reader.fileno}"
      assert_raises(Timeout::Error) { Timeout.timeout(0.001) { system(command) } } # must pass
      assert_equal 1, (Leaks.children - before).size
      release.puts
      machine.sleep(0.001) until (Leaks.children - before).empty?
    end
  end

  def assert_no_zombie(waits_for, way)
    before = Leaks.children
    Ringspun.run do
      reader, release = pipe
      reader.close_on_exec = false
      strand = machine.spin { way.call("read line </dev/fd/#{reader.fileno}") }
      machine.sleep(0.001) until waits_for.match?(strand.waits_for.to_s)
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      assert_equal 1, (Leaks.children - before).size
      release.puts
      machine.sleep(0.001) until (Leaks.children - before).empty?
    end
  end

  # The program may wait for it again.
  def test_a_child_of_the_programs_own_whose_wait_was_cut_off
    Ringspun.run do
      child, release = held_child("exit 3")
      strand = waiting { Process.wait(child) }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      release.close
      assert_equal 3, Process.wait2(child).last.exitstatus
    end
  end

  def test_open3
    Ringspun.run do
      bytes = sample(amount(1_000_000))
      out, err, status = while_others_run do
        Open3.capture3("cat; echo problem >&2; exit 3", stdin_data: bytes, binmode: true)
      end
      assert_bytes bytes, out
      assert_equal ["problem\n", 3], [err, status.exitstatus]
    end
  end

  def test_each_strand_has_the_status_of_its_own_child
    Ringspun.run do
      strands = Array.new(10) { |i| machine.spin { [system("exit #{i}"), $?.exitstatus].last } }
      assert_equal (0...10).to_a, strands.map(&:await)
    end
  end

  private

  # A child that ends, by that command, when what it reads from is closed.
  def held_child(command = "exit 0", **)
    reader, writer = IO.pipe
    pid = spawn("read line; #{command}", in: reader, **)
    reader.close
    keep(writer)
    [pid, writer]
  end
end
