# frozen_string_literal: true

require "test_helper"
require "ringspun/postgres"
require "socket"
require "tmpdir"

# Whoever answers a script, and sends notices, in the place of a server, over a real socket.
class PostgresHostileScriptTest < Minitest::Test
  Postgres = Ringspun::Postgres

  def self.message(type, body = "") = "#{type}#{[body.bytesize + 4].pack("N")}#{body}".b

  GREETING = [message("R", [0].pack("N")), message("K", [1, 2].pack("NN")), message("Z", "I")].join.freeze
  NOTICE = message("N", "SNOTICE\0VNOTICE\0C00000\0Mhello\0\0").freeze
  COLUMNS = message("T", [1, "nonce", 0, 0, 25, -1, -1, 0].pack("nZ*NnNs>l>n")).freeze
  ROW = message("D", [1, 5, "right"].pack("nNa*")).freeze
  ANSWER = [COLUMNS, ROW, NOTICE, message("C", "SELECT 1\0"), message("C", "INSERT 0 2\0"), COLUMNS, message("C", "SELECT 0\0"),
            message("Z", "I")].join.freeze

  def test_an_answer_that_is_split_at_every_byte
    (1...ANSWER.bytesize).each do |at|
      served_by(ANSWER.byteslice(0, at), ANSWER.byteslice(at..)) do |pool, told|
        results = pool.script("select 1; insert; select 2")
        assert_equal [[["right"]], [], []], results.map(&:rows)
        assert_equal [["SELECT 1", "INSERT 0 2", "SELECT 0"], ["NOTICE: hello"]], [results.map(&:tag), told]
      end
    end
  end

  def test_an_answer_that_ends_at_every_byte
    (0...ANSWER.bytesize).each do |at|
      served_by(ANSWER.byteslice(0, at)) { |pool| assert_raises(Postgres::ConnectionLost) { pool.script("select 1", timeout: 60) } }
    end
  end

  def test_what_is_no_answer_to_a_script
    ["1", "2", "t", "n", "s", "?", "G", "W"].each do |type|
      served_by(COLUMNS + self.class.message(type), stay: true) do |pool|
        assert_raises(Postgres::ProtocolError, type) { pool.script("select 1", timeout: 60) }
      end
    end
  end

  # The first has columns that are none, and the second a row that is not of its columns.
  def test_columns_and_rows_that_are_none
    broken = [self.class.message("T", [1].pack("n")), ROW, ANSWER.byteslice(-17..)].join
    served_by(broken, stay: true) { |pool| assert_raises(Postgres::ProtocolError) { pool.script("select 1", timeout: 60) } }
    broken = [COLUMNS, self.class.message("D", [2, -1, -1].pack("nl>l>")), self.class.message("C", "SELECT 1\0"),
              self.class.message("Z", "I")].join
    served_by(broken) do |pool|
      assert_raises(Postgres::ProtocolError) { pool.script("select 1", timeout: 60).first.rows }
    end
  end

  # Rows before any columns are nobody's.
  def test_rows_without_columns
    served_by([ROW, self.class.message("C", "SELECT 1\0"), self.class.message("Z", "I")].join) do |pool|
      assert_equal [[]], pool.script("select 1", timeout: 60).map(&:rows)
    end
  end

  # A connection learns by an empty query how far away its server is.
  def test_columns_of_an_empty_query
    served_by(COLUMNS + self.class.message("I") + self.class.message("Z", "I"), stay: true, lane: true) do |pool|
      assert_raises(Postgres::Error) { pool.query("select 1", timeout: 60) }
    end
  end

  def test_more_notices_than_anybody_reads
    flood = (NOTICE * 12_000) + ANSWER
    served_by(flood) do |pool, told|
      assert_equal 3, pool.script("select 1; insert; select 2", timeout: 60).size
      assert_equal 10_000, told.size
    end
  end

  def test_notices_that_are_none
    ["", "\0", "M", "\xff\xff\0", "Mtext without an end"].each do |body|
      served_by(self.class.message("N", body.b) + ANSWER) do |pool, told|
        assert_equal 3, pool.script("select 1; insert; select 2", timeout: 60).size
        assert_equal [2, 2], [told.size, told.map(&:to_s).size]
      end
    end
  end

  def test_an_error_that_is_no_text
    answer = self.class.message("E", "SERROR\0VERROR\0C42601\0Mbad \xff\0P999\0\0".b) + self.class.message("Z", "I")
    served_by(answer) do |pool|
      error = assert_raises(Postgres::SyntaxError) { pool.script("select 1", timeout: 60) }
      assert_equal ["bad \uFFFD", 1], [error.primary, error.place.number]
    end
  end

  private

  # @yieldparam told [Array<String>] notices
  def served_by(*pieces, stay: false, lane: false)
    Dir.mktmpdir do |folder|
      Ringspun.run do |machine|
        listener = UNIXServer.new("#{folder}/.s.PGSQL.5432")
        accepting = machine.spin { loop { serve(Ringspun::Stream.new(machine.accept(listener)), pieces, stay || lane) } }
        told = []
        source = "postgres://somebody@/some?host=#{folder}&sslmode=disable"
        pool = Postgres::Pool.new(source, lanes: 1, on_notice: ->(notice) { told << notice.to_s })
        yield pool, told
      ensure
        pool&.close
        accepting&.terminate
        listener&.close
      end
    end
  end

  def serve(stream, pieces, stay)
    body = stream.read(stream.read(4).unpack1("N") - 4)
    return if body.unpack1("N") == 80_877_102 # a CancelRequest

    stream.write(GREETING)
    stream.read_partial(65_536)
    pieces.each do |piece|
      stream.write(piece)
      Ringspun::Machine.current.yield
    end
    nil while stay && stream.read_partial(65_536)
  rescue Ringspun::Error, SystemCallError
    nil # the client has left
  ensure
    stream.close
  end
end
