# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "tmpdir"
require "socket"

# Whoever answers in the place of a server, over a real socket: everybody who waits gets an error that says what it is, or the
# right answer, and never hangs.
class PostgresHostileServerTest < Minitest::Test
  Postgres = Ringspun::Postgres

  def self.message(type, body = "") = "#{type}#{[body.bytesize + 4].pack("N")}#{body}".b

  GREETING = [message("R", [0].pack("N")), message("K", [1, 2].pack("NN")), message("Z", "I")].join.freeze
  DESCRIBED = [message("1"), message("t", [0].pack("n")),
               message("T", [1, "nonce", 0, 0, 25, -1, -1, 0].pack("nZ*NnNs>l>n")), message("2")].join.freeze
  ROW = message("D", [1, 5, "right"].pack("nNa*")).freeze
  ANSWER = [DESCRIBED, ROW, message("C", "SELECT 1\0"), message("Z", "I")].join.freeze

  def test_an_answer_that_is_split_at_every_byte
    (1...ANSWER.bytesize).each do |at|
      served_by(answering(ANSWER.byteslice(0, at), ANSWER.byteslice(at..))) do |pool|
        assert_equal "right", pool.query_value("select 1")
      end
    end
  end

  def test_an_answer_that_ends_at_every_byte
    (0...ANSWER.bytesize).each do |at|
      served_by(answering(ANSWER.byteslice(0, at))) { |pool| assert_lost(Postgres::ConnectionLost, pool) }
    end
  end

  # Of each message, when the length is one too few, none, negative, or two gigabytes.
  def test_wrong_lengths
    each_message(ANSWER) do |at, len|
      [len - 1, 3, 0, 0x7fffffff, 0xffffffff].each do |wrong|
        broken = ANSWER.dup.tap { |bytes| bytes[at + 1, 4] = [wrong].pack("N") }
        served_by(answering(broken, stay: true)) { |pool| assert_lost(Postgres::ProtocolError, pool) }
      end
    end
  end

  def test_messages_that_nobody_knows_or_has_asked_for
    ["?", "\0", "\xff", "G", "W", "V", "R", "K", "s", "I", "Z"].each do |type|
      served_by(answering(DESCRIBED + self.class.message(type, "I") + ROW, stay: true)) do |pool|
        error = assert_raises(Postgres::ProtocolError, Postgres::FeatureNotSupported) { pool.query("select 1", timeout: 60) }
        refute_nil error.message
      end
    end
  end

  def test_rows_that_are_no_rows
    ["", [2, 5, "right"].pack("nNa*"), [1, 6, "right"].pack("nNa*"), [1, 4, "right"].pack("nNa*"), [1].pack("n"),
     [1, 0x7fffffff].pack("nN")].each do |body|
      row = self.class.message("D", body)
      served_by(answering(ANSWER.sub(ROW) { row }, stay: true)) do |pool|
        assert_raises(Postgres::ProtocolError, body.inspect) { pool.query("select 1", timeout: 60).rows }
      end
    end
  end

  # The body is too short, has something behind it, or counts wrong.
  def test_bodies_that_are_wrong
    each_message(ANSWER) do |at, len|
      body = ANSWER.byteslice(at + 5, len - 4)
      wrong = body.empty? ? ["x"] : ["", body.byteslice(0...-1), "#{body}x", "\xff" * body.bytesize]
      wrong.each do |other|
        broken = [ANSWER.byteslice(0, at), self.class.message(ANSWER[at], other.b), ANSWER.byteslice((at + len + 1)..)].join
        served_by(answering(broken, stay: true)) do |pool|
          rows = pool.query("select 1", timeout: 60).rows
          assert_equal [true, [["right"]]], [HARMLESS.include?(ANSWER[at]), rows], "#{ANSWER[at]} #{other.inspect}"
        rescue Postgres::ProtocolError
          pass
        end
      end
    end
  end

  # A tag may be any text.
  HARMLESS = %w[C].freeze
  private_constant :HARMLESS

  def test_a_stream_that_is_split_at_every_byte
    (1...LEGS.join.bytesize).each do |at|
      served_by(streaming(at)) { |pool| assert_equal [["right"]] * 2, pool.stream("select 1", as: :array).to_a }
    end
  end

  def test_a_stream_that_ends_at_every_byte
    (0...LEGS.join.bytesize).each do |at|
      served_by(streaming(at, ends: true)) do |pool|
        rows = []
        error = assert_raises(Postgres::ConnectionLost) { pool.stream("select 1", timeout: 60, as: :array) { |row| rows << row } }
        assert_equal [true, []], [error.in_doubt?, rows - [["right"]]]
      end
    end
  end

  # Of a statement that is none by its first word. The server waits for the client now, and there is no way back.
  { "G" => [0, 0].pack("Cn"), "H" => [0, 0].pack("Cn"), "W" => [0, 0].pack("Cn") }.each do |type, body|
    { query: ->(pool) { pool.query("select 1") }, batch: ->(pool) { pool.batch { |batch| batch.query("select 1") } },
      stream: ->(pool) { pool.stream("select 1") { |_| flunk } } }.each do |name, call|
      define_method("test_a_copy_by_#{type}_in_a_#{name}") do
        answers = [DESCRIBED + self.class.message(type, body) + self.class.message("d", "data"), ANSWER]
        served_by(->(stream) { answering(answers.shift, stay: true).call(stream) }) do |pool|
          error = assert_raises(Postgres::ProtocolError) { call.call(pool) }
          assert_equal "COPY has methods of its own: copy_in for FROM STDIN, and copy_out for TO STDOUT", error.message
          assert_equal "right", pool.query_value("select 1")
        end
      end
    end
  end

  # What the next statement would be answered by is not looked at.
  def test_answers_that_nobody_has_asked_for
    connections = 0
    server = lambda do |stream|
      connections += 1
      answering(ANSWER + ANSWER.sub("right", "wrong"), stay: true).call(stream)
    end
    served_by(server) do |pool|
      3.times { |done| assert_equal ["right", done + 1], [pool.query_value("select 1"), connections] }
    end
  end

  def test_all_who_wait_are_told
    served_by(answering(DESCRIBED + self.class.message("?"), stay: true)) do |pool, machine|
      strands = Array.new(20) { |number| machine.spin { pool.query_value("select $1", number) } }
      strands.each { |strand| assert_raises(Postgres::ProtocolError) { strand.await } }
    end
  end

  def test_threads_are_told_too
    no_columns = ANSWER.sub(/T.*(?=2\0\0\0\x04D)/mn) { self.class.message("T", [1, "nonce"].pack("nZ*")) }
    open = "#{ANSWER.chop}T"
    { DESCRIBED + self.class.message("?") => [Postgres::ProtocolError, /is no answer/],
      no_columns => [Postgres::ProtocolError, /columns that are none/],
      open => [Postgres::UnsafeSessionState, /left a transaction open/] }.each do |wrong, (kind, why)|
      server = lambda do |stream|
        answering(ANSWER).call(stream)
        answering(wrong, stay: true).call(stream)
      end
      served_by(server) do |pool|
        assert_equal "right", Thread.new { pool.query_value("select 1") }.value
        error = Thread.new { assert_raises(kind) { pool.query("select 2", timeout: 60) } }.value
        assert_match why, error.message
      end
    end
  end

  # As one whose connection still stands for a moment, or behind a pooler.
  def test_a_server_that_says_that_it_ends
    last = self.class.message("E", "SFATAL\0VFATAL\0C57P01\0Mthe server ends\0\0")
    served_by(answering(last, stay: true)) do |pool|
      error = assert_raises(Postgres::ConnectionLost) { pool.query("select 1", timeout: 60) }
      assert_equal ["the connection is lost: the server ends", true], [error.message, error.in_doubt?]
    end
  end

  # What came behind the first statement is lost, and with it the answer that some wait for.
  def test_a_pooler_that_loses_what_comes_together
    pooler = lambda do |stream|
      stream.write(ANSWER) while stream.read_partial(65_536)
    end
    served_by(pooler) do |pool, machine|
      40.times { pool.config.sharing.histories.note("select 1", 0) } # so that several are sent together
      errors = [60, 1, 1].map { |limit| machine.spin { pool.query_value("select 1", timeout: limit) } }.map do |strand|
        strand.await && nil
      rescue Ringspun::TimeoutError => error
        error.message
      end
      assert_equal [nil, true, true], [errors[0], *errors[1..].map { |text| text.include?("pipelining: false") }]
    end
  end

  # Each is the answer to what a client asks for at once in a stream: rows, two times more of them, and the Sync.
  LEGS = [DESCRIBED + ROW + message("s"), ROW + (message("C", "SELECT 1\0") * 2), message("Z", "I")].freeze

  # The server answers none of them before it has both. The one that comes behind the last row may fail.
  def test_a_stream_asks_for_two_legs_at_once
    suspended, ended, failed, ready = [%w[s], %W[C SELECT\0], %W[E C55000\0\0], %w[Z I]].map { |said| self.class.message(*said) }
    [ended, failed].each do |late|
      server = lambda do |stream|
        until_said(stream, /E\0\0\0\t\0/n)
        stream.write(DESCRIBED + ROW + suspended)
        until_said(stream, /(E\0\0\0\t\0.*){2}/mn)
        stream.write(ROW + ended + late)
        until_said(stream, /S\0\0\0\x04\z/n)
        stream.write(ready)
        nil while stream.read_partial(65_536)
      end
      served_by(server) { |pool| assert_equal [["right"], ["right"]], pool.stream("select 1", as: :array, timeout: 30).to_a }
    end
  end

  private

  def until_said(stream, pattern)
    said = +"".b
    said << stream.read_partial(65_536) until said.match?(pattern)
  end

  # Says them, in two pieces that are split there, or only the first of the two.
  def streaming(at, ends: false)
    lambda do |stream|
      LEGS.each do |leg|
        stream.read_partial(65_536)
        stream.write(leg.byteslice(0, at))
        break if at < leg.bytesize && ends

        Ringspun::Machine.current.yield
        stream.write(leg.byteslice(at..).to_s)
        at = [at - leg.bytesize, 0].max
      end
      nil while !ends && stream.read_partial(65_536)
    end
  end

  # A server that says this when it is asked something, and ends, or stays.
  def answering(*pieces, stay: false)
    lambda do |stream|
      stream.read_partial(65_536)
      pieces.each do |piece|
        stream.write(piece)
        Ringspun::Machine.current.yield
      end
      nil while stay && stream.read_partial(65_536)
    end
  end

  def served_by(server)
    Dir.mktmpdir do |folder|
      Ringspun.run do |machine|
        listener = UNIXServer.new("#{folder}/.s.PGSQL.5432")
        accepting = machine.spin { accept(machine, listener, server) }
        pool = Postgres::Pool.new("postgres://somebody@/some?host=#{folder}&sslmode=disable", lanes: 1)
        yield pool, machine
      ensure
        pool&.close
        accepting&.terminate
        listener&.close
      end
    end
  end

  def accept(machine, listener, server)
    loop do
      stream = Ringspun::Stream.new(machine.accept(listener))
      machine.spin { serve(stream, server) }
    end
  end

  def serve(stream, server)
    body = stream.read(stream.read(4).unpack1("N") - 4)
    return if body.unpack1("N") == 80_877_102 # a CancelRequest

    stream.write(GREETING)
    tell_distance(stream) if stream.peek(1) == "P" && stream.peek(22).end_with?("show lock_timeou")
    server.call(stream)
  rescue Ringspun::Error, SystemCallError
    nil # the client has left
  ensure
    stream.close
  end

  # By that statement a client learns how far away we are.
  def tell_distance(stream)
    nil until stream.read(5).then { |header| stream.read(header.unpack1("xN") - 4) && header.start_with?("S") }
    column = ["lock_timeout", 0, 0, 25, -1, -1, 0].pack("Z*NnNs>l>n")
    answers = [["1", ""], ["t", "\0\0"], ["T", [1].pack("n") + column], ["2", ""],
               ["D", [1, 3, "5ms"].pack("nNa*")], ["C", "SHOW\0"], %w[Z I]]
    stream.write(answers.map { |type, body| [type, body.bytesize + 4, body].pack("aNa*") }.join)
  end

  def assert_lost(error_class, pool)
    assert_kind_of error_class, assert_raises(Postgres::Error) { pool.query_value("select 1", timeout: 60) }
  end

  def each_message(bytes)
    at = 0
    while at < bytes.bytesize
      len = bytes.unpack1("N", offset: at + 1)
      yield at, len
      at += len + 1
    end
  end
end
