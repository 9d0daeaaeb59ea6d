# frozen_string_literal: true

require_relative "io_case"

# What waits for ever on descriptors on which nothing happens, and the ways to end that.
module CancelTests
  Scene = Struct.new(:machine, :reader, :full, :silent, :deaf, :listener, :buffer)

  OPERATIONS = {
    read: ->(s) { s.machine.read(s.reader, s.buffer) },
    readv: ->(s) { s.machine.readv(s.reader, [s.buffer]) },
    write: ->(s) { s.machine.write(s.full, "more") },
    writev: ->(s) { s.machine.writev(s.full, %w[more and more]) },
    recv: ->(s) { s.machine.recv(s.silent, s.buffer) },
    recvmsg: ->(s) { s.machine.recvmsg(s.silent, s.buffer) },
    send: ->(s) { s.machine.send(s.deaf, "more") },
    sendmsg: ->(s) { s.machine.sendmsg(s.deaf, "more") },
    accept: ->(s) { s.machine.accept(s.listener) },
    accept_each: ->(s) { s.machine.accept_each(s.listener) { |peer| flunk "who is #{peer}?" } },
    poll: ->(s) { s.machine.poll(s.reader, :readable) },
    poll_writable: ->(s) { s.machine.poll(s.full, :writable) }
  }.freeze

  WAYS = %i[timeout deadline terminate scope exception].freeze

  OPERATIONS.each do |name, operation|
    WAYS.each do |way|
      define_method("test_#{way}_ends_#{name}") do
        on_machine do |machine|
          scene = make_scene(machine)
          __send__("end_by_#{way}", machine) { operation.call(scene) }
          assert_nothing_in_flight
          assert_untouched(scene)
        end
      end
    end
  end

  def test_what_a_cancelled_read_did_not_take_is_for_the_next
    on_machine do |machine|
      reader, writer = make_pipe
      strands = Array.new(3) { waiting(/read/) { (+"").tap { |string| machine.read(reader, string) } } }
      machine.terminate(strands[0])
      machine.terminate(strands[2])
      settle
      machine.write(writer, "x")
      assert_equal "x", strands[1].await
      [0, 2].each { |i| assert_raises(Ringspun::TerminatedError) { strands[i].await } }
    end
  end

  def test_a_connection_that_a_cancelled_accept_did_not_take_is_for_the_next
    on_machine do |machine|
      listener, address = make_listener
      strand = waiting(/accept/) { machine.accept(listener) }
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      client = make_socket(:UNIX, :STREAM)
      machine.connect(client, address)
      peer, = keep(machine.accept(listener))
      machine.write(client, "hello")
      assert_equal "hello", read_exactly(peer, 5)
    end
  end

  # An op that has moved bytes is not undone, and not hidden either: it answers, and the cancellation meets the next wait.
  def test_a_write_cut_by_a_cancellation_says_how_much_went_out
    on_machine do |machine|
      { write: "x" * IOCase::LARGE, writev: ["x" * 1000, "x" * IOCase::LARGE] }.each do |method, bytes|
        reader, writer = make_pipe
        written = nil
        assert_raises(Ringspun::TimeoutError) do
          machine.timeout(0.01) do
            written = machine.__send__(method, writer, bytes)
            machine.yield
            flunk "the cancellation is lost"
          end
        end
        close(writer)
        assert_includes 65_536..(IOCase::LARGE - 1), written
        assert_equal written, read_to_end(reader).size
      end
    end
  end

  def test_a_write_that_goes_on_while_it_is_read_says_how_much_went_out
    on_machine do |machine|
      reader, writer = make_pipe
      written = nil
      strand = waiting(/write/) { written = machine.write(writer, "x" * IOCase::LARGE) }
      read = read_exactly(reader, 100_000).size
      settle
      machine.terminate(strand)
      # The strand ends with its value: it did not wait any more.
      assert_equal strand.await, written
      close(writer)
      assert_equal written, read + read_to_end(reader).size
    end
  end

  # Ops that succeed at once never park; the turn that a strand yields between them must cost nothing it has taken.
  def test_a_cancellation_between_reads_that_succeed_at_once_loses_no_byte
    on_machine do |machine|
      reader, writer = make_pipe
      size = amount(2000)
      machine.write(writer, "x" * size)
      close(writer)
      taken = 0
      string = +""
      strand = spin { taken += 1 while machine.read(reader, string, 1) == 1 }
      settle
      machine.terminate(strand)
      error_of { strand.await }
      assert_equal size, taken + read_to_end(reader).size
    end
  end

  def test_a_cancellation_between_accepts_that_succeed_at_once_loses_no_connection
    on_machine do |machine|
      listener, address = make_listener
      clients = Array.new(amount(80)) { make_socket(:UNIX, :STREAM).tap { |client| machine.connect(client, address) } }
      accepted = 0
      strand = spin do
        loop do
          keep(machine.accept(listener))
          accepted += 1
        end
      end
      settle
      machine.terminate(strand)
      error_of { strand.await }
      (clients.size - accepted).times { keep(machine.accept(listener)) }
      waiter = waiting(/accept/) { machine.accept(listener) }
      machine.terminate(waiter)
    end
  end

  def test_a_cancellation_between_openings_that_succeed_at_once_loses_no_descriptor
    on_machine do |machine|
      [-> { machine.pipe }, -> { machine.socketpair }, -> { [machine.socket(:UNIX, :STREAM)] }].each do |opening|
        count = 0
        strand = spin do
          while count < amount(200)
            opening.call.each { |descriptor| machine.close(descriptor) }
            count += 1
          end
        end
        settle
        machine.terminate(strand)
        error_of { strand.await }
      end
    end
  end

  def test_a_string_changed_while_a_reader_yields_its_turn_is_no_harm
    try_first
    on_machine do |machine|
      reader, writer = make_pipe
      machine.write(writer, "x" * 5000)
      close(writer)
      string = +""
      total = 0
      strand = spin do
        loop do
          count = machine.read(reader, string, 20)
          break if count.zero?

          assert_equal count, string.bytesize
          total += count
        end
      end
      while strand.alive?
        string.clear
        string.replace(+"")
        settle
      end
      strand.await
      assert_equal 5000, total
    end
  end

  def test_a_cancelled_strand_still_closes
    on_machine do |machine|
      reader, writer = make_pipe
      strand = waiting(/read/) do
        machine.read(reader, +"")
      ensure
        close(reader)
        close(writer)
      end
      machine.terminate(strand)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      assert_raises(Ringspun::ClosedError) { machine.read(reader, +"") }
    end
  end

  def test_a_cancelled_strand_does_not_begin_to_wait_again
    on_machine do |machine|
      reader, writer = make_pipe
      errors = []
      strand = waiting(/read/) do
        2.times { errors << error_of { machine.read(reader, +"") }.class }
        errors << error_of { machine.poll(reader, :readable) }.class
        raise Ringspun::Cancelled
      end
      machine.terminate(strand)
      error_of { strand.await }
      assert_equal [Ringspun::Cancelled] * 3, errors
      machine.write(writer, "untouched")
      assert_equal "untouched", read_exactly(reader, 9)
    end
  end

  def test_a_descriptor_closed_while_its_waiter_is_cancelled
    on_machine do |machine|
      reader, = make_pipe
      strand = waiting(/read/) { machine.read(reader, +"") }
      machine.terminate(strand)
      close(reader)
      assert_raises(Ringspun::TerminatedError) { strand.await }
      assert_nothing_in_flight
    end
  end

  private

  def make_scene(machine)
    reader, kept = make_pipe
    _, full = make_pipe
    fill(full)
    silent, = make_socketpair
    deaf, = make_socketpair
    fill(deaf)
    machine.statx(kept)
    Scene.new(machine, reader, full, silent, deaf, make_listener.first, +"kept")
  end

  def make_listener
    listener = make_socket(:UNIX, :STREAM)
    # A name that begins with NUL stands in no folder.
    address = Socket.sockaddr_un("\0ringspun-test-#{Process.pid}-#{@listeners = @listeners.to_i + 1}")
    @machine.bind(listener, address)
    @machine.listen(listener)
    [listener, address]
  end

  # Nothing of what was waited for has changed, and the buffer is its owner's again.
  def assert_untouched(scene)
    assert_equal 4, scene.buffer.size
    assert_equal "kept", scene.buffer if undisturbed?
    refute_locked(scene.buffer)
  end

  def end_by_timeout(machine, &operation)
    error = assert_raises(Ringspun::TimeoutError) { machine.timeout(0.002, &operation) }
    assert_match(/0.002/, error.message)
  end

  def end_by_deadline(machine, &operation)
    assert_raises(Ringspun::TimeoutError) do
      machine.scope(deadline: 0.002) { |scope| scope.spin(&operation).await }
    end
  end

  def end_by_terminate(machine, &operation)
    strand = waiting(/on descriptor/, &operation)
    machine.terminate(strand)
    assert_raises(Ringspun::TerminatedError) { strand.await }
  end

  def end_by_scope(machine, &operation)
    strand = nil
    machine.scope do |scope|
      strand = scope.spin(&operation)
      until_waits(strand, /on descriptor/)
      scope.cancel
    end
    refute_predicate strand, :alive?
  end

  def end_by_exception(machine, &operation)
    strand = waiting(/on descriptor/, &operation)
    machine.schedule(strand, IndexError.new("told"))
    assert_equal "told", assert_raises(IndexError) { strand.await }.message
  end
