# frozen_string_literal: true

require_relative "hook_case"

# The two contracts of the buffer hooks, called by hand, whichever of them this Ruby calls.
class SchedulerContractTest < HookCase
  # io, buffer, length, offset: length is the least that is wanted, and 0 means once and without waiting.
  class LengthFirst < Ringspun::Scheduler
    include Ringspun::Scheduler::LengthFirst

    def read(io, buffer, length, offset = 0) = io_read(io, buffer, length, offset)
    def write(io, buffer, length, offset = 0) = io_write(io, buffer, length, offset)
    def pread(io, buffer, from, length, offset = 0) = io_pread(io, buffer, from, length, offset)
    def pwrite(io, buffer, from, length, offset = 0) = io_pwrite(io, buffer, from, length, offset)
  end

  # io, buffer, offset, length: length is the most.
  class OffsetFirst < Ringspun::Scheduler
    include Ringspun::Scheduler::OffsetFirst

    def read(io, buffer, length, offset = 0) = io_read(io, buffer, offset, length)
    def write(io, buffer, length, offset = 0) = io_write(io, buffer, offset, length)
    def pread(io, buffer, from, length, offset = 0) = io_pread(io, buffer, from, offset, length)
    def pwrite(io, buffer, from, length, offset = 0) = io_pwrite(io, buffer, from, offset, length)
  end

  EAGAIN = -Errno::EAGAIN::Errno

  CONTRACTS = { "length_first" => LengthFirst, "offset_first" => OffsetFirst }.freeze

  CONTRACTS.each do |name, contract|
    define_method("test_reads_and_writes_at_an_offset_#{name}") do
      in_strand(contract) do |scheduler|
        reader, writer = pipe
        buffer = IO::Buffer.for(+"0123456789")
        assert_equal 7, scheduler.write(writer, buffer, 7, 3)
        target = IO::Buffer.new(20)
        assert_equal 7, scheduler.read(reader, target, 7, 10)
        assert_equal "3456789", target.get_string(10, 7)
        assert_equal "\0" * 10, target.get_string(0, 10)
        once = contract == LengthFirst ? 0 : 1
        assert_equal EAGAIN, scheduler.read(reader, target, once)
        writer.close
        assert_equal 0, scheduler.read(reader, target, once)
      end
    end

    define_method("test_places_in_files_#{name}") do
      in_strand(contract) do |scheduler|
        Tempfile.create do |file|
          assert_equal 3, scheduler.pwrite(file, IO::Buffer.for("abcdef"), 5, 3, 3)
          target = IO::Buffer.new(8)
          assert_equal 8, scheduler.pread(file, target, 0, 8)
          assert_equal "\0\0\0\0\0def", target.get_string
          assert_equal 2, scheduler.pread(file, target, 6, 2, 6)
          assert_equal "ef", target.get_string(6, 2)
          assert_equal 0, scheduler.pread(file, target, 100, 0)
          assert_equal(-Errno::ESPIPE::Errno, scheduler.pread(pipe.first, target, 1, 1))
        end
      end
    end

    define_method("test_large_files_are_moved_whole_#{name}") do
      in_strand(contract) do |scheduler|
        bytes = sample(4_000_001)
        Tempfile.create do |file|
          assert_equal bytes.bytesize, scheduler.write(file, IO::Buffer.for(bytes), bytes.bytesize)
          target = IO::Buffer.new(bytes.bytesize + 10)
          assert_equal bytes.bytesize, scheduler.pread(file, target, 0, bytes.bytesize)
          assert_bytes bytes, target.get_string(0, bytes.bytesize)
        end
      end
    end

    define_method("test_errors_are_answers_#{name}") do
      in_strand(contract) do |scheduler|
        reader, writer = pipe
        buffer = IO::Buffer.new(10)
        assert_equal(-Errno::EBADF::Errno, scheduler.write(reader, buffer, 10))
        assert_equal(-Errno::EBADF::Errno, scheduler.read(writer, buffer, 10))
        reader.close
        assert_equal(-Errno::EPIPE::Errno, scheduler.write(writer, buffer, 10))
        assert_raises(IOError) { scheduler.read(reader, buffer, 1) }
      end
    end

    define_method("test_nothing_to_move_#{name}") do
      in_strand(contract) do |scheduler|
        reader, writer = pipe
        empty = IO::Buffer.new(0)
        assert_equal [0, 0], [scheduler.write(writer, empty, 0), scheduler.read(reader, empty, 0)]
        buffer = IO::Buffer.new(10)
        assert_equal [0, 0], [scheduler.write(writer, buffer, 0, 10), scheduler.read(reader, buffer, 0, 10)]
      end
    end

    define_method("test_bad_arguments_#{name}") do
      in_strand(contract) do |scheduler|
        reader, writer = pipe
        buffer = IO::Buffer.new(10)
        refused(/expected an IO::Buffer, got String/) { scheduler.read(reader, +"0123456789", 1) }
        refused(/expected an IO::Buffer, got NilClass/) { scheduler.write(writer, nil, 1) }
        refused(/read-only/) { scheduler.read(reader, IO::Buffer.for("frozen"), 1) }
        refused(/read-only/) { scheduler.pread(reader, IO::Buffer.for("frozen"), 0, 1) }
        refused(/at offset 11/) { scheduler.write(writer, buffer, 0, 11) }
        refused(/offset/) { scheduler.read(reader, buffer, 1, -1) }
        refused(/length/) { scheduler.read(reader, buffer, -1) }
        refused(/offset/) { scheduler.write(writer, buffer, 1, 2**70) }
        refused(/offset/) { scheduler.pread(reader, buffer, -1, 1) }
        refused(/offset/) { scheduler.pwrite(writer, buffer, "x", 1) }
        buffer.free
        refused(/at offset 5/) { scheduler.read(reader, buffer, 0, 5) }
        assert_raises(TypeError) { scheduler.read(Object.new, IO::Buffer.new(1), 1) }
      end
    end

    # What CRuby gives when the buffer of a hook stands for what has only a number.
    define_method("test_what_only_has_a_number_#{name}") do
      in_strand(contract) do |scheduler|
        reader, writer = pipe
        likeness = Struct.new(:fileno).new(reader.fileno)
        writer.write("x")
        assert_equal 1, scheduler.read(likeness, IO::Buffer.new(4), 1)
        assert_equal IO::WRITABLE, scheduler.io_wait(Struct.new(:fileno).new(writer.fileno), IO::WRITABLE, nil)
      end
    end

    define_method("test_a_number_beyond_all_that_a_machine_takes_#{name}") do
      in_strand(contract) do |scheduler|
        error = assert_raises(Ringspun::UnsupportedError) do
          scheduler.read(Struct.new(:fileno).new(4_194_304), IO::Buffer.new(4), 1)
        end
        assert_match(/descriptor 4194304: a machine takes numbers below 4194304; .*RLIMIT_NOFILE/, error.message)
      end
    end
  end

  # --- where they differ ---

  def test_the_least_is_waited_for
    in_strand(LengthFirst) do |scheduler|
      reader, writer = pipe
      target = IO::Buffer.new(10)
      strand = waiting(/read/) { scheduler.io_read(reader, target, 6, 0) }
      writer.write("abc")
      settle
      assert_equal :parked, strand.state
      writer.write("defgh")
      assert_equal 8, strand.await, "and more if it is there"
      writer.write("ab")
      writer.close
      assert_equal 2, scheduler.io_read(reader, target, 6, 0), "the end"
    end
  end

  def test_the_least_is_written
    in_strand(LengthFirst) do |scheduler|
      reader, writer = pipe
      bytes = sample(LARGE)
      strand = waiting(/poll/) { scheduler.io_write(writer, IO::Buffer.for(bytes), bytes.bytesize, 0).tap { writer.close } }
      assert_bytes bytes, reader.read
      assert_equal bytes.bytesize, strand.await
    end
  end

  def test_more_than_fits_is_refused
    in_strand(LengthFirst) do |scheduler|
      reader, = pipe
      refused(/11 bytes wanted at offset 0/) { scheduler.io_read(reader, IO::Buffer.new(10), 11, 0) }
      refused(/6 bytes wanted at offset 5/) { scheduler.io_read(reader, IO::Buffer.new(10), 6, 5) }
      refused(/1 bytes wanted at offset 0/) { scheduler.io_read(reader, IO::Buffer.new(0), 1, 0) }
    end
  end

  def test_the_most_is_a_bound
    in_strand(OffsetFirst) do |scheduler|
      reader, writer = pipe
      assert_equal 4, scheduler.io_write(writer, IO::Buffer.for("abcdefgh"), 1, 4)
      target = IO::Buffer.new(10)
      assert_equal 3, scheduler.io_read(reader, target, 0, 3)
      assert_equal "bcd\0", target.get_string(0, 4)
      assert_equal 1, scheduler.io_read(reader, target, 9, 1000), "no more than fits"
      assert_equal EAGAIN, scheduler.io_read(reader, target, 0, 1)
    end
  end

  private

  def in_strand(contract)
    scheduler = contract.new
    Ringspun.run { yield scheduler }
    assert_nothing_in_flight
  end

  def refused(pattern, &call) = assert_match(pattern, assert_raises(Ringspun::UsageError, &call).message)
end
