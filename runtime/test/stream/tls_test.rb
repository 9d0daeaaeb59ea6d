# frozen_string_literal: true

require "open3"
require "tmpdir"
require_relative "tls_case"
require_relative "read_test"

# TLS sessions: what a stream makes of them beside what all streams do.
class TLSTest < TLSCase
  FIONREAD = 0x541b

  def test_a_peer_whose_bytes_come_one_by_one
    on_machine do
      one, two = make_watched
      one.write(StreamReadTests::TEXT)
      one.close_write
      assert_equal StreamReadTests::APART, StreamReadTests.take_apart(two)
      two.write_line("answer")
      assert_equal "answer", one.read_line
      end_carriers
    end
  end

  # Whatever somebody does to the bytes, what is read is what was written, or an error.
  def test_bytes_that_were_changed_on_their_way
    on_machine do
      changing = false
      one, two = make_watched { |byte| changing ? (byte.getbyte(0) ^ 1).chr : byte }
      assert_equal("before", spin { two.read_line }.tap { one.write_line("before") }.await)
      changing = true
      one.write_line("after")
      2.times { assert_match(/read_line: /, assert_raises(Ringspun::TLSSessionError) { two.read_line }.message) }
      end_carriers
    end
  end

  # Also where its last reads had to wait, so that the next one would rather wait first.
  def test_bytes_that_are_there_come_to_a_cancelled_strand
    on_machine do |machine|
      (1..6).each do |count|
        one, two = make_streams
        lines = []
        strand = spin do
          count.times { lines << two.read_line }
          machine.sleep
        ensure
          lines << two.read_line
        end
        count.times do |number|
          machine.yield until lines.size == number # or it still waits for what has come
          until_waits(strand, /recv/)
          send_all(one, "#{number}\n")
        end
        until_waits(strand, /time/)
        send_all(one, "last\n")
        machine.terminate(strand)
        assert_instance_of Ringspun::TerminatedError, error_of { strand.await }
        assert_equal [*(0...count).map(&:to_s), "last"], lines
      end
    end
  end

  # Whoever is in between may end the connection, but not the session.
  def test_a_connection_that_is_cut
    on_machine do
      one, two = make_watched
      one.write("line\nlast, and mo")
      assert_equal "line", two.read_line
      assert_equal "last", two.read(4)
      end_carriers
      @kept.each { |descriptor| @machine.shutdown(descriptor, :WR) }
      %i[read read_line].each { |call| assert_raises(Ringspun::TruncatedStreamError) { two.public_send(call) } }
      assert_match(/close_notify/, assert_raises(Ringspun::TruncatedStreamError) { two.peek(100) }.message)
      assert_equal ", and mo", two.read_partial
      assert_raises(Ringspun::TruncatedStreamError) { two.eof? }
    end
  end

  def test_a_descriptor_that_is_closed_without_an_end_of_the_session
    on_machine do |machine|
      one, two = make_streams
      two.write_line("hello")
      assert_equal "hello", one.read_line
      machine.close(one.to_io)
      assert_raises(Ringspun::TruncatedStreamError) { two.read_line }
      assert_raises(Ringspun::ClosedError) { one.read_line }
      assert_raises(Ringspun::ClosedError) { one.close }
    end
  end

  # The tickets of its server are what it has not read.
  def test_a_connection_that_is_reset
    on_machine do |machine|
      one, two = make_streams
      machine.close(one.to_io)
      2.times { assert_raises(Errno::ECONNRESET) { two.read_line } }
      two.write("x")
      assert_raises(Errno::ECONNRESET) { two.flush }
      assert_raises(Ringspun::ClosedError) { one.close }
    end
  end

  # It may have said why.
  def test_what_the_other_side_has_said_before_it_went_away_can_be_read
    on_machine do
      one, two = make_streams
      writer = waiting { one.write(sample(LARGE)) }
      two.write_line("too much")
      two.close
      assert_raises(Errno::EPIPE, Errno::ECONNRESET) { writer.await }
      assert_equal "too much", one.read_line
    end
  end

  def test_who_selects_hears_of_what_another_strand_has_left
    on_machine do
      one, two = make_streams
      selecting = waiting { Ringspun.select(one) }
      two.write("x")
      two.flush
      assert_raises(Ringspun::TimeoutError) { one.peek(2, timeout: 0.01) }
      @machine.timeout(5) { selecting.join }
      assert_equal "x", one.read(1)
    end
  end

  def test_both_directions_are_closed_one_after_the_other
    on_machine do
      one, two = make_streams
      two.close_write
      assert_equal "", one.read
      one.write_line("still")
      assert_equal "still", two.read_line
      one.close_write
      assert_predicate two, :eof?
      [one, two].each { |stream| assert_nil stream.close }
    end
  end

  # Who has read everything and is gone wants no goodbye.
  def test_the_other_side_has_closed_before
    on_machine do
      one, two = make_streams
      two.write_line("last")
      assert_equal "last", one.read_line
      one.close
      assert_nil two.close
    end
  end

  # It cannot even take the goodbye.
  def test_it_is_closed_while_the_other_side_does_not_read
    on_machine do |machine|
      one, two = make_streams
      two.write_line("hello")
      assert_equal "hello", one.read_line
      writer = waiting { one.write(sample(LARGE)) }
      machine.terminate(writer)
      assert_raises(Ringspun::TimeoutError) { one.close_write(timeout: 0.01) }
      assert_raises(Ringspun::TimeoutError) { one.close(timeout: 0.01) }
      assert_raises(Ringspun::TruncatedStreamError) { two.read }
    end
  end

  def test_much_in_both_directions_at_once
    on_machine do
      streams = make_streams
      texts = [sample(1_000_000, 1), sample(1_000_000, 2)]
      writers = streams.zip(texts).map { |stream, text| spin { stream.write(text) && stream.close_write } }
      readers = streams.map { |stream| spin { stream.read } }
      await_all(writers)
      await_all(readers).zip(texts.reverse) { |got, expected| assert_bytes expected, got }
    end
  end

  # The server has sent tickets, which such a client never reads. Left there they would have the kernel drop what it has not sent.
  def test_a_client_that_only_writes_and_closes
    go = Ringspun::Queue.new
    received = nil
    handler = lambda do |stream|
      go.pop
      received = stream.read
    end
    on_server(IDENTITY, handler) do |server, machine|
      connect(server, TRUST, high_water: LARGE) do |stream|
        stream.write(sample(1_000_000))
        machine.poll(stream.to_io, :readable) # the tickets
        go.push(true)
      end
    end
    assert_bytes sample(1_000_000), received
  end

  # Nor has the server sent them yet when that one closes.
  def test_a_client_that_only_writes_and_closes_at_once
    received = nil
    on_server(IDENTITY, ->(stream) { received = stream.read }) do |server|
      connect(server, TRUST, high_water: LARGE) { |stream| stream.write(sample(1_000_000)) }
      server.stop
    end
    assert_bytes sample(1_000_000), received
  end

  # The kernel has everything that was written, and no room for the goodbye.
  def test_the_end_of_the_session_waits_for_room
    on_machine do |machine|
      one, two = make_streams
      machine.terminate(waiting { one.write(sample(LARGE)) })
      two.to_io.ioctl(FIONREAD, waits = [0].pack("i"))
      records = waits.unpack1("i") / 16_384 # which are somewhat longer than what is in them
      one, two = make_streams(high_water: LARGE)
      one.write(sample(records * 16_384))
      one.flush(timeout: 1)
      closing = waiting(/poll/) { one.close_write }
      assert_equal records * 16_384, two.read(timeout: 10).bytesize
      closing.join
    end
  end

  # They cannot go by the kernel's short way.
  def test_what_is_passed_on_is_decrypted_and_encrypted
    on_machine do
      (one, two), (three, four) = make_streams, make_streams
      passing = spin { two.copy_to(three) }
      reading = spin { four.read(100_000) }
      one.write(sample(100_000))
      one.close_write
      assert_equal 100_000, passing.await
      assert_bytes sample(100_000), reading.await
    end
  end

  def test_a_forked_child_cannot_use_the_parents_session
    on_machine do
      one, two = make_streams
      pid = fork do
        errors = [error_of { one.read_line }, error_of { one.write("x").then { one.flush } }]
        one.close
        exit!(errors.all?(Ringspun::TLSSessionError) ? 0 : 1)
      end
      assert_predicate Process.wait2(pid).last, :success?
      one.write_line("parent")
      assert_equal "parent", two.read_line
      one.close
      assert_nil two.read_line
    end
  end

  def test_a_stream_that_the_collector_moves_and_one_that_nobody_holds
    on_machine do
      one, two = make_streams
      one.write("x" * 1_000)
      20.times { make_streams }
      GC.verify_compaction_references(expand_heap: true, toward: :empty)
      assert_equal 1_000, two.read(1_000).bytesize
      assert_equal "TLSv1.3", two.tls.version
    end
  end

  # --- over what somebody else has made ---

  # An SSLSocket of the stock library at the other end, in a thread.
  def with_stock_peer(bytes = nil)
    mine, theirs = UNIXSocket.pair
    peer = Thread.new do
      socket = OpenSSL::SSL::SSLSocket.new(theirs, Certificate.server_context).accept
      bytes ? socket.write(bytes) : socket.write(socket.gets)
      socket.close
    end
    socket = OpenSSL::SSL::SSLSocket.new(mine, Certificate.client_context)
    socket.hostname = "localhost"
    yield socket
  ensure
    peer.join
    [mine, theirs].each(&:close)
  end

  def test_a_session_of_the_stock_library
    with_stock_peer do |socket|
      on_machine do
        socket.connect
        stream = keep_stream(Ringspun::Stream.new(socket))
        assert_same socket.to_io, stream.to_io
        assert_equal "hello", ask(stream, "hello")
        assert_nil stream.read_line
        stream.close
        assert_predicate socket, :closed?
      end
    end
  end

  def test_what_the_stock_library_has_read_ahead_is_there
    with_stock_peer("one\ntwo\nthree\n") do |socket|
      on_machine do
        socket.connect
        assert_equal "one\n", socket.gets
        stream = keep_stream(Ringspun::Stream.new(socket))
        assert_equal %w[two three], stream.each_line.to_a
      end
    end
  end

  def test_a_stock_socket_before_its_handshake
    one, other = UNIXSocket.pair
    socket = OpenSSL::SSL::SSLSocket.new(one, Certificate.client_context)
    error = assert_raises(Ringspun::UsageError) { Ringspun::Stream.new(socket) }
    assert_match(/handshake is not done; call/, error.message)
  ensure
    [one, other].each(&:close)
  end

  # Which comes together with what was encrypted by the new key.
  def test_the_other_side_changes_its_key
    on_machine do
      client, server = UNIXSocket.pair
      serving = spin { echo(keep_stream(Ringspun::Stream.new(server)).accept_tls(IDENTITY)) }
      socket = OpenSSL::SSL::SSLSocket.new(client, Certificate.client_context)
      socket.hostname = "localhost"
      assert_silent { socket.connect }
      update_key = key_updater(socket)
      %w[one two three].each do |word|
        update_key.call
        socket.write_nonblock("#{word}\n")
        assert_equal "#{word}\n", socket.gets
      end
      socket.close
      client.close
      serving.await
    end
  end

  # By libssl, for the openssl gem knows nothing of it.
  def key_updater(socket)
    Dir.mktmpdir do |folder|
      library = File.join(folder, "key_update.so")
      includes = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |path| "-I#{path}" }
      told, status = Open3.capture2e("gcc", *includes, "-shared", "-fPIC", "-o", library, File.join(__dir__, "key_update.c"))
      assert_predicate status, :success?, told
      require library
    end
    libssl = File.read("/proc/self/maps")[%r{/\S*/libssl\.so\S*}]
    -> { assert_equal 1, KeyUpdate.request(socket, libssl) }
  end

  # --- in the middle of a stream ---

  def begin_tls(stream) = stream.start_tls(TRUST, host: "localhost")
  def plain_streams = @machine.socketpair.map { |descriptor| keep_stream(Ringspun::Stream.new(descriptor)) }

  def test_a_stream_that_begins_in_clear_text
    on_machine do
      client, server = plain_streams
      serving = spin do
        server.write_line("go ahead") if server.read_line == "STARTTLS"
        echo(server.accept_tls(IDENTITY))
      end
      assert_equal "go ahead", ask(client, "STARTTLS")
      assert_nil client.tls
      assert_same client, client.start_tls(TRUST, host: "localhost")
      assert_equal "secret", ask(client, "secret")
      assert_match(/\A#<Ringspun::Stream over TLSv1.3 on #<Socket/, client.inspect)
      assert_match(/speaks TLS already/, assert_raises(Ringspun::UsageError) { begin_tls(client) }.message)
      client.close
      serving.join
    end
  end

  def test_bytes_before_the_handshake_are_refused
    on_machine do
      client, server = plain_streams
      server.write("go ahead\ninjected\n")
      assert_equal "go ahead", client.read_line
      error = assert_raises(Ringspun::EarlyBytesError) { client.start_tls(TRUST, host: "localhost") }
      assert_match(/\A9 bytes came in clear text that nobody has read/, error.message)
      assert_equal "injected", client.read_line
    end
  end

  def test_others_wait_until_the_handshake_is_done
    on_machine do
      client, server = plain_streams
      reader = waiting(/recv/) { client.read_line }
      assert_match(/another strand reads/, assert_raises(Ringspun::UsageError) { begin_tls(client) }.message)
      server.write_line("x")
      assert_equal "x", reader.await
      shaking = waiting(/poll/) { begin_tls(client) }
      [-> { client.read_line }, -> { client.write("x") }, -> { begin_tls(client) }].each do |call|
        assert_match(/another strand is at the/, assert_raises(Ringspun::UsageError, &call).message)
      end
      client.close
      assert_raises(Ringspun::ClosedError) { shaking.await }
    end
  end

  def test_what_cannot_speak_tls
    on_machine do
      _, writer = make_pipe
      stream = Ringspun::Stream.new(writer)
      assert_raises(Ringspun::UnsupportedError) { stream.start_tls(TRUST, host: "localhost") }
      refute_predicate stream, :closed?
    end
    Ringspun::Simulation.run do |machine|
      streams = machine.socketpair.map { |descriptor| Ringspun::Stream.new(descriptor) }
      assert_raises(Ringspun::UnsupportedError) { begin_tls(streams.first) }
      streams.each(&:close)
    end
  end
end
