# frozen_string_literal: true

require_relative "stream_case"

# What becomes of a stream, and of what is on its way, when things end in another order than usual.
class StreamLifeTest < StreamCase
  # `stream` writes to a pipe that nobody reads: an op is in flight.
  STUCK = <<~RUBY
    require "ringspun"
    def stuck(machine)
      reader, writer = IO.pipe
      ($kept ||= []) << reader
      stream = Ringspun::Stream.new(writer, high_water: 10_000_000)
      stream.write("x" * 3_000_000)
      machine.sleep(0.01)
      abort "nothing is in flight" unless machine.metrics[:ops_in_flight] == 1
      stream
    end
  RUBY

  def assert_ends_well(code)
    answer = ruby_child(STUCK + code)
    assert_equal ["fine\n", "", true], [answer.out, answer.err, answer.status.success?]
  end

  def test_the_program_ends_while_bytes_are_on_their_way
    assert_ends_well('Ringspun.run { |machine| $kept_too = stuck(machine) }; puts "fine"')
  end

  def test_a_thread_ends_while_bytes_are_on_their_way
    assert_ends_well(<<~RUBY)
      5.times { Thread.new { Ringspun.run { |machine| stuck(machine) } }.join }
      10.times { GC.start && Array.new(1_000) { Object.new } }
      puts "fine"
    RUBY
  end

  def test_a_child_is_forked_while_bytes_are_on_their_way
    assert_ends_well(<<~RUBY)
      go = Queue.new
      Thread.new { Ringspun.run { |machine| go << stuck(machine) && machine.sleep } }
      go.pop
      Ringspun.run do |machine|
        stream = stuck(machine)
        pid = fork { GC.start }
        _, status = Process.wait2(pid)
        puts(status.success? ? "fine" : status)
        stream.close(timeout: 0) rescue nil
      end
    RUBY
  end

  def test_a_machine_that_closes_leaves_no_buffer_behind
    assert_ends_well(<<~RUBY)
      machine = Ringspun::Machine.current
      streams = machine.socketpair.map { |descriptor| Ringspun::Stream.new(descriptor) }
      streams.first.write("unread")
      streams.last.peek(1)
      machine.close
      begin
        streams.last.read(1)
      rescue Ringspun::ClosedError
        streams.clear
        GC.start
        puts "fine"
      end
    RUBY
  end

  def test_it_is_closed_after_its_machine
    reader, writer = IO.pipe
    number = other = nil
    Thread.new do
      machine = Ringspun::Machine.current
      number, other = machine.socketpair
      gone, gone_too = machine.pipe
      streams = [number, other, gone, writer].map { |io| Ringspun::Stream.new(io) }
      [gone, gone_too].each { |descriptor| machine.close(descriptor) }
      File.open(File::NULL) do |file|
        assert_equal gone, file.fileno
        machine.close
        streams.each { |stream| assert_nil stream.close }
        assert_equal "", file.read
      end
      assert_raises(Ringspun::ClosedError) { streams.first.read }
    end.join
    [number, other].each { |descriptor| assert_raises(Errno::EBADF) { IO.for_fd(descriptor) } }
    assert_equal "", reader.read
  ensure
    reader.close
  end

  def test_a_stream_that_has_been_moved_is_still_found
    on_machine do |machine|
      streams = Array.new(20) { Array.new(50) { +"garbage" } && make_stream(high_water: LARGE).first }
      GC.verify_compaction_references(expand_heap: true, toward: :empty)
      streams.each { |stream| stream.write("x" * 500_000) }
      machine.sleep(0.001)
      3.times { GC.start }
      streams.each { |stream| error_of { stream.close(timeout: 0) } }
      assert_nothing_in_flight
    end
  end

  def test_what_is_written_last_in_a_program_leaves
    assert_ends_well(<<~RUBY)
      Ringspun::Stream.new($stdout).write_line("fine")
      Process.wait(fork { nil }) # to which it does not belong
    RUBY
  end

  def test_what_is_written_last_in_a_run_leaves
    reader, writer = IO.pipe
    Ringspun.run { Ringspun::Stream.new(writer).write("last words") }
    assert_equal "last words", reader.read_nonblock(100)
  ensure
    [reader, writer].each(&:close)
  end

  # Nothing but the end of what is on its way wakes the machine.
  def test_what_is_put_in_while_bytes_are_on_their_way_leaves_after_them
    mine, theirs = UNIXSocket.pair
    other = Thread.new { theirs.read(LARGE + 3).bytesize.tap { |bytes| theirs.write("#{bytes}\n") } }
    on_machine do |machine|
      stream = keep_stream(Ringspun::Stream.new(mine, high_water: LARGE))
      stream.write("x" * LARGE)
      machine.yield until machine.metrics[:ops_in_flight] == 1 || !other.alive?
      stream.write("end")
      assert_equal (LARGE + 3).to_s, stream.read_line(timeout: 10)
    end
  ensure
    other.join
    theirs.close
  end

  def test_the_object_below_is_closed_by_others_while_bytes_are_on_their_way
    reader, writer = IO.pipe
    on_machine do |machine|
      stream = keep_stream(Ringspun::Stream.new(writer, high_water: LARGE))
      stream.write("x" * LARGE)
      machine.sleep(0.001)
      writer.close
      assert_raises(Ringspun::TimeoutError, Ringspun::ClosedError) { stream.close(timeout: 0.01) }
      assert_predicate stream, :closed?
      assert_nothing_in_flight
    end
  ensure
    reader.close
  end

  # Its number may be that of somebody else's file before the tick ends.
  def test_the_object_below_is_closed_by_others_before_bytes_leave
    Dir.mktmpdir do |folder|
      reader, writer = IO.pipe
      on_machine do |machine|
        stream = keep_stream(Ringspun::Stream.new(writer))
        stream.write("not for strangers")
        number = writer.fileno
        writer.close
        File.open("#{folder}/file", "w") do |file|
          assert_equal number, file.fileno
          machine.sleep(0.001)
        end
        assert_empty File.read("#{folder}/file")
        assert_raises(Ringspun::ClosedError) { stream.flush }
      end
      reader.close
    end
  end

  # The kernel goes on with what it was given. For the rest the number counts, which is somebody else's connection now.
  def test_the_object_below_is_closed_by_others_while_bytes_leave
    old, old_peer = UNIXSocket.pair
    reader = fresh = nil
    on_machine do |machine|
      stream = keep_stream(Ringspun::Stream.new(old, high_water: LARGE))
      stream.write("x" * LARGE)
      machine.yield until machine.metrics[:ops_in_flight] == 1
      number = old.fileno
      old.close
      fresh = UNIXSocket.pair
      assert_equal number, fresh.first.fileno
      reader = Thread.new { old_peer.read }
      machine.sleep(0.05)
      assert_equal :wait_readable, fresh.last.read_nonblock(1, exception: false)
      assert_raises(Ringspun::TimeoutError, Ringspun::ClosedError) { stream.close(timeout: 0) }
    end
    reader.join
  ensure
    [old_peer, *fresh].each(&:close)
  end

  def test_an_object_of_two_descriptors
    on_machine do
      stream = keep_stream(Ringspun::Stream.new(IO.popen("cat", "r+")))
      stream.write_line("there and back")
      assert_equal "there and back", stream.read_line
    end
  end

  def test_a_signal_handler_throws_while_a_stream_is_closed
    assert_ends_well(<<~RUBY)
      trap("USR1") { throw :out }
      catch(:out) do
        stream = stuck(Ringspun::Machine.current)
        Thread.new { sleep(0.1) && Process.kill(:USR1, Process.pid) }
        stream.close
      end
      puts "fine"
    RUBY
  end

  def test_a_thread_is_killed_while_it_closes_a_stream
    reader, writer = IO.pipe
    thread = Thread.new do
      Thread.current.report_on_exception = false
      machine = Ringspun::Machine.current
      stream = Ringspun::Stream.new(writer, high_water: LARGE)
      stream.write("x" * LARGE)
      stream.close
    ensure
      machine.close
    end
    sleep(0.01) until thread.stop?
    thread.kill
    assert_nil thread.value
    assert_predicate writer, :closed?
  ensure
    reader.close
  end

  def test_two_strands_close_it
    on_machine(faults: false) do
      one, two = make_streams(high_water: LARGE)
      one.write(sample(LARGE))
      closers = Array.new(2) { waiting { [one.close, $!] } }
      assert_equal LARGE, two.read.bytesize
      assert_equal [[nil, nil]] * 2, await_all(closers)
    end
  end

  # What is told is the end of the stream, and not what else has its number by then.
  def test_the_number_is_another_files_by_then
    on_machine do |machine|
      pipe = machine.pipe
      stream = Ringspun::Stream.new(pipe.first)
      reader = waiting(/read on/) { stream.read_line }
      stream.close
      File.open(File::NULL, "w") do |file|
        assert_equal pipe.first, file.fileno
        assert_raises(Ringspun::ClosedError) { reader.await }
      end
      one, other = machine.socketpair
      stream = keep_stream(Ringspun::Stream.new(one))
      stream.write("x")
      machine.close(one)
      File.open(File::NULL) do |file|
        assert_equal one, file.fileno
        2.times { assert_equal(Ringspun::ClosedError, error_of { stream.flush }.class) }
      end
      [pipe.last, other].each { |descriptor| machine.close(descriptor) }
    end
  end

  # The others would never run again, nor would the strand see that its time is up.
  def test_who_writes_and_never_waits_gives_way
    Dir.mktmpdir do |folder|
      on_machine do |machine|
        stream = keep_stream(Ringspun::Stream.new(File.open("#{folder}/file", "w"), high_water: 1_000))
        assert_raises(Ringspun::TimeoutError) { machine.timeout(0.01) { loop { stream.write("x" * 10).then { stream.flush } } } }
        assert_raises(Ringspun::TimeoutError) { machine.timeout(0.01) { loop { stream.write("x" * 2_000) } } }
      end
    end
  end

  def test_who_reads_and_never_waits_runs_out_of_time
    on_machine do
      stream = keep_stream(Ringspun::Stream.new(File.open("/dev/zero")))
      assert_raises(Ringspun::TimeoutError) { stream.skip(1 << 50, timeout: 0.01) }
    end
  end

  # --- methods of IO's ---

  def test_what_a_stream_has_instead_of_what_an_io_has
    on_machine do
      stream, = make_stream
      others = { puts: "write_line", gets: "read_line", print: "write", readpartial: "read_partial", each: "each_line" }
      others.each do |name, instead|
        error = assert_raises(NoMethodError) { stream.public_send(name, "x") }
        assert_match(/\Aundefined method '#{name}' for an instance of Ringspun::Stream: a stream has #{instead}/, error.message)
        assert_equal [name, stream], [error.name, error.receiver]
      end
      refute_respond_to stream, :puts
      refute_respond_to stream, :gets
    end
  end

  def test_other_methods_that_it_does_not_have
    on_machine do
      stream, = make_stream
      error = assert_raises(NoMethodError) { stream.nothing_of_the_kind }
      refute_match(/a stream has/, error.message)
    end
  end

  def test_every_name_that_is_recommended_is_there
    Ringspun::Stream.const_get(:INSTEAD).each do |name, text|
      refute Ringspun::Stream.method_defined?(name, false), name
      assert Ringspun::Stream.method_defined?(text[/\A[a-z_]+/]), text
    end
  end
end
