# frozen_string_literal: true

require "test_helper"
require "socket"
require "timeout"
require "support/certificate"
require "support/spans"
require "support/strands"
require "tmpdir"

using Ringspun::Refinements

# Every method that takes a span of time reads it in the same way: numbers of every kind, and what Kernel#sleep takes besides. A
# limit that has passed is a limit. The signatures name the methods, so a new one cannot be forgotten here.
class SpansTest < Minitest::Test
  include Strands

  # What waits forever, unless its limit has passed. Each row is run with 0, and does the same for all of Spans::PASSED.
  LIMITS = {
    "Machine#sleep seconds" => ->(span) { machine.sleep(span) },
    "Machine#park timeout" => ->(span) { machine.park(span) },
    "Machine#timeout seconds" => ->(span) { machine.timeout(span) { machine.sleep } },
    "Machine#scope deadline" => ->(span) { machine.scope(deadline: span) { machine.sleep } },
    "Scope#deadline=" => ->(span) { machine.scope { |scope| (scope.deadline = span) && machine.sleep } },
    ".scope deadline" => ->(span) { Ringspun.scope(deadline: span) { machine.sleep } },
    ".shield deadline" => ->(span) { Ringspun.shield(deadline: span) { machine.sleep } },
    ".wait seconds" => ->(span) { Ringspun.wait(span) },
    ".await_resume! within" => ->(span) { Ringspun.await_resume!(within: span) },
    ".await_fastest within" => ->(span) { Ringspun.await_fastest(endless, endless, within: span) },
    ".await_readable within" => ->(span) { Ringspun.await_readable(pipe.first, within: span) },
    ".await_writable within" => ->(span) { Ringspun.await_writable(full_pipe.last, within: span) },
    "KernelMethods#wait seconds" => ->(span) { kernel.__send__(:wait, span) },
    "KernelMethods#await_resume! within" => ->(span) { kernel.__send__(:await_resume!, within: span) },
    "KernelMethods#await_fastest within" => ->(span) { kernel.__send__(:await_fastest, endless, endless, within: span) },
    "IOMethods#await_readable within" => ->(span) { pipe.first.extend(Ringspun::IOMethods).await_readable(within: span) },
    "IOMethods#await_writable within" => ->(span) { full_pipe.last.extend(Ringspun::IOMethods).await_writable(within: span) },
    "Evaluation#await_result within" => ->(span) { endless.await_result(within: span) },
    ".wait_process timeout" => ->(span) { Ringspun.wait_process(child, timeout: span) },
    ".select timeout" => ->(span) { Ringspun.select(Ringspun::Queue.new, timeout: span) },
    "Selector#after seconds" => ->(span) { Ringspun.select { |on| on.after(span) { :after } } },
    "Selector#wait timeout" => ->(span) { Ringspun::Selector.new { |on| on.pop(Ringspun::Queue.new) }.wait(timeout: span) },
    "Mutex#lock timeout" => ->(span) { locked_mutex.lock(timeout: span) },
    "Semaphore#acquire timeout" => ->(span) { Ringspun::Semaphore.new(1).tap(&:acquire).acquire(timeout: span) },
    "Barrier#wait timeout" => ->(span) { Ringspun::Barrier.new(2).wait(timeout: span) },
    "Condition#wait timeout" => ->(span) { Ringspun::Condition.new.wait(timeout: span) },
    "Queue#pop timeout" => ->(span) { Ringspun::Queue.new.pop(timeout: span) },
    "SizedQueue#push timeout" => ->(span) { full_queue.push(1, timeout: span) },
    "SizedQueue#enq timeout" => ->(span) { full_queue.enq(1, timeout: span) },
    "Channel#pop timeout" => ->(span) { Ringspun::Channel.new(1).pop(timeout: span) },
    "Channel#push timeout" => ->(span) { Ringspun::Channel.new(1).tap { |channel| channel.push(1) }.push(2, timeout: span) },
    "Stream#initialize timeout" => ->(span) { stream(timeout: span).read_line },
    "Stream#timeout=" => ->(span) { stream.tap { |one| one.timeout = span }.read_line },
    "Stream#read timeout" => ->(span) { stream.read(1, timeout: span) },
    "Stream#read_partial timeout" => ->(span) { stream.read_partial(timeout: span) },
    "Stream#read_line timeout" => ->(span) { stream.read_line(timeout: span) },
    "Stream#read_until timeout" => ->(span) { stream.read_until("x", timeout: span) },
    "Stream#peek timeout" => ->(span) { stream.peek(1, timeout: span) },
    "Stream#skip timeout" => ->(span) { stream.skip(1, timeout: span) },
    "Stream#eof? timeout" => ->(span) { stream.eof?(timeout: span) },
    "Stream#each_line timeout" => ->(span) { stream.each_line(timeout: span) { flunk } },
    "Stream#each_chunk timeout" => ->(span) { stream.each_chunk(timeout: span) { flunk } },
    "Stream#copy_to timeout" => ->(span) { stream.copy_to(stream, timeout: span) },
    "Stream#write timeout" => ->(span) { full_stream.write("x", timeout: span) },
    "Stream#write_line timeout" => ->(span) { full_stream.write_line("x", timeout: span) },
    "Stream#flush timeout" => ->(span) { full_stream.flush(timeout: span) },
    "Stream#close_write timeout" => ->(span) { full_stream.close_write(timeout: span) },
    "Stream#close timeout" => ->(span) { full_stream.close(timeout: span) },
    "Stream#start_tls timeout" => lambda do |span|
      stream.start_tls(Certificate.client_context, host: "localhost", timeout: span)
    end,
    "Stream#accept_tls timeout" => ->(span) { stream.accept_tls(Certificate.server_context, timeout: span) },
    ".connect_tcp connect_timeout" => lambda do |span|
      Ringspun.connect_tcp("127.0.0.1", silent.local_address.ip_port, tls: { host: "localhost" }, connect_timeout: span)
    end,
    ".connect_unix connect_timeout" => lambda do |span|
      Ringspun.connect_unix(silent_path, tls: { host: "localhost" }, connect_timeout: span)
    end,
    ".datagram timeout" => ->(span) { Ringspun.datagram("127.0.0.1", timeout: span) { |socket| socket.recv } },
    ".datagram_unix timeout" => ->(span) { Ringspun.datagram_unix("\0#{object_id}", timeout: span) { |socket| socket.recv } },
    "Datagram#timeout=" => ->(span) { datagram { |socket| (socket.timeout = span) && socket.recv } },
    "Datagram#recv timeout" => ->(span) { datagram { |socket| socket.recv(timeout: span) } },
    "Datagram#each timeout" => ->(span) { datagram { |socket| socket.each(timeout: span) { flunk } } },
    "Datagram#send timeout" => ->(span) { full_datagram { |socket| socket.send("x", timeout: span) } },
    "Signals#next_signal timeout" => ->(span) { signals { |all| all.next_signal(timeout: span) } },
    "Signals#each timeout" => ->(span) { signals { |all| all.each(timeout: span) { flunk } } },
    "Watch#next_event timeout" => ->(span) { watch { |all| all.next_event(timeout: span) } },
    "Watch#each timeout" => ->(span) { watch { |all| all.each(timeout: span) { flunk } } },
    "Server#initialize first_byte" => ->(span) { served(first_byte: span) { |client, _| client.read } },
    "Server#stop within" => lambda do |span|
      served { |client, server| client.write("x") && client.read(1) && server.stop(within: span) }
    end,
    ".connect_tcp attempt_delay" => ->(span) { Ringspun.connect_tcp("127.0.0.1", 1, attempt_delay: span) },
    "LogFile#initialize look_seconds" => ->(span) { Ringspun::LogFile.new(File::NULL, look_seconds: span).close },
    "Array#await_all within" => ->(span) { [endless].await_all(within: span) },
    "Array#await_any within" => ->(span) { [endless, endless].await_any(within: span) }
  }.freeze

  # What is no limit, and so not negative. Each row takes all spellings of its number of seconds, and does the same for them.
  SETTINGS = {
    "Scope#extend_deadline seconds" => [5, lambda do |span|
      on_thread { simulate { machine.scope(deadline: 10) { |scope| scope.extend_deadline(span) || scope.remaining } }.value }
    end],
    "Machine#periodically interval" => [0.001, ->(span) { machine.periodically(span) { break :ran } }],
    "Inspector.watch limit" => [5, ->(span) { Ringspun::Inspector.watch(limit: span, to: StringIO.new).tap(&:stop).limit }],
    "Inspector#watch limit" => [5, ->(span) { Ringspun::Inspector.new.watch(limit: span, to: StringIO.new).tap(&:stop).limit }],
    "Machine#initialize busy_poll" => [0.005, ->(span) { opened(busy_poll: span) }],
    ".run busy_poll" => [0.005, ->(span) { opened(busy_poll: span) }],
    "Machine#initialize sqpoll" => [5, ->(span) { opened(backend: :uring, sqpoll: span) }],
    ".run sqpoll" => [5, ->(span) { opened(backend: :uring, sqpoll: { idle: span }) }],
    "Machine#initialize faults" => [0.001, ->(span) { opened(backend: :sim, faults: { delay_max: span }) }],
    "Cluster.run boot" => [5, ->(span) { cluster(boot: span).boot }],
    "Cluster.run drain" => [5, ->(span) { cluster(drain: span).drain }],
    "Cluster.run grace" => [5, ->(span) { cluster(grace: span).grace }],
    "Cluster.run heartbeat" => [5, ->(span) { cluster(heartbeat: span).heartbeat }],
    "Cluster.run settle" => [5, ->(span) { cluster(settle: span).settle }]
  }.freeze

  # CRuby calls these, and has checked the span in the way of the method that waits.
  HOOKS = {
    "Scheduler#block timeout" => ->(span) { Fiber.scheduler.block(:test, span) },
    "Scheduler#kernel_sleep duration" => ->(span) { Fiber.scheduler.kernel_sleep(span) },
    "Scheduler#io_wait timeout" => ->(span) { Fiber.scheduler.io_wait(pipe.first, IO::READABLE, span) },
    "Scheduler#io_select timeout" => ->(span) { Fiber.scheduler.io_select([pipe.first], nil, nil, span) },
    "Scheduler#timeout_after duration" => ->(span) { Fiber.scheduler.timeout_after(span, Timeout::Error, "late") { machine.sleep } }
  }.freeze

  # What no program passes.
  OURS = ["Datagram#initialize timeout", "Inspector::Stall.[] seconds", "Inspector::Stall.new seconds",
          "Inspector::Watch#initialize limit", "Server::Idle#initialize deadline"].freeze
  # What has no signature, or one that does not name it.
  UNSAID = ["Array#await_all within", "Array#await_any within", "Machine#initialize faults"].freeze

  def test_every_span_of_the_signatures_has_a_row
    rows = LIMITS.keys + SETTINGS.keys + HOOKS.keys + OURS - UNSAID
    assert_equal Spans.said_in("runtime").map { |name| name.sub(/\ARingspun(::)?/, "") }.sort, rows.sort
  end

  LIMITS.each do |name, row|
    define_method("test_limit_#{name}") do
      expected = outcome(row, 0)
      Spans::PASSED.each { |span| assert_equal expected, outcome(row, span), span.inspect }
      refuse(row, Spans::WRONG)
    end
  end

  SETTINGS.each do |name, (number, row)|
    define_method("test_setting_#{name}") do
      expected = outcome(row, number)
      Spans.spellings(number).each { |span| assert_equal expected, outcome(row, span), span.inspect }
      refuse(row, [*Spans::WRONG, -1, -Float::INFINITY, Spans::Duration.new(-1)])
    end
  end

  HOOKS.each do |name, row|
    define_method("test_hook_#{name}") do
      expected = outcome(row, 0)
      [0.0, 0r, Spans::Duration.new(0), Spans::Bare.new(0)].each { |span| assert_equal expected, outcome(row, span), span.inspect }
    end
  end

  def test_a_duration_of_active_support
    answer = ruby_child(<<~'RUBY', fresh: "loads ActiveSupport")
      require "active_support"
      require "active_support/core_ext"
      require "ringspun"
      require "timeout"
      def late = yield.inspect rescue $!.class
      Ringspun::Simulation.run(faults: false) do |machine|
        p machine.sleep(0.001.seconds), Ringspun.wait(-1.second), Ringspun::Queue.new.pop(timeout: 0.001.seconds)
        p late { machine.timeout(0.001.seconds) { machine.sleep } }, late { Timeout.timeout(0.001.seconds) { sleep } }
        p late { machine.scope(deadline: 1.minute) { |scope| scope.extend_deadline(1.minute) || scope.remaining.ceil } }
        p late { machine.timeout(1.hour.ago) { machine.sleep } }
      end
    RUBY
    assert_equal ["", %w[0 true nil Ringspun::TimeoutError Timeout::Error 120 Ringspun::UsageError]],
                 [answer.err, answer.out.delete(%(")).lines(chomp: true)]
  end

  private

  # The value in an Array, or the class of the error.
  def outcome(row, span)
    @opened = []
    Ringspun.run do
      [instance_exec(span, &row)]
    ensure
      @opened.reverse_each { |object, close| close.call(object) }
    end
  rescue Ringspun::Error, SystemCallError, Timeout::Error, TypeError => error
    error.class
  end

  def refuse(row, wrong)
    wrong.each { |value| assert_includes [Ringspun::UsageError, TypeError], outcome(row, value), value.inspect }
  end

  def keep(object, &close)
    @opened << [object, close || :close.to_proc]
    object
  end

  def kernel = Object.new.extend(Ringspun::KernelMethods)
  def endless = keep(Ringspun.concurrent_proc { Ringspun.wait(Float::INFINITY) }.call_detached) { |one| one.conclude_to(nil) }
  def pipe = IO.pipe.each { |io| keep(io) }
  def full_pipe = pipe.tap { |_, writer| nil while writer.write_nonblock("x" * 65_536, exception: false).is_a?(Integer) }
  def full_queue = Ringspun::SizedQueue.new(1).tap { |queue| queue.push(1) }
  def silent = keep(TCPServer.new("127.0.0.1", 0))
  def silent_path = UNIXServer.new("\0spans#{Process.pid}").then { |server| "\0spans#{Process.pid}".tap { keep(server) } }
  def datagram(&) = Ringspun.datagram("127.0.0.1", &)
  def signals = yield(keep(Ringspun.signals(:USR2)))
  def watch = yield(keep(Ringspun.watch(keep(Dir.mktmpdir) { |path| Dir.rmdir(path) })))

  def child
    keep(Process.spawn("sleep", "1000")) { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
  end

  def locked_mutex
    mutex = Ringspun::Mutex.new
    gate = keep(Ringspun::Queue.new)
    parked { mutex.synchronize { gate.pop } }
    mutex
  end

  def stream(**)
    one, other = UNIXSocket.pair
    [one, other].each { |io| keep(io) }
    keep(Ringspun::Stream.new(one, **))
  end

  # More is queued than it may hold, and nobody reads.
  def full_stream
    full = stream(high_water: 1024)
    assert_raises(Ringspun::TimeoutError) { full.write("x" * 1_000_000, timeout: 0) }
    @opened.last[1] = ->(one) { one.close(timeout: 0) rescue Ringspun::TimeoutError }
    full
  end

  def full_datagram
    path = "\0spans#{Process.pid}"
    keep(Ringspun.datagram_unix(path))
    socket = keep(Ringspun.datagram_unix(connect: path))
    assert_raises(Ringspun::TimeoutError) { loop { socket.send("x" * 60_000, timeout: 0) } }
    yield socket
  end

  def served(**)
    server = Ringspun.listen_tcp("127.0.0.1", 0, **) { |client| client.write(client.read(1)) && client.flush && machine.sleep }
    keep(server) { server.stop(within: 0) }
    yield keep(Ringspun.connect_tcp("127.0.0.1", server.port)), server
  end

  def opened(**options)
    Thread.new do
      Thread.current.report_on_exception = false
      Ringspun::Machine.new(**options).close
    end.value
  end

  def cluster(**options)
    Ringspun::Cluster.const_get(:Settings).new(workers: 1, backoff: 1..2, log: nil, drain: 1, grace: 1, boot: 1, heartbeat: 1,
                                               settle: 1, **options)
  end
end
