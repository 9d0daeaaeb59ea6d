# frozen_string_literal: true

# stream io: ring

require_relative "hook_case"

# Reads and writes of stock IO objects on what can be waited for.
class SchedulerStreamsTest < HookCase
  # What reads `chunks`, written one by one while it waits, and what it answers then; the stream is closed behind them.
  READS = {
    "read_of_a_length" => [->(io) { io.read(6) }, %w[abc def], "abcdef"],
    "read_to_the_end" => [:read.to_proc, %w[abc def], "abcdef"],
    "readpartial" => [->(io) { io.readpartial(10) }, %w[abc], "abc"],
    "sysread" => [->(io) { io.sysread(10) }, %w[abc], "abc"],
    "gets" => [:gets.to_proc, ["one\n"], "one\n"],
    "getc" => [:getc.to_proc, ["ä"], "ä"],
    "readbyte" => [:readbyte.to_proc, %w[a], 97],
    "each_line" => [->(io) { io.each_line(chomp: true).to_a }, ["one\ntw", "o\n"], %w[one two]],
    "readlines" => [:readlines.to_proc, ["one\n", "two"], ["one\n", "two"]],
    "eof" => [->(io) { [io.eof?, io.getc] }, %w[a], [false, "a"]]
  }.freeze

  each_stream do |name, on|
    READS.each do |method, (read, chunks, expected)|
      define_method("test_#{method}#{on}") do
        Ringspun.run do
          reader, writer = stream(name)
          reader.set_encoding(Encoding::UTF_8)
          strand = waiting(/on descriptor #{reader.fileno}/) { read.call(reader) }
          chunks.each { |chunk| writer.write(chunk) && settle }
          writer.close
          assert_equal expected, strand.await
        end
        assert_nothing_in_flight
      end
    end

    define_method("test_the_end#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        strand = waiting { [reader.read(3), reader.gets, reader.read, error_of { reader.sysread(1) }.class] }
        writer.close
        assert_equal [nil, nil, "", EOFError], strand.await
      end
    end

    define_method("test_a_large_write#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        bytes = sample(amount(LARGE))
        strand = machine.spin { writer.write(bytes).tap { writer.close } }
        assert_bytes bytes, reader.read
        assert_equal bytes.bytesize, strand.await
      end
      assert_nothing_in_flight
    end

    define_method("test_a_write_waits_for_room#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        strand = waiting(/on descriptor #{writer.fileno}/) do
          [writer.write("x" * LARGE * 3), writer.write("one", "two"), writer.close]
        end
        assert_bytes "#{"x" * LARGE * 3}onetwo", reader.read
        assert_equal [LARGE * 3, 6, nil], strand.await
      end
    end

    define_method("test_puts_of_nothing#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        strand = waiting { reader.read }
        writer.puts ""
        writer.puts nil
        writer.print ""
        assert_equal [0, 0, 0], [writer.write(""), writer.write, writer.syswrite("")]
        writer.close
        assert_equal "\n\n", strand.await
      end
    end

    define_method("test_epipe#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        reader.close
        error = error_of { 10.times { writer.write("Hello") } }
        assert_includes [Errno::EPIPE, Errno::ECONNRESET], error.class
      end
    end

    define_method("test_epipe_while_a_write_waits#{on}") do
      Ringspun.run do
        reader, writer = stream(name)
        strand = waiting { writer.write("x" * LARGE * 3) }
        reader.close
        assert_includes [Errno::EPIPE, Errno::ECONNRESET], error_of { strand.join }.class
      end
      assert_nothing_in_flight
    end
  end

  def test_two_strands_talk
    Ringspun.run do
      one, other = pair
      echo = machine.spin { other.each_line { |line| other.puts(line.chomp.upcase) } }
      answers = Array.new(amount(200)) { |i| one.puts("line #{i}") || one.gets }
      one.close_write
      assert_equal(Array.new(amount(200)) { |i| "LINE #{i}\n" }, answers)
      echo.await
    end
  end

  def test_what_is_pushed_back_is_read_without_waiting
    Ringspun.run do
      reader, writer = pipe
      reader.ungetc("back")
      assert_equal "back", reader.read(4)
      strand = waiting { reader.gets }
      writer.write("li")
      settle
      writer.write("ne\nmore")
      assert_equal "line\n", strand.await
      reader.ungetbyte(0x41)
      assert_equal "Amore", reader.readpartial(100)
    end
  end

  def test_sysread_and_syswrite_wait
    Ringspun.run do
      reader, writer = pipe
      strand = waiting(/read/) { reader.sysread(3) }
      assert_equal 5, writer.syswrite("bytes")
      assert_equal "byt", strand.await
      fill(writer)
      strand = waiting { writer.syswrite("y" * 10) }
      reader.readpartial(65_536)
      assert_operator strand.await, :>, 0
    end
  end

  # Where nothing but the scheduler stands between, one call writes it all.
  def test_syswrite_to_what_blocks_is_whole
    Ringspun.run do
      reader, writer = stream("blocking_pipe")
      bytes = sample(400_000)
      strand = waiting { writer.syswrite(bytes).tap { writer.close } }
      assert_bytes bytes, reader.read
      assert_equal bytes.bytesize, strand.await
    end
  end

  def test_a_buffered_writer_flushes_at_its_end
    answer = child(<<~'RUBY')
      $stdout.sync = false
      Ringspun.run do
        Fiber.schedule { print "a"; sleep 0.001; print "b" }
        print "c"
      end
      print "d"
    RUBY
    assert_equal ["acbd", ""], [answer.out, answer.err]
  end

  # By the address: Ruby 3.4 looks a name up on two threads, of which one may still have a socket when the other has answered
  # (do_fast_fallback_getaddrinfo in ext/socket/raddrinfo.c).
  def test_accept_and_connect
    Ringspun.run do
      server, = keep(TCPServer.new("127.0.0.1", 0))
      served = waiting(/poll on descriptor #{server.fileno}/) { server.accept.tap { |socket| socket.write("hello") }.close }
      client, = keep(TCPSocket.new("127.0.0.1", server.local_address.ip_port))
      assert_equal "hello", client.read
      served.await
    end
  end

  def test_messages
    Ringspun.run do
      one, other = keep(*UNIXSocket.pair(:DGRAM))
      strand = waiting { [other.recv(10), other.recvmsg.first] }
      one.send("first", 0)
      one.sendmsg("second")
      assert_equal %w[first second], strand.await
    end
  end

  def test_reads_of_a_message_socket_take_one_each
    Ringspun.run do
      one, other = keep(*UNIXSocket.pair(:SEQPACKET))
      strand = waiting { Array.new(3) { other.sysread(100) } }
      %w[a bb ccc].each { |message| one.syswrite(message) }
      assert_equal %w[a bb ccc], strand.await
    end
  end

  def test_wait_readable_and_wait_writable
    Ringspun.run do
      reader, writer = pipe
      assert_same writer, writer.wait_writable
      assert_nil reader.wait_readable(0)
      assert_nil reader.wait_readable(0.001)
      strand = waiting(/poll/) { [reader.wait_readable, reader.wait(IO::READABLE | IO::PRIORITY, 10)] }
      writer.write("x")
      assert_equal [reader, IO::READABLE], strand.await
    end
  end

  def test_an_end_or_an_error_ends_a_wait
    Ringspun.run do
      reader, writer = pipe
      strand = waiting { reader.wait_readable }
      writer.close
      assert_same reader, strand.await
      reader, writer = pipe
      fill(writer)
      strand = waiting { writer.wait_writable }
      reader.close
      assert_same writer, strand.await
    end
  end

  # One read too few or a guess too many, and somebody waits for what has come.
  def test_short_reads_leave_no_false_hint
    Ringspun.run do
      %w[socketpair tcp].each do |name|
        reader, writer = stream(name)
        amount(100).times do |i|
          writer.write("abc")
          assert_equal "abc", reader.readpartial(100 + i)
          writer.write("de")
          assert_equal "de", reader.read_nonblock(100), "what has come is there, whatever was left before"
          assert_equal :wait_readable, reader.read_nonblock(1, exception: false)
        end
      end
    end
  end

  def test_a_thread_that_computes_stops_nobody
    running = true
    counter = 0
    thread = Thread.new { counter += 1 while running }
    Ringspun.run do
      one, other = pair
      echo = machine.spin { other.write(other.readpartial(10)) until other.eof? }
      machine.sleep(0.001) until counter.positive?
      before = counter
      10.times do |round|
        # Both go on: neither of the two may have to wait for the other's end.
        1.step do |i|
          one.write(i.to_s)
          assert_equal i.to_s, one.read(i.to_s.bytesize)
          break if counter > before + round
        end
      end
      one.close_write
      echo.await
    end
  ensure
    running = false
    thread.join
  end

  # Larger than what the machine has ready for what comes.
  def test_messages_stay_apart
    %i[DGRAM SEQPACKET].each do |type|
      Ringspun.run do
        reader, writer = keep(*UNIXSocket.pair(type))
        strand = waiting { Array.new(2) { reader.readpartial(65_536) } }
        messages = ["A" * 20_000, "B" * 3_000].each { |message| writer.send(message, 0) }
        assert_equal messages, strand.await
      end
    end
  end

  # The kernel gives it up, long before the timeout that the IO has.
  def test_a_connection_that_times_out_by_itself
    server = TCPServer.new("127.0.0.1", 0)
    client = TCPSocket.new("127.0.0.1", server.addr[1])
    peer = server.accept
    client.timeout = 1000
    client.setsockopt(:TCP, Socket::TCP_USER_TIMEOUT, 50)
    Ringspun.run do
      nil until client.write_nonblock("x" * 100_000, exception: false) == :wait_writable
      assert_raises(Errno::ETIMEDOUT) { client.readpartial(1) }
    end
  ensure
    [server, client, peer].each(&:close)
  end
end
