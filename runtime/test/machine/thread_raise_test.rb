# frozen_string_literal: true

require "test_helper"
require "support/strands"

# What is raised for a thread, outside of Ringspun.run, is raised in the call that the thread is in, also when that call has got
# what it waited for by then. The code behind it, which may have left a Timeout.timeout, is not hit.
class ThreadRaiseTest < Minitest::Test
  include Strands

  # Another thread gives the wait what it waits for, and raises, without giving the GVL away between the two: so both have come
  # when the machine wakes.
  PROGRAM = <<~'RUBY'
    require "socket"
    def in_same_moment(act)
      main = Thread.current
      Thread.new do
        Thread.pass until main.stop?
        act.call
        main.raise(KeyError, "in time")
      end
      inside = begin
        yield
        :missed
      rescue KeyError
        :raised
      end
      after = begin
        machine.sleep(0.001)
        :quiet
      rescue KeyError
        :late
      end
      p [inside, after]
    end
    one, other = UNIXSocket.pair
    stream = Ringspun::Stream.new(one)
    def open_ones = Dir.children("/proc/self/fd").size
  RUBY

  CALLS = {
    stream: ['-> { other.write_nonblock("line\n") }', "stream.read_line", "stream.read_line", "line"],
    stream_partial: ['-> { other.write_nonblock("part") }', "stream.read_partial(100)", "stream.read_partial(100)", "part"],
    machine: ['-> { other.write_nonblock("x") }', 'machine.read(one.fileno, buffer = +"", 1)',
              "buffer.empty? ? one.readpartial(1) : buffer", "x"],
    poll: ['-> { other.write_nonblock("x") }', "machine.poll(one.fileno, :readable)", "one.readpartial(1)", "x"],
    sleep: ["-> {}", "machine.sleep(1000)", "1", 1]
  }.freeze

  CALLS.each do |name, (act, call, rest, expected)|
    define_method("test_#{name}") do
      answer = child("#{PROGRAM}\nbuffer = nil\nin_same_moment(#{act}) { #{call} }\np(#{rest})")
      assert_equal "[:raised, :quiet]\n#{expected.inspect}\n", answer.out, answer.err
    end
  end

  # The connection that nobody gets is closed.
  def test_accept
    answer = child(<<~RUBY)
      #{PROGRAM}
      server = Socket.new(:UNIX, :STREAM)
      server.bind(address = Socket.sockaddr_un("\\0ringspun-raise-\#{Process.pid}"))
      server.listen(1)
      client = Socket.new(:UNIX, :STREAM)
      machine.poll(other.fileno, :writable)
      before = open_ones
      in_same_moment(-> { client.connect_nonblock(address) }) { machine.accept(server.fileno) }
      p open_ones - before
    RUBY
    assert_equal "[:raised, :quiet]\n0\n", answer.out, answer.err
  end

  # One byte and one descriptor, by the system call itself: UNIXSocket#send_io gives the GVL away.
  SEND = <<~'RUBY'
    require "support/seccomp"
    def send_descriptor(socket, io)
      vector = [data = "x", data.bytesize].pack("PQ")
      control = [20, Socket::SOL_SOCKET, Socket::SCM_RIGHTS, io.fileno].pack("QllIx4")
      header = [0, 0, vector, 1, control, control.bytesize, 0].pack("QLx4PQPQLx4")
      syscall(Seccomp::NUMBERS[:sendmsg], socket.fileno, [header].pack("P").unpack1("J"), 0)
    end
  RUBY

  # The descriptors that nobody gets are closed.
  ["machine.recv_fd(one.fileno)", 'machine.recvmsg(one.fileno, +"", 1)',
   'machine.recvmsg(one.fileno, +"", 1, Socket::MSG_WAITALL)'].each do |call|
    define_method("test_#{call[/recv\w+/]}_#{call.count(",")}") do
      answer = child(<<~RUBY)
        #{PROGRAM}
        #{SEND}
        machine.poll(other.fileno, :writable)
        before = open_ones
        in_same_moment(-> { send_descriptor(other, $stderr) }) { #{call} }
        p open_ones - before
        send_descriptor(other, $stderr)
        p machine.recv_fd(one.fileno).class
      RUBY
      assert_equal "[:raised, :quiet]\n0\nInteger\n", answer.out, answer.err
    end
  end
end