end

class CancelTest < IOCase
  include CancelTests

  # The bytes and the deadline come to the same turn of the loop: once the bytes are there before it, and once they come
  # from a strand that the same turn makes ready, after the deadline was seen.
  def test_a_timeout_that_fires_as_the_read_completes
    on_machine do |machine|
      reader, writer = make_pipe
      bytes = IO.for_fd(writer, autoclose: false)
      soon = GCStress::WANTED ? 0.5 : 0.0005
      outcomes = amount(100).times.map do |round|
        string = +""
        taken = nil
        # For its read, or it is over already: others may have kept the thread as long.
        strand = waiting(/read|schedule/) do
          due = machine.now + soon
          outcome = error_of { machine.timeout(soon) { taken = machine.read(reader, string) } }
          assert_operator machine.now, :>=, due if outcome
          assert_equal outcome.nil?, taken == 1
          # The wait after it waits for what it asked for, and ends by nothing else.
          [outcome&.class, machine.park]
        end
        other = waiting { machine.sleep(soon / 2).then { bytes.syswrite("x") } } if round.odd?
        due = machine.now + soon
        nil while machine.now < due # and nobody else has a turn
        bytes.syswrite("x") if round.even?
        other&.join
        until_waits(strand, /suspend|schedule|park/i)
        assert_equal "x", taken ? string : read_exactly(reader, 1), "the byte is delivered, or still there"
        machine.schedule(strand, :mine)
        outcome, value = strand.await
        assert_equal :mine, value
        outcome
      end
      assert_equal [nil, Ringspun::TimeoutError], outcomes.uniq.sort_by(&:to_s)
    end
  end

  def test_a_timeout_that_does_not_fire_leaves_nothing_behind
    on_machine do |machine|
      reader, writer = make_pipe
      strand = spin do
        machine.timeout(1) { machine.write(writer, "x") }
        machine.read(reader, +"")
        machine.read(reader, +"") # past that timeout
      end
      until_waits(strand, /read/)
      machine.sleep(1.01)
      assert_equal :parked, strand.state
      machine.write(writer, "y")
      assert_equal 1, strand.await
    end
  end

  def test_a_connect_that_waits_can_be_given_up
    on_machine do |machine|
      listener = make_socket(:INET, :STREAM)
      machine.bind(listener, Socket.sockaddr_in(0, "127.0.0.1"))
      machine.listen(listener, 0)
      address = Socket.for_fd(listener).tap { |socket| socket.autoclose = false }.getsockname
      # One connection fits; who comes later gets no answer.
      hanging = Array.new(4) { spin { machine.connect(make_socket(:INET, :STREAM), address) } }
      hanging.each { |strand| machine.yield while strand.state == :new }
      machine.sleep(0.01)
      hanging.select!(&:alive?)
      refute_empty hanging
      hanging.each { |strand| assert_match(/connect on descriptor/, strand.waits_for) }
      hanging.each { |strand| machine.terminate(strand) }
      hanging.each { |strand| assert_raises(Ringspun::TerminatedError) { strand.await } }
      assert_nothing_in_flight
    end
  end
