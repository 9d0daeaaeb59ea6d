# frozen_string_literal: true

require "postgres_helper"

# Connections to real servers.
class StartupTest < Minitest::Test
  include Servers::Postgres

  OPTIONS = Ringspun::Postgres.const_get(:Options)
  STARTUP = Ringspun::Postgres.const_get(:Startup)

  def test_a_session
    on_session(application_name: "some test") do |session|
      assert_equal ["I", 0x30000, false, 4], [session.status, session.version, session.encrypted, session.key.bytesize]
      told = session.settings.values_at("application_name", "client_encoding", "IntervalStyle")
      assert_equal ["some test", "UTF8", "iso_8601"], told
      refute_includes session.inspect, session.key
    end
  end

  private

  def on_session(**)
    Ringspun.run do
      session = STARTUP.connect(OPTIONS.new(nil, **postgres_options, **))
      yield session
    ensure
      session&.stream&.close
    end
  end
end
