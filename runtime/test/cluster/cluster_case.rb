# frozen_string_literal: true

require "test_helper"
require "socket"

# What the tests of Ringspun::Cluster share. Each cluster is a program of its own, in a process group of its own, which the test
# watches by what it prints.
class ClusterCase < Minitest::Test
  # A cluster and what it has said so far.
  class Program
    # Long, for a machine that is busy: when it is over, the test has failed.
    LIMIT_SECONDS = 45

    # With every program: a cluster on a free port whose log comes out line by line.
    PRELUDE = <<~'RUBY'
      require "ringspun"
      $stdout.sync = $stderr.sync = true

      # A line in one piece, whoever else says something.
      def say(text) = $stdout.write("#{text}\n")

      # What a client wants to know: who has served it.
      def answer(stream, worker) = stream.each_line { |line| stream.write_line("#{worker.pid} #{line}") }

      def cluster(workers: 2, listen: ["127.0.0.1", 0], **options, &block)
        block ||= ->(worker) { worker.serve { |stream| answer(stream, worker) } }
        Ringspun::Cluster.run(workers:, listen:, **options, &block)
      end
    RUBY

    def initialize(code)
      reader, writer = IO.pipe
      @lines = []
      @lock = Monitor.new
      @change = @lock.new_cond
      @child = Zygote.start(PRELUDE + code, out: writer, err: writer, pgroup: true)
      writer.close
      @reading = Thread.new { read(reader) }
    end

    def pid = @child.pid

    def text = @lock.synchronize { @lines.join }

    # The first `count` matches, once there are so many.
    def wait_for(pattern, count: 1)
      found = []
      @lock.synchronize do
        new_patience.until_true do |left|
          found = @lines.filter_map { |line| line.match(pattern) }
          found.size >= count || @ended || (@change.wait(left) && nil)
        end
      end
      raise Minitest::Assertion, "#{count} of #{pattern.inspect} have not come:\n#{text}" if found.size < count

      found.first(count)
    end

    def port = @port ||= Integer(wait_for(/event=starting .*listen=\S*?127\.0\.0\.1:(\d+)/).first[1])

    # The pids of those that have said they are ready, in that order.
    def ready(count = 1) = wait_for(/event=ready worker=\d+ pid=(\d+)/, count:).map { |match| Integer(match[1]) }

    # Until the block is true of what it has said.
    def wait_until
      found = @lock.synchronize do
        new_patience.until_true { |left| yield || @ended || (@change.wait(left) && nil) }
      end
      raise Minitest::Assertion, "it has not come:\n#{text}" unless found && yield
    end

    # Those that have ended.
    def gone = text.scan(/event=gone worker=\d+ pid=(\d+)/).map { |pid,| pid.to_i }

    # Of each index the last one that was started and is ready. One that a reload has replaced may be ready behind its successor.
    def ready_pids
      said = text
      ready = said.scan(/event=ready worker=\d+ pid=(\d+)/).flatten
      started = said.scan(/event=started worker=(\d+) pid=(\d+)/).select { |_, pid| ready.include?(pid) }
      started.to_h { |index, pid| [index.to_i, pid.to_i] }
    end

    def count(pattern) = text.lines.grep(pattern).size

    def kill(signal, to = pid) = Process.kill(signal, to)
    def kill_group(signal) = Process.kill(signal, -pid)

    # How it has ended. All that it said has come by then, and nobody is left.
    def status
      status = new_patience.until_true { |left| @child.wait(left) }
      raise Minitest::Assertion, "the cluster has not ended:\n#{text}" unless status

      wait_for_silence
      status
    end

    # Until nobody holds the pipe any more: the last worker has ended as well.
    def wait_for_silence
      raise Minitest::Assertion, "somebody is left:\n#{text}" unless new_patience.until_true { |left| @reading.join(left) }
    end

    def stop(signal = :TERM)
      kill(signal)
      status
    end

    # Whatever is left of it, also without its parent.
    def destroy
      kill_group(:KILL)
    rescue Errno::ESRCH
      nil
    ensure
      @child.wait(nil)
      @reading.join
    end

    private

    def new_patience = Patience.new(LIMIT_SECONDS, pid)

    def read(reader)
      reader.each_line do |line|
        @lock.synchronize do
          @lines << line
          @change.broadcast
        end
      end
    ensure
      reader.close
      @lock.synchronize do
        @ended = true
        @change.broadcast
      end
    end
  end

  # Clients that connect, ask and go, one request after the other, until they are told to stop.
  class Load
    Failure = Data.define(:error, :worker)

    attr_reader :failures

    def initialize(port, clients: 4)
      @port = port
      @failures = Thread::Queue.new
      @served = Thread::Queue.new
      @threads = Array.new(clients) { Thread.new { request until @stopped } }
    end

    # Lets so many more requests be served.
    def run(count)
      count.times do
        served = Patience.new(Program::LIMIT_SECONDS).until_true { |left| @served.pop(timeout: left) }
        raise Minitest::Assertion, "nobody serves any more" unless served
      end
    end

    def stop
      @stopped = true
      @threads.each(&:join)
    end

    def failed = Array.new(@failures.size) { @failures.pop }

    private

    # The worker says who it is before it says that it is done.
    def request
      worker = nil
      Socket.tcp("127.0.0.1", @port) do |socket|
        socket.write("one\n")
        worker = socket.gets or raise EOFError, "no answer"
        socket.write("two\n")
        socket.gets or raise EOFError, "no second answer"
      end
      @served << worker.to_i
    rescue SystemCallError, IOError => error
      @failures << Failure.new(error:, worker: worker.to_i)
    end
  end

  # The programs run in processes of their own; a collection at every allocation of this one would find nothing.
  def setup
    GC.stress = false
    @programs = []
  end

  def teardown
    @programs.each(&:destroy)
    super
  end

  def start(code) = Program.new(code).tap { |program| @programs << program }

  # A connection, and what the cluster answers there.
  def connect(program) = Socket.tcp("127.0.0.1", program.port)

  def ask(program, line = "hello")
    socket = connect(program)
    socket.puts(line)
    socket.gets
  ensure
    socket&.close
  end

  def with_load(program, **)
    load = Load.new(program.port, **)
    load.run(20)
    yield load
  ensure
    load&.stop
  end

  def assert_clean_end(program, signal = :TERM)
    status = program.stop(signal)
    assert_equal 0, status.exitstatus, "#{status}\n#{program.text}"
  end

  def until_state(pid, state)
    Thread.pass until File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == state
  end

  # While it waits for connections.
  def stop_process(pid)
    until_state(pid, "S")
    Process.kill(:STOP, pid)
    until_state(pid, "T")
  end
end
