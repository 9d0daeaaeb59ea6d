# frozen_string_literal: true

require "test_helper"
require "io/nonblock"
require "io/wait"
require "socket"
require "tempfile"
require "tmpdir"
require "support/strands"

Warning[:experimental] = false # IO::Buffer is, and Ruby says so at every first use

# What the tests of the scheduler's hooks for input and output share: stock IO objects, in strands.
class HookCase < Minitest::Test
  include Strands

  # More than a pipe or a socket takes.
  LARGE = 3_000_000

  # What can be read and written like a stream, as pairs of what is read and what is written.
  STREAMS = {
    "pipe" => -> { IO.pipe },
    "blocking_pipe" => -> { IO.pipe.each { |io| io.nonblock = false } },
    "socketpair" => -> { UNIXSocket.pair },
    "blocking_socketpair" => -> { UNIXSocket.pair.each { |io| io.nonblock = false } },
    "tcp" => -> { TCPServer.open("127.0.0.1", 0) { |server| [TCPSocket.new(*server.addr.values_at(3, 1)), server.accept] } }
  }.freeze

  # Whether this Ruby asks a scheduler for the hook that takes work which blocks.
  def self.offloads_by_itself?
    return @@offloads if defined?(@@offloads)

    asked = false
    asking = Class.new(Ringspun::Scheduler) do
      define_method(:blocking_operation_wait) { |work| asked = Fiber.blocking { work.call || true } }
    end
    Thread.new do
      Fiber.set_scheduler(asking.new)
      Fiber.schedule { File.open(File::NULL).close }
    end.join
    @@offloads = asked
  end

  def offloads_by_itself? = self.class.offloads_by_itself?

  # In which order IO::Buffer#read and its kin take `length` and `offset`. Where `length` comes first it is the least that they
  # transfer, and elsewhere, from 4.1 on, the most.
  def self.buffers_take_offset_first?
    return @@offset_first if defined?(@@offset_first)

    @@offset_first = Fiber.blocking do
      IO.pipe { |reader, writer| IO::Buffer.for("abc").write(writer, 1, 2) && reader.readpartial(3) == "bc" }
    end
  end

  def self.each_stream = STREAMS.each_key { |name| yield name, "_on_a_#{name}" }

  def setup
    super
    @opened = []
  end

  def teardown
    @opened.each { |io| io.close unless io.closed? }
    super
  end

  def stream(name) = keep(*STREAMS.fetch(name).call)
  def pipe = keep(*IO.pipe)
  def pair = keep(*UNIXSocket.pair)

  def keep(*ios)
    @opened.concat(ios)
    ios
  end

  def with_file(content = "")
    Dir.mktmpdir do |folder|
      path = File.join(folder, "file")
      File.binwrite(path, content)
      yield path
    end
  end

  # IO::Buffer#read and its kin, of `length` bytes at least.
  def read_into(buffer, io, length, offset = 0) = at_least(length, offset) { |_, *range| buffer.read(io, *range) }
  def write_from(buffer, io, length, offset = 0) = at_least(length, offset) { |_, *range| buffer.write(io, *range) }

  def pread_into(buffer, io, from, length, offset = 0)
    at_least(length, offset) { |done, *range| buffer.pread(io, from + done, *range) }
  end

  def pwrite_from(buffer, io, from, length, offset = 0)
    at_least(length, offset) { |done, *range| buffer.pwrite(io, from + done, *range) }
  end

  # The block gets what is done by now, and the rest as this Ruby takes it.
  def at_least(length, offset)
    return yield(0, length, offset) unless HookCase.buffers_take_offset_first?

    done = 0
    while done < length
      count = yield(done, offset + done, length - done)
      return done.positive? ? done : count unless count.positive?

      done += count
    end
    done
  end

  # The block's strand, which waits: this one goes on meanwhile.
  def waiting(pattern = /./, &block)
    parked(&block).tap { |strand| assert_match pattern, strand.waits_for }
  end

  # The block's value, for what waits for so short a time that nobody can be sure to see it. Of two others that wake each other
  # one is always ready; one that yields could be passed by who has an answer already.
  def while_others_run
    turns = 0
    items = Array.new(2) { Ringspun::Queue.new }
    others = [items, items.reverse].map do |own, other|
      machine.spin do
        while own.pop
          turns += 1
          Thread.pass # threads may be at work for the block
          other << true
        end
      end
    end
    items.first << true
    machine.yield
    before = turns
    value = yield
    assert_operator turns, :>, before, "nobody went on meanwhile"
    value
  ensure
    others.each { |other| machine.terminate(other) }
    others.each { |other| error_of { other.join } }
  end

  # Lets the others do what they can do without us.
  def settle = 5.times { machine.yield }

  def sample(size, seed = 1) = Random.new(seed).bytes(size)

  def amount(many) = GCStress::WANTED ? [many / 50, 4].max : many

  # Says where they differ instead of printing both.
  def assert_bytes(expected, actual)
    return pass if expected.b == actual.b

    place = expected.each_byte.zip(actual.each_byte).index { |one, other| one != other }
    flunk "#{expected.bytesize} bytes expected, got #{actual.bytesize}; they differ from byte #{place || expected.bytesize} on"
  end

  # What is full now, and so makes writers wait.
  def fill(io)
    io.dup.tap { |copy| nil while copy.write_nonblock("x" * 65_536, exception: false) != :wait_writable }.close
  end

  def assert_nothing_in_flight = assert_equal(0, machine.metrics[:ops_in_flight], "an op is still in flight")

  # How often the machine has asked the kernel while the strand waited and nothing came for it.
  def assert_no_spin(limit = 20)
    before = machine.metrics[:polls]
    machine.sleep(0.03)
    assert_operator machine.metrics[:polls] - before, :<=, limit, "the machine turns round and round"
  end
end
