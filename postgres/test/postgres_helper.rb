# frozen_string_literal: true

require "test_helper"
require "support/servers"
require "ringspun/postgres"

# A connection of its own to a real server, for tests of what a client is made of.
module OnLane
  include Servers::Postgres

  Postgres = Ringspun::Postgres

  # Runs the block in a strand, with a lane.
  def on_lane
    Ringspun.run do |machine|
      stream = Ringspun.connect_unix("#{Servers.postgres_endpoint.folder}/.s.PGSQL.5432")
      begin_connection(stream)
      yield Postgres.const_get(:Lane).new(stream, "rs"), machine
    ensure
      stream&.close
    end
  end

  private

  SETTINGS = { user: "ringspun", database: "postgres", client_encoding: "UTF8", datestyle: "ISO",
               intervalstyle: "iso_8601" }.freeze
  private_constant :SETTINGS

  def begin_connection(stream)
    body = "#{[196_608].pack("N")}#{SETTINGS.map { |name, value| "#{name}\0#{value}\0" }.join}\0"
    stream.write([body.bytesize + 4].pack("N") + body)
    messages = Postgres.const_get(:Messages).new(stream)
    loop do
      type, text = messages.next(nil)
      raise text if type == "E"
      break if type == "Z"
    end
  end
end
