# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "support/scripted_server"
require "support/seeds"

# COPY with a server that says what a test has it say, on a simulated machine whose clock jumps: cut at every byte of what either
# side says, late, silent, and wrong.
class CopyScriptedTest < Minitest::Test
  Postgres = Ringspun::Postgres

  def self.message(type, body = "") = "#{type}#{[body.bytesize + 4].pack("N")}#{body}".b

  GREETING = [message("R", [0].pack("N")), message("K", [1, 2].pack("NN")), message("Z", "I")].join.freeze
  PARSED = [message("1"), message("t", [0].pack("n")), message("n"), message("2")].join.freeze
  DESCRIBED = [message("1"), message("t", [0].pack("n")),
               message("T", [2, "a", 0, 0, 25, -1, -1, 0, "b", 0, 0, 23, 4, -1, 0].pack("nZ*NnNs>l>nZ*NnNs>l>n"))].join.freeze
  READY = message("Z", "I").freeze
  GOES_IN = (PARSED + message("G", [0, 2, 0, 0].pack("Cnnn"))).freeze
  COMPLETE = message("C", "COPY 2\0").freeze
  LINES = ["a\\tb\t1\n", "\\N\t2\n"].freeze
  GOES_OUT = (PARSED + message("H", [0, 2, 0, 0].pack("Cnnn")) + LINES.map { |line| message("d", line) }.join +
              message("c") + COMPLETE).freeze
  IN = "copy t (a, b) from stdin"
  OUT = "copy t (a, b) to stdout"
  ROWS = [["a\tb", 1], [nil, 2]].freeze
  LOST = [Postgres::ConnectionLost, Postgres::ConnectError].freeze

  # A server for one COPY after the other. `out_max` and `in_max`: bytes until it ends, of what it says and of what it hears after
  # its greeting; `step`: so many at once.
  class Server
    attr_reader :heard, :ends, :in_left

    def initialize(machine, out_max: nil, in_max: nil, step: nil, says: {})
      @machine = machine
      @out_left = out_max
      @in_left = in_max
      @step = step
      @says = says
      @heard = "".b
      @ends = []
      @strands = []
      @owns = {}.compare_by_identity
      @listener = machine.socket(:UNIX, :STREAM)
      machine.bind(@listener, Addrinfo.unix(ScriptedServer::ADDRESS))
      machine.listen(@listener)
      @accepting = machine.spin { loop { serve(Ringspun::Stream.new(machine.accept(@listener))) } }
    end

    def close
      [*@strands, @accepting].each do |strand|
        strand.terminate
        strand.await
      rescue Ringspun::TerminatedError
        nil
      end
      @machine.close(@listener)
    end

    private

    Cut = Class.new(StandardError)
    private_constant :Cut

    def serve(stream)
      @strands << @machine.spin do
        body = stream.read(stream.read(4).unpack1("N") - 4)
        talk(stream) unless body.unpack1("N") == ScriptedServer::CANCEL
      rescue Cut, Ringspun::Error, SystemCallError, NoMethodError
        nil # the client has gone, or is to lose it
      ensure
        hang_up(stream)
      end
    end

    def hang_up(stream)
      stream.close(timeout: 0)
    rescue Ringspun::Error, SystemCallError
      nil # something had not left
    end

    # What a connection knows, whose strand asks.
    Own = Struct.new(:stream, :sql, :waits)
    private_constant :Own

    def own = @owns[@machine.running] ||= Own.new

    def talk(stream)
      stream.write(GREETING)
      own.stream = stream
      loop { take(*message) }
    end

    def message
      type, len = read(5).unpack("aN")
      [type, len > 4 ? read(len - 4) : ""]
    end

    def read(len)
      raise Cut if @in_left && @in_left < len

      bytes = own.stream.read(len) or raise Cut
      @in_left -= len if @in_left
      bytes
    end

    def say(bytes)
      return if bytes.empty?

      bytes = bytes.byteslice(0, @out_left) if (cut = @out_left && bytes.bytesize >= @out_left)
      @out_left -= bytes.bytesize if @out_left
      pieces = @step ? bytes.scan(/.{1,#{@step}}/mn) : [bytes]
      pieces.each do |piece|
        own.stream.write(piece)
        @machine.sleep(0.001) if @step
      end
      own.stream.flush
      raise Cut if cut
    end

    # The flights of a COPY: Parse to Flush, the rows, CopyDone and Sync. A server that waits for rows passes over a Sync.
    def take(type, body)
      case type
      when "P" then own.sql = body.split("\0")[1]
      when "H" then begin_copy
      when "d" then take_row(body)
      when "c" then end_copy(:done, @says.fetch(:done, COMPLETE))
      when "f" then end_copy(:failed, CopyScriptedTest.message("E", "SERROR\0C57014\0MCOPY failed\0\0"))
      when "S" then say((own.sql.start_with?("select") ? DESCRIBED : "") + READY) unless own.waits
      when "Q" then say(CopyScriptedTest.message("I") + READY)
      when "X" then raise Cut
      end
    end

    def begin_copy
      own.waits = own.sql == IN && !@says[:begin]
      say(@says.fetch(:begin) { own.sql == OUT ? GOES_OUT : GOES_IN })
    end

    def take_row(body)
      @heard << body
      own.waits &&= !@says[:row]
      say(@says.fetch(:row, ""))
    end

    def end_copy(how, says)
      @ends << how
      own.waits = false
      say(says)
    end
  end

  def on_server(max: 1, **)
    Ringspun::Simulation.run(faults: false) do |machine|
      server = Server.new(machine, **)
      pool = Postgres::Pool.new(ScriptedServer::URL, max:)
      yield pool, server, machine
      assert_equal [0, 0], [pool.metrics[:waiting], pool.metrics[:connections] - pool.metrics[:idle]]
    ensure
      pool&.close
      server&.close
    end
  end

  def copy_in(pool) = pool.copy_in(IN, ROWS, timeout: 60)
  def copy_out(pool) = pool.copy_out(OUT, timeout: 60).to_a

  def test_both_ways
    on_server do |pool, server|
      assert_equal [2, ROWS], [copy_in(pool), copy_out(pool)]
      assert_equal [LINES.join, [:done]], [server.heard, server.ends]
    end
  end

  def test_what_the_server_says_comes_byte_by_byte
    [1, 2, 3, 7].each do |step|
      on_server(step:) { |pool, server| assert_equal [2, ROWS, LINES.join], [copy_in(pool), copy_out(pool), server.heard] }
    end
  end

  BEGUN = (DESCRIBED + READY + GOES_IN).bytesize
  SAID_IN = (DESCRIBED + READY + GOES_IN + COMPLETE + READY).bytesize
  SAID_OUT = (DESCRIBED + READY + GOES_OUT + READY).bytesize

  # Before CopyDone was sent, nothing of it can have taken effect.
  def test_in_cut_at_every_byte_that_the_server_says
    (0...SAID_IN).each do |out_max|
      on_server(out_max:) do |pool, server|
        error = assert_raises(*LOST) { copy_in(pool) }
        assert_equal out_max >= BEGUN, error.in_doubt?, out_max
        refute_includes server.ends, :done unless error.in_doubt?
        pool_works_again(pool)
      end
    end
  end

  def test_out_cut_at_every_byte_that_the_server_says
    (0...SAID_OUT).each do |out_max|
      on_server(out_max:) do |pool|
        rows = []
        error = assert_raises(*LOST) { pool.copy_out(OUT, timeout: 60) { |row| rows << row } }
        assert_equal ROWS.first(rows.size), rows
        assert_kind_of Postgres::ConnectionLost, error
        pool_works_again(pool)
      end
    end
  end

  # As PgBouncer does when it loses the server in the middle of a message: it says so, and closes.
  def test_out_that_a_proxy_loses_at_every_byte_of_a_row
    complaint = self.class.message("E", "SFATAL\0VFATAL\0C08P01\0Mserver conn crashed?\0\0")
    row = self.class.message("d", "a row of some bytes\t2\n")
    [0, *5..row.bytesize].each do |cut| # within the five bytes of its head what comes is no message any more
      begun = PARSED + self.class.message("H", [0, 2, 0, 0].pack("Cnnn")) + row + row.byteslice(0, cut) + complaint
      on_server(out_max: (DESCRIBED + READY + begun).bytesize, says: { begin: begun }) do |pool|
        rows = []
        assert_raises(Postgres::ConnectionLost, cut.to_s) { pool.copy_out(OUT, timeout: 60) { |one| rows << one } }
        assert_equal [["a row of some bytes", 2]] * (cut == row.bytesize ? 2 : 1), rows, cut
      end
    end
  end

  def pool_works_again(pool)
    assert_raises(*LOST) { copy_in(pool) } # it ends at once
    assert_operator pool.metrics[:connections], :<=, 1
  end

  # @return [Integer] bytes that a client says in a COPY of that way
  def said_by_client
    left = nil
    on_server(in_max: 1_000_000) do |pool, server|
      yield pool
      left = server.in_left
    end
    1_000_000 - left
  end

  def test_in_cut_at_every_byte_that_the_client_says
    (0...said_by_client { |pool| copy_in(pool) }).each do |in_max|
      on_server(in_max:) do |pool, server|
        error = assert_raises(*LOST) { copy_in(pool) }
        refute_includes server.ends, :done unless error.in_doubt?
      end
    end
  end

  def test_out_cut_at_every_byte_that_the_client_says
    (0...said_by_client { |pool| copy_out(pool) }).each do |in_max|
      on_server(in_max:) { |pool| assert_raises(*LOST) { copy_out(pool) } }
    end
  end

  # --- ways to end ---

  def test_in_that_is_left_says_so_and_the_connection_stays
    on_server do |pool, server, machine|
      assert_raises(RuntimeError) { pool.copy_in(IN) { |copy| copy << ROWS.first and raise "left" } }
      pool.copy_in(IN) { |_| break }
      slow = Enumerator.new { |them| loop { them << ("x" * 70_000) && machine.sleep(0.3) } }
      assert_raises(Ringspun::TimeoutError) { pool.copy_in(IN, slow, timeout: 1) } # must pass
      strand = machine.spin { pool.copy_in(IN) { machine.sleep(1000) } }
      machine.sleep(1)
      strand.terminate
      assert_raises(Ringspun::TerminatedError) { strand.await }
      assert_equal [:failed] * 4, server.ends
      assert_equal [2, ROWS], [copy_in(pool), copy_out(pool)]
      assert_equal 1, pool.metrics[:connections]
    end
  end

  # Which a Sync that was sent before does not end: the server passes over it.
  def test_in_that_is_left_before_the_server_begins
    on_server(step: 1) do |pool, server, machine|
      [0.001, 0.01, 0.03, 0.05, 0.1, 0.11, 0.12].each do |seconds|
        assert_raises(Ringspun::TimeoutError) { pool.copy_in(IN, timeout: seconds) { machine.sleep(1000) } } # must pass
        machine.sleep(20)
      end
      assert_equal [2, ROWS], [copy_in(pool), copy_out(pool)]
      assert_equal :done, server.ends.last
    end
  end

  def test_a_row_that_the_server_refuses_at_once
    refusal = self.class.message("E", "SERROR\0VERROR\0C22P02\0Mno number\0WCOPY t, line 1, column b: \"x\"\0\0")
    on_server(says: { row: refusal }) do |pool|
      error = assert_raises(Postgres::InvalidTextRepresentation) do
        pool.copy_in(IN) { |copy| 100.times { copy << ("x\t1\n" * 20_000) && Ringspun::Machine.current.sleep(0.1) } }
      end
      assert_equal [nil, "b", 1, "line 1, column b: no number (22P02)"], [error.row, error.column, error.line, error.message]
    end
  end

  # In other languages too.
  def test_contexts
    { "COPY t, line 12" => [12, nil], "COPY t, line 3, column a b: \"x: y\"" => [3, "a b"],
      "COPY t, Zeile 3, Spalte c: »x«" => [3, "c"],
      "COPY t, line 3: \"1, 2, column x: y\"" => [3, nil], "COPY a, b, line 5, column c: null input" => [5, "c"],
      "SQL function \"f\"\nCOPY t, line 7" => [7, nil], "COPY t, 行 4, 列 n: \"1\"" => [4, "n"] }.each do |context, (line, column)|
      refusal = self.class.message("E", "SERROR\0C22P02\0Mno\0W#{context}\0\0".b)
      on_server(says: { done: refusal }) do |pool|
        error = assert_raises(Postgres::CopyRowError) { copy_in(pool) }
        assert_equal [line, line, column], [error.line, error.row, error.column], context
      end
    end
  end

  # --- at random ---

  FAULTS = { short_transfer: 0.15, interrupted: 0.05, delay: 0.3, late_cancel: 0.5, submission_full: 0.05, no_buffers: 0.05,
             late_wake: 0.05, scribble: 0.2 }.freeze

  # Strands that leave in all ways, at any time, while what is under way is late, or comes in part: all that one gets is its own,
  # and afterwards nothing is left of them.
  def test_many_that_copy_and_leave
    Seeds.of_the_day(60).each do |seed|
      Supervised.tick
      Ringspun::Simulation.explore(1, from: seed, faults: FAULTS) do |machine|
        before = machine.strands.size
        explore(machine, Random.new(seed))
        assert_equal before, machine.strands.size, Ringspun.inspect_tree
      end
    end
  end

  def explore(machine, random)
    server = Server.new(machine)
    pool = Postgres::Pool.new(ScriptedServer::URL, max: 2)
    strands = Array.new(6) { machine.spin { 4.times { use(pool, machine, random) } } }
    strands.sample(2, random:).each { |strand| machine.spin { machine.sleep(random.rand * 0.1) && strand.terminate } }
    strands.each { |strand| finish(strand) }
    machine.sleep(200)
    assert_equal [pool.metrics[:connections], 0], pool.metrics.values_at(:idle, :waiting)
    assert_equal [2, ROWS], [copy_in(pool), copy_out(pool)]
  ensure
    pool&.close
    server&.close
  end

  def finish(strand)
    strand.await
  rescue Ringspun::TerminatedError
    nil
  end

  def use(pool, machine, random)
    timeout = random.rand * 0.1 if random.rand(3).zero?
    catch(:left) { random.rand(2).zero? ? use_in(pool, machine, random, timeout) : use_out(pool, machine, random, timeout) }
  rescue Ringspun::TimeoutError, Postgres::PoolTimeoutError
    nil
  end

  def use_in(pool, machine, random, timeout)
    copied = pool.copy_in(IN, timeout:) do |copy|
      random.rand(3).times { copy << [["x" * random.rand(100_000), 1], "text\t1\n" * 10_000].sample(random:) }
      machine.sleep(random.rand * 0.05) if random.rand(2).zero?
      leave(random)
      copy << ["end", 1]
    end
    assert_equal 2, copied
  rescue ArgumentError => error
    assert_equal "left", error.message
  end

  def use_out(pool, machine, random, timeout)
    rows = []
    pool.copy_out(OUT, timeout:) do |row|
      rows << row
      machine.sleep(random.rand * 0.05) if random.rand(2).zero?
      leave(random)
    end
    assert_equal ROWS, rows
  rescue ArgumentError => error
    assert_equal ["left", ROWS.first(rows.size)], [error.message, rows]
  end

  def leave(random)
    case random.rand(6)
    when 0 then throw :left
    when 1 then raise ArgumentError, "left"
    end
  end

  # --- wrong servers ---

  WRONG = {
    ends_before: [{ row: COMPLETE }, Postgres::ProtocolError], out_for_in: [{ begin: GOES_OUT }, Ringspun::UsageError],
    data_for_in: [{ row: message("d", "x") }, Postgres::ProtocolError], done_for_in: [{ row: message("c") }, Postgres::ProtocolError],
    twice: [{ begin: GOES_IN + message("G", [0, 0].pack("Cn")) }, Postgres::ProtocolError],
    both: [{ begin: PARSED + message("W", [0, 0].pack("Cn")) }, Postgres::ProtocolError],
    rows: [{ begin: PARSED + message("D", [0].pack("n")) }, Postgres::ProtocolError],
    short: [{ begin: PARSED + message("G", [0, 2, 0].pack("Cnn")) }, Postgres::ProtocolError],
    no_copy: [{ begin: PARSED + message("C", "COPY 5\0") }, Ringspun::UsageError]
  }.freeze

  WRONG.each do |name, (says, error_class)|
    define_method("test_a_server_that_#{name}") do
      on_server(says:) do |pool, _, machine|
        assert_raises(error_class, Postgres::ConnectionLost) do
          pool.copy_in(IN, timeout: 60) { |copy| 5.times { copy << ("x\t1\n" * 20_000) && machine.sleep(0.1) } }
        end
      end
    end
  end

  NO_ROWS = ["a\t1", "a\n", "a\t1\tb\n", "a\t1\nb\t2\n", "", "\n", "a\tx\n", "a\\"].freeze

  def test_rows_that_are_none
    NO_ROWS.each do |line|
      messages = { "H" => [0, 2, 0, 0].pack("Cnnn"), "d" => line, "c" => "" }
      said = [PARSED, *messages.map { |one| self.class.message(*one) }, COMPLETE].join
      on_server(says: { begin: said }) { |pool| assert_raises(Postgres::ProtocolError, line) { copy_out(pool) } }
    end
  end

  # --- back-pressure ---

  # The server reads nothing for a while; what the client has is a few messages.
  def test_in_waits_for_a_server_that_does_not_read
    on_server do |pool, server, machine|
      given = 0
      slow = Enumerator.new { |them| 500.times { them << ("x" * 10_000) && given += 1 } }
      server.define_singleton_method(:take) do |type, body|
        machine.sleep(1) if type == "d"
        super(type, body)
      end
      copying = machine.spin { pool.copy_in(IN, slow) }
      machine.sleep(3.5)
      assert_operator given * 10_000, :<, server.heard.bytesize + 1_500_000
      copying.await
      assert_equal [500, 5_000_000], [given, server.heard.bytesize]
    end
  end

  def test_out_waits_for_a_block_that_is_slow
    sent = 0
    line = self.class.message("d", "#{"x" * 9000}\t1\n")
    on_server(says: { begin: PARSED + self.class.message("H", [0, 2, 0, 0].pack("Cnnn")) }) do |pool, server, machine|
      server.define_singleton_method(:say) do |bytes|
        super(bytes)
        next unless bytes.start_with?(PARSED)

        500.times { own.stream.write(line) && sent += 1 }
        super(CopyScriptedTest.message("c") + COMPLETE)
      end
      seen = 0
      most = 0
      pool.copy_out(OUT) do
        seen += 1
        machine.sleep(0.1)
        most = [most, sent - seen].max
      end
      assert_equal [500, 500], [seen, sent]
      assert_operator most * line.bytesize, :<, 2_000_000
    end
  end
end
