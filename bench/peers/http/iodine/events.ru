# frozen_string_literal: true

# Streams of events by Iodine's own calls: a streaming body would hold one of its threads.

require_relative "../app"

class Events
  def initialize = @clients = []
  def on_open(client) = @clients << client
  def on_close(client) = @clients.delete(client)
  def tell = @clients.each { |client| client.write("e" * 54) }
end

events = Events.new
Iodine.on_state(:on_start) { Iodine.run_every((BenchApp::SECONDS * 1000).round) { events.tell } }

run lambda { |env|
  env["rack.upgrade"] = events
  [200, { "content-type" => "text/event-stream" }, []]
}
