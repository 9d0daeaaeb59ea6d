# frozen_string_literal: true

require_relative "hook_case"

# What is closed, freed or changed while strands wait on it.
class SchedulerClosingTest < HookCase
  each_stream do |name, on|
    define_method("test_machine_close_ends_the_waits#{on}") do
      Ringspun.run do
        reader, = stream(name)
        _, writer = stream(name) # of another, for this one has readers
        target = +"untouched"
        # The second one reads into the IO's own buffer, which is freed with it.
        strands = [waiting { reader.sysread(10, target) }, waiting { reader.gets }, waiting { reader.wait_readable }]
        writing = waiting { writer.write("x" * LARGE * 3) }
        machine.close(reader)
        GC.start
        strands.each { |strand| assert_ends_with(IOError, strand, "closed in another strand") }
        machine.close(writer)
        refute_nil error_of { writing.join }
        assert_equal "untouched", target
        assert_equal [true, true], [reader, writer].map(&:closed?)
      end
      assert_nothing_in_flight
    end
  end

  READS = [:read.to_proc, :gets.to_proc, :getc.to_proc, :wait_readable.to_proc, ->(io) { io.readpartial(9) },
           ->(io) { io.sysread(9) }, ->(io) { IO.select([io]) }].freeze

  # By its number too: then the IO itself does not know that it is closed.
  def test_all_readers_of_an_io_that_is_closed_get_the_same_error
    %w[pipe socketpair].product(READS, [:itself, :fileno]) do |name, read, closed|
      Ringspun.run do
        reader, = stream(name)
        strands = Array.new(3) { waiting { read.call(reader) } }
        machine.close(reader.public_send(closed))
        reader.autoclose = false if closed == :fileno
        strands.each { |strand| assert_ends_with(IOError, strand, "closed in another strand") }
        @opened.delete(reader)
      end
    end
    assert_nothing_in_flight
  end

  # Where CRuby copies on a worker thread, as 3.4 does, nobody tells that the IO is closed, and a read fails.
  def test_all_who_copy_from_an_io_that_is_closed_get_an_error
    Ringspun.run do |machine|
      reader, = stream("pipe")
      strands = Array.new(3) { waiting { IO.copy_stream(reader, File::NULL) } }
      machine.close(reader)
      strands.each { |strand| assert_includes [IOError, Errno::EBADF], error_of { strand.await }.class }
    end
    assert_nothing_in_flight
  end

  def test_all_writers_to_an_io_that_is_closed_get_the_same_error
    %w[pipe blocking_socketpair].each do |name|
      Ringspun.run do
        _, writer = stream(name)
        writer.sync = true
        strands = Array.new(3) { waiting { writer.syswrite("x" * LARGE) while true } }
        machine.close(writer)
        strands.each { |strand| assert_ends_with(IOError, strand, "closed in another strand") }
      end
    end
    assert_nothing_in_flight
  end

  # From https://bugs.ruby-lang.org/issues/20723.
  def test_close_while_a_thread_reads
    reader, writer = keep(*Socket.pair(:UNIX, :STREAM))
    thread = Thread.new { error_of { reader.wait_readable } }
    Thread.pass until thread.status == "sleep"
    Ringspun.run do
      closer = machine.spin { reader.close }
      turns = 0
      machine.spin { 3.times { (turns += 1) && machine.yield } }
      closer.await
      assert_operator turns, :>, 0
    end
    assert_kind_of IOError, thread.value
    assert_predicate reader, :closed?
    assert_equal 1, writer.write("x") rescue assert_kind_of(Errno::EPIPE, $!)
  end

  # IO#close waits for the thread when the IO has lost its number already, which must be closed all the same.
  def test_close_by_a_cancelled_strand_while_a_thread_reads
    reader, writer = keep(*Socket.pair(:UNIX, :STREAM))
    number = reader.fileno
    thread = Thread.new { error_of { reader.wait_readable } }
    Thread.pass until thread.status == "sleep"
    Ringspun.run do
      strand = parked do
        sleep
      ensure
        reader.close
      end
      machine.terminate(strand)
      assert_ends_with(Ringspun::TerminatedError, strand)
    end
    assert_kind_of IOError, thread.value
    assert_predicate reader, :closed?
    assert_raises(Errno::EBADF) { IO.for_fd(number, autoclose: false) }
    assert_raises(Errno::EPIPE) { writer.write("x") }
  end

  # Ruby 3.4 would have another thread close it, and the number is free before its strand goes on.
  def test_a_number_that_machine_close_has_freed_is_free
    Ringspun.run do
      closer = machine.spin do
        amount(300).times do
          IO.pipe.each { |io| machine.close(io) }
          machine.yield
        end
      end
      while closer.alive?
        ends = machine.pipe
        reader = machine.spin { machine.read(ends.first, +"", 1) }
        machine.yield
        machine.write(ends.last, "x")
        assert_equal 1, reader.await
        ends.each { |descriptor| machine.close(descriptor) }
      end
      closer.await
    end
  end

  def test_close_by_the_strand_that_has_read
    Ringspun.run do
      reader, writer = pair
      strand = waiting { [reader.read(20), reader.close] }
      writer.write("Hello World")
      writer.close
      assert_equal ["Hello World", nil], strand.await
      assert_equal [true, true], [reader, writer].map(&:closed?)
    end
  end

  def test_close_writes_out_what_is_left
    Ringspun.run do
      reader, writer = pipe
      fill(writer)
      writer.sync = false
      writer.write("rest")
      strand = waiting { writer.close }
      refute_equal 0, reader.readpartial(65_536).bytesize
      assert reader.read.end_with?("rest")
      strand.await
    end
  end

  def test_many_closed_and_none_left
    before = Leaks.descriptors.values.sum
    Ringspun.run do
      amount(200).times do
        reader, writer = IO.pipe
        strand = waiting { reader.read }
        writer.write("x")
        writer.close
        assert_equal "x", strand.await
        reader.close
      end
    end
    assert_operator Leaks.descriptors.values.sum, :<=, before
  end

  # --- buffers that vanish ---

  def test_a_buffer_freed_while_a_read_waits
    Ringspun.run do
      reader, writer = pipe
      [:free.to_proc, ->(buffer) { buffer.resize(2) }].each do |vanish|
        buffer = IO::Buffer.new(100_000)
        strand = waiting { read_into(buffer, reader, 10, 50) }
        vanish.call(buffer)
        writer.write("x" * 10)
        assert_ends_with(Ringspun::UsageError, strand, /freed or made smaller/)
      end
    end
  end

  def test_a_buffer_that_grows_while_a_read_waits
    Ringspun.run do
      reader, writer = pipe
      buffer = IO::Buffer.new(100)
      strand = waiting { read_into(buffer, reader, 4, 50) }
      writer.write("ab")
      settle
      buffer.resize(1_000_000)
      writer.write("cd")
      assert_equal 4, strand.await
      assert_equal "abcd", buffer.get_string(50, 4)
    end
  end

  def test_a_buffer_freed_while_a_write_waits
    Ringspun.run do
      reader, writer = pipe
      buffer = IO::Buffer.new(1_000_000)
      strand = waiting { write_from(buffer, writer, 1_000_000) }
      buffer.free
      reader.readpartial(65_536)
      assert_ends_with(Ringspun::UsageError, strand, /freed or made smaller/)
    end
  end

  def test_a_buffer_freed_while_a_file_is_written
    Ringspun.run do
      Tempfile.create do |file|
        buffer = IO::Buffer.new(5_000_000)
        strand = machine.spin { write_from(buffer, file, 5_000_000) }
        machine.spin { buffer.free } # runs when the first waits
        assert_ends_with(Ringspun::UsageError, strand, /freed or made smaller/)
      end
    end
    assert_nothing_in_flight
  end

  # Others run before a call whose strand has had its turn. Where in a row of calls that is, is the machine's affair, and changes
  # with each turn that takes long.
  def test_a_buffer_freed_before_a_call_begins
    errors = []
    Ringspun.run do
      reader, writer = pipe
      (1..40).each do |calls|
        begins = freed = false
        writer.write("x" * 50)
        buffer = IO::Buffer.new(65_536)
        victim = machine.spin do
          calls.times { reader.sysread(1) }
          begins = true
          read_into(buffer, reader, 1)
        end
        machine.spin do
          machine.yield until begins || !victim.alive?
          freed = victim.alive? && buffer.free
        end
        errors << error_of { victim.join }
        assert_instance_of freed ? Ringspun::UsageError : NilClass, errors.last
        reader.read_nonblock(100, exception: false)
      end
    end
    told = errors.compact.map(&:message)
    assert_operator told.size, :>, 1
    assert(told.all?(/while another strand ran/), told.uniq.join)
  end

  # Asked again and again without waiting; by the time others run, so does the one that closes the IO, and its number means
  # another that has something to read and to write.
  def test_an_io_closed_before_a_call_begins
    calls = [->(io) { io.wait_readable(0) }, ->(io) { io.wait(IO::WRITABLE, 0) }, ->(io) { IO.select([io], nil, nil, 0) },
             ->(io) { IO.select(nil, [io], nil, 0) }]
    calls.each do |call|
      Ringspun.run do
        one, = pair
        fill(one)
        answers = []
        asking = machine.spin { 200.times { answers << call.call(one) } }
        machine.spin do
          number = one.fileno
          one.close
          stranger = keep(File.open(File::NULL, "r+")).first
          assert_equal number, stranger.fileno
        end.join
        assert_ends_with(IOError, asking, "closed")
        assert_empty answers.compact
      end
    end
  end

  def test_cancelled_calls_take_nothing
    Ringspun.run do
      reader, writer = pair
      [-> { reader.readpartial(10) }, -> { reader.gets }, -> { read_into(IO::Buffer.new(10), reader, 10) }].each do |call|
        strand = waiting(&call)
        machine.terminate(strand)
        assert_ends_with(Ringspun::TerminatedError, strand)
      end
      writer.write("all")
      assert_equal "all", reader.readpartial(10)
    end
    assert_nothing_in_flight
  end

  # The kernel is given what strands wait for with the next look. By then the number may be somebody else's.
  def test_a_wait_that_the_kernel_has_not_heard_of_leaves_a_stranger_alone
    Ringspun.run do
      one, = pair
      waiter = machine.spin { error_of { one.wait_readable } }
      machine.yield until waiter.waits_for
      number = one.fileno
      one.close
      stranger, other = pair
      assert_equal number, stranger.fileno
      machine.sleep(0.001)
      stranger.close
      assert_nil other.read_nonblock(1, exception: false), "nobody holds on to it"
      machine.terminate(waiter) if waiter.alive?
    end
    assert_nothing_in_flight
  end
end
