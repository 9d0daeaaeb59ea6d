# frozen_string_literal: true

require "postgres_helper"
require "tmpdir"

# What the tests of how a connection begins share.
class ConnectCase < Minitest::Test
  Postgres = Ringspun::Postgres
  OPTIONS = Postgres.const_get(:Options)
  STARTUP = Postgres.const_get(:Startup)
  CANCEL = Postgres.const_get(:CancelRequest)
  MESSAGES = Postgres.const_get(:Messages)

  # A handshake and thousands of rounds of a hash take long where each allocation collects.
  def setup
    GC.stress = false
    @home = Dir.mktmpdir
  end

  def teardown = FileUtils.rm_rf(@home)

  private

  # With nothing of whoever runs the tests.
  def options(source = nil, **keywords) = OPTIONS.new(source, env: { "HOME" => @home }, **keywords)

  def on_session(*, **)
    Ringspun.run { |machine| with_session(*, **) { |session| yield session, machine } }
  end

  def with_session(*, **)
    session = STARTUP.connect(options(*, **))
    yield session
  ensure
    session&.stream&.close
  end

  def connect(*, **) = on_session(*, **) { nil }

  def assert_refused(error_class, message, *, **)
    error = assert_raises(error_class) { connect(*, **) }
    assert_match message, error.message
    error
  end

  # The text of the only column of the only row, or the error.
  def ask(session, sql)
    messages = MESSAGES.new(session.stream)
    session.stream.write(MESSAGES.query(sql))
    answer = nil
    loop do
      type, fields = messages.next
      case type
      when "D" then answer = fields.first
      when "E" then answer = Postgres.error_of(fields.first)
      when "Z" then return answer
      end
    end
  end
end
