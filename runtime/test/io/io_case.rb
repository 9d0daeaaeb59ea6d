# frozen_string_literal: true

require "test_helper"
require "io/nonblock"
require "socket"
require "tmpdir"

Warning[:experimental] = false # IO::Buffer is, and Ruby says so at every first use

# What the tests of input and output share. A test that makes sense on the simulated backend as well stands in a module,
# which a class for the real backend and one with Simulated include.
class IOCase < Minitest::Test
  # More than a pipe takes, or a socket whose buffers are bounded.
  LARGE = 3_000_000

  # With a machine of its own: to an older one the number of a pipe that a test has closed behind its back still means a pipe that
  # does not block.
  def before_setup
    Ringspun::Machine.current.close
    super
  end

  # Runs the block with the machine; what it made by the helpers below is closed afterwards.
  def on_machine(**)
    Ringspun.run do |machine|
      with_machine(machine) { yield machine }
    end
  end

  # For what happens where a call does at once what it can: a machine that hands nothing to the ring without a try, whatever the
  # environment asks for.
  def try_first
    return if simulated?

    Ringspun::Machine.current.close
    Ringspun::Machine.new(stream_io: :inline)
  end

  def simulated? = false

  # True when the backend moves as much as it can, as a kernel does when nothing disturbs it.
  def undisturbed? = true

  # So many of something; with a collection at every allocation a few must do.
  def amount(many) = GCStress::WANTED ? [many / 50, 4].max : many

  # --- what is closed at the end ---

  def make_pipe = keep(*@machine.pipe)
  def make_socketpair(...) = keep(*@machine.socketpair(...))
  def make_socket(...) = keep(@machine.socket(...)).first

  # A kernel may give a socket as much room as a test sends; then nothing ever waits for room.
  def bound(*sockets)
    sockets.each do |socket|
      [Socket::SO_SNDBUF, Socket::SO_RCVBUF].each { |name| @machine.setsockopt(socket, Socket::SOL_SOCKET, name, 50_000) }
    end
  end

  def close(io)
    @kept.delete(io)
    @machine.close(io)
  end

  def keep(*ios)
    @kept.concat(ios)
    ios
  end

  # --- waiting ---

  def spin(&block) = @machine.spin(&block)

  # Lets others run until that strand waits for what the pattern names.
  def until_waits(strand, pattern = /./)
    settle
    until strand.waits_for&.match?(pattern)
      flunk "the strand has ended: #{strand.error.inspect}" unless strand.alive?
      @machine.yield
    end
  end

  # An op that a simulated kernel has put off is in flight as well. After this, what waits really waits.
  def settle = @machine.yield

  def waiting(pattern = /./, &block)
    spin(&block).tap { |strand| until_waits(strand, pattern) }
  end

  def await_all(strands) = @machine.await(*strands)

  # --- bytes ---

  # Bytes that tell when some are missing, doubled or out of order.
  def sample(size, seed = 1) = Random.new(seed).bytes(size)

  def read_exactly(io, size)
    bytes = String.new(capacity: size)
    while bytes.bytesize < size
      return bytes if @machine.read(io, bytes, size - bytes.bytesize, bytes.bytesize).zero?
    end
    bytes
  end

  def read_to_end(io)
    bytes = +""
    nil until @machine.read(io, bytes, 65_536, bytes.bytesize).zero?
    bytes
  end

  # Writes until nothing fits any more; returns how much that was. What a TCP socket has taken moves on to its peer, and
  # there is room again: not for those.
  def fill(io)
    written = 0
    filler = spin { written = @machine.write(io, "x" * LARGE) }
    until_waits(filler, /write/)
    @machine.terminate(filler)
    error_of { filler.join }
    written
  end

  # Says where they differ instead of printing both.
  def assert_bytes(expected, actual)
    expected, actual = expected.b, actual.b
    return pass if expected == actual

    place = expected.each_byte.zip(actual.each_byte).index { |one, other| one != other }
    flunk "#{expected.bytesize} bytes expected, got #{actual.bytesize}; they differ from byte #{place || expected.bytesize} on"
  end

  # `expected` where nothing disturbs, else some of it.
  def assert_moved(expected, actual)
    undisturbed? ? assert_equal(expected, actual) : assert_includes(1..expected, actual)
  end

  def assert_nothing_in_flight = assert_equal(0, @machine.metrics[:ops_in_flight], "an op is still in flight")

  def refute_locked(string) = assert_equal(3, string.replace("new").size)

  # What the block raises; the strand goes on.
  def error_of
    yield
    nil
  rescue Exception => error
    raise if error.is_a?(Minitest::Assertion)

    error
  end

  private

  def with_machine(machine)
    @machine = machine
    @kept = []
    yield
  ensure
    @kept.each { |io| error_of { machine.close(io) } }
  end
end

# The same on virtual descriptors: once as a kernel that nothing disturbs, then with faults.
module Simulated
  def self.included(test_class) = test_class.include(AnyBackend)

  # What the kernel of a seed does is the same under each Ruby: the second one has less to find.
  SEEDS = if GCStress::WANTED then 1
          elsif ENV["MATRIX"] == "1" then 3
          else 12
          end

  def on_machine(faults: true, &block)
    run_seed(0, false, &block)
    SEEDS.times { |seed| run_seed(seed, true, &block) } if faults
  end

  def simulated? = true
  def undisturbed? = !@disturbed
  def settle = @machine.sleep(1)

  private

  def run_seed(seed, faults)
    @disturbed = faults
    result = Ringspun::Simulation.run(seed: seed, faults: faults) do |machine|
      with_machine(machine) { yield machine }
    end
    assert_equal 0, result.open_descriptors, "descriptors outlive the run"
  rescue Minitest::Assertion, StandardError => error
    raise error.class, "seed #{seed}, #{faults ? "with" : "without"} faults: #{error.message}", error.backtrace
  end
end

# On a machine that gives what it does with files to worker threads.
module OffloadsFiles
  def on_machine
    Ringspun::Machine.current.close
    Ringspun::Machine.new(file_io: :offload)
    super
  ensure
    Ringspun::Machine.current.close
  end
end

# A folder of its own for each test, on a real file system.
module InFolder
  def setup
    super
    @folder = Dir.mktmpdir
  end

  def teardown
    FileUtils.rm_rf(@folder)
    super
  end

  private

  def path(name) = File.join(@folder, name)
end