end

class SimulatedCancelTest < IOCase
  include Simulated
  include CancelTests

  # Cancellations that race with completions, as the seed draws them.
  def test_reads_under_timeouts_lose_no_byte
    amount(200).times do |seed|
      Ringspun::Simulation.run(seed: seed) do |machine|
        reader, writer = machine.pipe
        random = Random.new(seed)
        sent = Array.new(40) { |i| (97 + (i % 26)).chr * random.rand(1..5) }.join
        producer = machine.spin do
          left = sent.dup
          until left.empty?
            machine.write(writer, left.slice!(0, random.rand(1..8)))
            machine.sleep(random.rand * 0.003)
          end
          machine.close(writer)
        end
        received = +""
        ended = false
        until ended
          string = +""
          begin
            count = machine.timeout(random.rand * 0.003) { machine.read(reader, string, 4) }
            ended = count.zero?
            received << string
          rescue Ringspun::TimeoutError
            assert_empty string, "seed #{seed}: a read that was cancelled has changed its String"
          end
          machine.sleep(random.rand * 0.001) if random.rand < 0.2
        end
        producer.await
        machine.close(reader)
        assert_equal sent, received, "seed #{seed}"
      end
    end
  end

  # The byte is written in the moment of the deadline; the seed draws who comes first, and whether anything is late.
  def test_a_timeout_that_fires_as_the_read_completes
    outcomes = amount(200).times.map do |seed|
      Ringspun::Simulation.run(seed: seed) do |machine|
        reader, writer = machine.pipe
        machine.spin { machine.sleep(0.0005).then { machine.write(writer, "x") } }
        string = +""
        outcome = error_of { machine.timeout(0.0005) { machine.read(reader, string) } }&.class
        before = machine.now
        machine.sleep(0.25)
        assert_in_delta 0.25, machine.now - before, 1e-8, "seed #{seed}: the wait after it"
        machine.read(reader, string) if outcome
        assert_equal "x", string, "seed #{seed}: the byte is delivered, or still there"
        [reader, writer].each { |descriptor| machine.close(descriptor) }
        outcome
      end.value
    end
    assert_equal [nil, Ringspun::TimeoutError], outcomes.uniq.sort_by(&:to_s)
  end

  # A worker goes on with what its strand gave up; there are only so many of those.
  def test_openings_given_up_again_and_again
    Thread.new do
      machine = Ringspun::Machine.new(backend: :sim, strands_max: 2, seed: 1,
                                      faults: { offload: 1.0, delay: 1.0, delay_max: 10 })
      open_before = machine.__send__(:sim_open_descriptors)
      given_up = amount(300).times.count do
        error_of { machine.timeout(0.0000001) { machine.open("file", "w") } }.instance_of?(Ringspun::TimeoutError)
      end
      assert_equal amount(300), given_up
      machine.sleep(100)
      assert_equal 0, machine.metrics[:ops_in_flight]
      machine.close(machine.open("file"))
      assert_equal open_before, machine.__send__(:sim_open_descriptors), "what was opened for nobody is closed again"
    ensure
      machine&.close
    end.tap { |thread| thread.report_on_exception = false }.join
  end

  def test_accepts_under_timeouts_lose_no_connection
    amount(100).times do |seed|
      result = Ringspun::Simulation.run(seed: seed) do |machine|
        random = Random.new(seed)
        listener = machine.socket(:UNIX, :STREAM)
        address = Socket.sockaddr_un("server")
        machine.bind(listener, address)
        machine.listen(listener)
        clients = Array.new(10) do
          machine.spin do
            client = machine.socket(:UNIX, :STREAM)
            machine.sleep(random.rand * 0.01)
            machine.connect(client, address)
            machine.read(client, +"")
            machine.close(client)
          end
        end
        served = 0
        until served == 10
          begin
            machine.close(machine.timeout(random.rand * 0.003) { machine.accept(listener) })
            served += 1
          rescue Ringspun::TimeoutError
            nil
          end
        end
        machine.join(*clients)
        machine.close(listener)
      end
      assert_equal 0, result.open_descriptors, "seed #{seed}"
    end
  end
end
