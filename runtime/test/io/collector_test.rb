# frozen_string_literal: true

# gc stress: short
# pass: collections

require_relative "io_case"

# Every kind of op with a buffer that only the op knows, while the collector takes and moves what it can. Few allocations
# each, so that each can be a collection.
module CollectorTests
  def teardown
    GC.stress = false
    super
  end

  def test_read_and_write
    on_machine do |machine|
      reader, writer = make_pipe
      strands = [waiting(/read/) { String.new("123").tap { |string| machine.read(reader, string, 3) } },
                 waiting(/read/) { IO::Buffer.new(4).tap { |buffer| machine.read(reader, buffer) }.get_string },
                 waiting(/read/) { (+"").tap { |string| machine.read(reader, string, 5000) } }]
      stress
      machine.write(writer, "abc" + "defg" + "short and sweet")
      assert_equal ["abc", "defg", "short and sweet"], await_all(strands)
    end
  end

  def test_readv_and_writev
    on_machine do |machine|
      reader, writer = make_pipe
      strand = waiting(/readv/) do
        list = [+"12", +"34567", +"890"]
        machine.readv(reader, list.dup)
        list.join
      end
      stress
      machine.writev(writer, [+"abc", +"defg", +"hij"])
      assert_equal "abcdefghij", strand.await
    end
  end

  def test_writes_that_wait
    on_machine do |machine|
      reader, writer = make_pipe
      left = fill(writer)
      strands = [waiting(/write/) { machine.write(writer, "abc" + "def") },
                 waiting(/writev/) { machine.writev(writer, ["gh" + "i", "j" * 5]) }]
      stress
      string = String.new(capacity: left)
      left -= machine.read(reader, string, left) while left.positive?
      assert_equal [6, 8], await_all(strands)
      assert_equal "abcdefghijjjjj", read_exactly(reader, 14)
    end
  end

  def test_messages
    on_machine do |machine|
      one, other = make_socketpair
      strand = waiting(/recvmsg/) { (+"").tap { |string| machine.recvmsg(one, string, 100) } }
      stress
      machine.sendmsg(other, "mess" + "age")
      assert_equal "message", strand.await
    end
  end

  def test_connections
    on_machine do |machine|
      server, client = Array.new(2) { make_socket(:UNIX, :STREAM) }
      machine.bind(server, address = Socket.sockaddr_un("\0ringspun-collector-#{Process.pid}"))
      machine.listen(server)
      strand = waiting(/accept/) { machine.accept(server) }
      stress
      machine.connect(client, address)
      peer, = keep(strand.await)
      machine.send(client, "x")
      assert_equal IO::READABLE, machine.poll(peer, :readable)
    end
  end

  private

  # What makes an end of a simulation is no op's, and allocates more than all that is.
  def with_machine(_machine)
    super
  ensure
    GC.stress = false
  end

  def stress
    GC.compact
    GC.stress = true
  end
end

class CollectorTest < IOCase
  include CollectorTests

  def test_files
    on_machine do |machine|
      file, = keep(machine.open(__FILE__))
      stress
      strand = spin { (+"").tap { |string| machine.pread(file, string, 2, 100_000) } }
      assert_equal "frozen", strand.await[0, 6]
      assert_equal :file, machine.statx(file)[:type]
    end
  end
end

# Every op comes late here, so that all of them are in flight at some time.
class SimulatedCollectorTest < IOCase
  include Simulated
  include CollectorTests

  def on_machine(**, &block) = run_seed(1, { delay: 1.0 }, &block)

  def test_files
    on_machine do |machine|
      file, = keep(machine.open("file", "w+"))
      stress
      machine.pwrite(file, "0123" + "456789", 0)
      strand = spin { (+"").tap { |string| machine.pread(file, string, 2, 100_000) } }
      assert_equal "23456789", strand.await
      assert_equal :file, machine.statx("fi" + "le")[:type]
    end
  end
end
