# frozen_string_literal: true

require_relative "io_case"

# Children, and openings that wait for somebody else.
class ChildTest < IOCase
  def teardown
    @folder && FileUtils.remove_entry(@folder)
    super
  end

  def test_waitid_waits_for_the_end_and_reaps
    on_machine do |machine|
      pid, input = make_child
      strand = waiting(/poll/) { machine.waitid(pid) }
      input.puts("exit 7")
      status = strand.await
      assert_equal [pid, 7], [status.pid, status.exitstatus]
      assert_raises(Errno::ECHILD) { machine.waitid(pid) }
      assert_raises(Errno::ECHILD) { Process.wait(pid) }
      assert_nothing_in_flight
    end
  end

  def test_waitid_tells_of_signals
    on_machine do |machine|
      pid, = make_child
      strand = waiting { machine.waitid(pid) }
      Process.kill(:KILL, pid)
      assert_equal 9, strand.await.termsig
    end
  end

  def test_a_child_that_has_ended_does_not_wait
    on_machine do |machine|
      pid, input = make_child
      input.close
      # WNOWAIT, in effect: the pidfd is readable once the child is a zombie.
      machine.yield until File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == "Z"
      assert_predicate machine.waitid(pid), :success?
    end
  end

  def test_several_children_and_several_waiters
    on_machine do |machine|
      children = Array.new(5) { make_child }
      strands = children.map { |pid, _| waiting { machine.waitid(pid).exitstatus } }
      children.each_with_index.to_a.reverse_each { |(_, input), i| input.puts("exit #{i}") }
      assert_equal [0, 1, 2, 3, 4], await_all(strands)
    end
  end

  def test_two_who_wait_for_one_child
    on_machine do |machine|
      pid, input = make_child
      strands = Array.new(2) { waiting { machine.waitid(pid).pid } }
      input.close
      outcomes = strands.map { |strand| error_of { assert_equal pid, strand.await }&.class }
      assert_equal [NilClass, Errno::ECHILD].to_set, outcomes.map { |outcome| outcome || NilClass }.to_set
    end
  end

  # A process of its own, for another test's child may be about to end.
  def with_no_other_child(&)
    assert_predicate in_child { on_machine(&) }, :success?
  end

  def test_any_child
    with_no_other_child do |machine|
      assert_raises(Errno::ECHILD) { machine.waitid(-1) }
      children = Array.new(3) { make_child }
      ended = Array.new(3) do |i|
        strand = waiting(/waitid/) { machine.waitid(-1) }
        children[i].last.puts("exit #{i}")
        strand.await
      end
      assert_equal children.map(&:first), ended.map(&:pid)
      assert_equal [0, 1, 2], ended.map(&:exitstatus)
    end
  end

  def test_two_who_wait_for_any_child
    with_no_other_child do |machine|
      children = Array.new(2) { make_child }
      strands = Array.new(2) { waiting(/waitid/) { machine.waitid(-1).pid } }
      children.each { |_, input| input.close }
      assert_equal children.map(&:first).sort, await_all(strands).sort
    end
  end

  def test_one_child_for_two_who_wait_for_any
    with_no_other_child do |machine|
      pid, input = make_child
      strands = Array.new(2) { waiting(/waitid/) { machine.waitid(-1).pid } }
      input.close
      outcomes = strands.map do |strand|
        strand.await
      rescue Errno::ECHILD
        :nobody
      end
      assert_equal [:nobody, pid].to_set, outcomes.to_set
    end
  end

  def test_a_wait_given_up_leaves_the_child_to_the_next
    with_no_other_child do |machine|
      pid, input = make_child
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { machine.waitid(pid) } }
      strand = waiting { machine.waitid(pid) }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { machine.waitid(-1) } }
      input.puts("exit 3")
      assert_equal 3, machine.waitid(pid).exitstatus
      until_no_worker
    end
  end

  def test_waitid_knows_only_children
    on_machine do |machine|
      assert_raises(Errno::ECHILD) { machine.waitid(1) }
      assert_raises(Errno::ECHILD) { machine.waitid(Process.pid) }
      assert_raises(Errno::ECHILD) { machine.waitid(4_000_000) }
      [0, -2, nil, "1", 1.0, 2**40].each do |pid|
        error = assert_raises(Ringspun::UsageError, pid.inspect) { machine.waitid(pid) }
        assert_match(/waitid/, error.message)
      end
    end
  end

  # --- openings that wait ---

  def test_a_fifo_opens_when_both_sides_are_there
    on_machine do |machine|
      fifo = make_fifo
      reading = waiting(/open/) { machine.open(fifo) }
      writer, = keep(machine.open(fifo, "w"))
      reader, = keep(reading.await)
      assert_predicate IO.for_fd(reader, autoclose: false), :close_on_exec?
      strand = waiting(/read/) { read_exactly(reader, 5) }
      machine.write(writer, "hello")
      assert_equal "hello", strand.await
      bytes = sample(300_000)
      writing = waiting(/write/) { machine.write(writer, bytes).tap { close(writer) } }
      assert_bytes bytes, read_to_end(reader)
      writing.await
    end
  end

  def test_a_fifo_opened_without_waiting
    on_machine do |machine|
      fifo = make_fifo
      reader, = keep(machine.open(fifo, File::RDONLY | File::NONBLOCK))
      assert_equal 0, machine.read(reader, +"")
      writer, = keep(machine.open(fifo, File::WRONLY | File::NONBLOCK))
      strand = waiting(/read/) { read_exactly(reader, 2) }
      machine.write(writer, "hi")
      assert_equal "hi", strand.await
      close(reader)
      assert_raises(Errno::ENXIO) { machine.open(fifo, File::WRONLY | File::NONBLOCK) }
    end
  end

  # Nor a thread of its machine's.
  def test_a_thread_that_ends_in_an_opening_leaves_no_descriptor
    on_machine do
      fifo = make_fifo
      threads = -> { Dir.children("/proc/self/task").size }
      before, count = Leaks.descriptors, threads.call # one that an earlier test has begun may end meanwhile
      thread = Thread.new { Ringspun::Machine.current.open(fifo) }
      until_inside_open(1)
      thread.kill.join
      until Leaks.descriptors == before && threads.call <= count
        begin
          File.open(fifo, File::WRONLY | File::NONBLOCK).close # lets it in where a thread is still at it
        rescue Errno::ENXIO
          nil
        end
        @machine.sleep(0.001)
      end
    end
  end

  # The opening goes on in its thread, and what it opens at last belongs to nobody and is closed; or it has ended for good.
  def test_an_opening_given_up_leaves_no_descriptor
    on_machine do |machine|
      fifo = make_fifo
      strand = waiting(/open/) { machine.open(fifo) }
      until_inside_open(1)
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      assert_raises(Ringspun::TimeoutError) { machine.timeout(0.001) { machine.open(fifo) } }
      machine.scope do |scope|
        scope.spin { machine.open(fifo) }
        machine.yield
        scope.cancel
      end
      # Another side for the openings that had begun.
      keep(machine.open(fifo, File::RDWR | File::NONBLOCK))
      until_no_worker
      close(@kept.last)
      assert_raises(Errno::ENXIO, "nobody has it open for reading") { machine.open(fifo, File::WRONLY | File::NONBLOCK) }
    end
  end

  # More of them than there are workers: the rest of the machine goes on.
  def test_openings_given_up_do_not_take_all_workers
    on_machine do |machine|
      fifo = make_fifo
      openings = Array.new(10) { waiting(/open/) { machine.open(fifo) } }
      until_inside_open(4)
      openings.each { |strand| machine.terminate(strand) }
      openings.each { |strand| assert_raises(Ringspun::TerminatedError) { strand.await } }
      file, = keep(machine.open(File.join(@folder, "file"), "w"))
      assert_nil machine.fsync(file)
      keep(machine.open(fifo, File::RDWR | File::NONBLOCK))
      until_no_worker
    end
  end

  def test_a_machine_closes_while_an_opening_that_was_given_up_still_waits
    code = <<~'RUBY'
      require "ringspun"
      machine = Ringspun::Machine.current
      strand = machine.spin { machine.open(ARGV.first) }
      inside = -> { Dir.glob("/proc/self/task/*/wchan").any? { |path| File.read(path) == "wait_for_partner" } }
      2000.times { inside.call ? break : machine.sleep(0.001) }
      machine.terminate(strand)
      machine.close
      puts "closed"
      # Its thread comes back to a machine that is no more.
      File.open(ARGV.first, File::RDWR | File::NONBLOCK).close
      puts Dir.children("/proc/self/fd").count { |fd| File.readlink("/proc/self/fd/#{fd}").end_with?("fifo") rescue false }
    RUBY
    answer = ruby_child(code, make_fifo, timeout: 10)
    assert_equal ["closed\n0\n", ""], [answer.out, answer.err]
    assert_predicate answer.status, :success?
  end

  private

  # A shell that does what it is told, and ends with its input.
  def make_child
    reader, writer = IO.pipe
    pid = spawn("/bin/sh", in: reader)
    reader.close
    keep(writer)
    [pid, writer]
  end

  def make_fifo
    @folder ||= Dir.mktmpdir
    File.join(@folder, "fifo").tap { |path| File.mkfifo(path) }
  end

  # Until so many threads are inside of open(2), as far as the kernel lets one see that. Before, an opening that is given
  # up has not even begun.
  def until_inside_open(count)
    2000.times do
      places = Dir.glob("/proc/self/task/*/wchan").map { |path| File.read(path) }
      return if places.count("wait_for_partner") >= count

      @machine.sleep(0.001)
    end
  end

  def until_no_worker
    @machine.sleep(0.001) until @machine.metrics[:ops_in_flight].zero?
  end
end
