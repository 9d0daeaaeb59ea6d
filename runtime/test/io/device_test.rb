# frozen_string_literal: true

require_relative "io_case"
require "support/seccomp"

# What never waits is written with one system call, whoever has opened it and however it is written.
class DeviceTest < IOCase
  WRITES = {
    "own" => ->(machine, own, _) { machine.write(own, "abc") },
    "own, 64 parts" => ->(machine, own, _) { machine.writev(own, ["abc"] * 64) },
    "an IO's" => ->(machine, _, io) { machine.write(io, "abc") },
    "an IO's, 64 parts" => ->(machine, _, io) { machine.writev(io, ["abc"] * 64) },
    "an IO's number" => ->(machine, _, io) { machine.write(io.fileno, "abc") },
    "IO#write" => ->(_, _, io) { io.write("abc") },
    "IO#syswrite" => ->(_, _, io) { io.syswrite("abc") },
    "IO#print" => ->(_, _, io) { io.print("abc") }
  }.freeze
  TIMES = 20

  # What else was once asked, of the descriptor or of somebody else.
  OTHERS = %i[fstat newfstatat statx fcntl ioctl lseek poll ppoll epoll_ctl io_uring_enter].freeze

  def test_a_device_that_is_memory_takes_one_write
    with_device do |*device|
      WRITES.each do |how, write|
        before = writes_made
        TIMES.times { write.call(*device) }
        assert_equal TIMES, writes_made - before, how
      end
    end
  end

  def test_a_device_that_is_memory_takes_no_other_call
    with_device do |*device|
      WRITES.each do |how, write|
        child = fork do
          write.call(*device) # with which the machine begins anew here
          Seccomp.forbid(OTHERS)
          TIMES.times { write.call(*device) }
          exit!(0)
        end
        assert_predicate Process.wait2(child).last, :success?, how
      end
    end
  end

  private

  # An IO is looked at once, when it is first written to.
  def with_device
    @counts = File.open("/proc/thread-self/io") # here, for Ruby 3.4 opens files on another thread inside a run
    on_machine do |machine|
      own = keep(machine.open("/dev/null", File::WRONLY)).first
      File.open("/dev/null", "w") do |io|
        io.sync = true
        io.write("x")
        yield machine, own, io
      end
    end
  ensure
    @counts.close
  end

  # By this thread, as the kernel counts them.
  def writes_made
    @counts.rewind
    Integer(@counts.read[/^syscw: (\d+)/, 1])
  end
end
