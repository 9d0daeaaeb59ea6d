# frozen_string_literal: true

# Server-sent events: everybody who looks at /events gets each message that somebody posts to /say. A browser shows them with
#
#   new EventSource("/events").onmessage = (event) => console.log(event.data)
#
#   bin/bundle exec ruby examples/http_events.rb        # shows a hundred listeners
#   bin/bundle exec ruby examples/http_events.rb 9292   # serves on that port; Ctrl-C ends it
#
# Prints:
#   100 listen
#   200 messages have come, the last one is "data: tea is ready"
#   nobody listens any more

require "net/http"
require "ringspun/http"

class Messages
  TEXT = { "content-type" => "text/plain" }.freeze
  # A listener who falls further behind misses messages.
  BEHIND_MAX = 100

  attr_reader :listeners

  def initialize
    @listeners = []
  end

  def call(env)
    case env["PATH_INFO"]
    when "/events" then Ringspun::HTTP::SSE.answer(env) { |events| tell(events) }
    when "/say" then say(env["rack.input"].read.force_encoding(Encoding::UTF_8))
    else [404, TEXT.dup, ["there are /events and /say\n"]]
    end
  end

  private

  # Ends when the listener goes, or the server stops.
  def tell(events)
    @listeners << (mine = Ringspun::Queue.new)
    loop { events << mine.pop }
  ensure
    @listeners.delete(mine)
  end

  def say(text)
    return [400, TEXT.dup, ["that is no UTF-8\n"]] unless text.valid_encoding?

    @listeners.each { |one| one.push(text) if one.size < BEHIND_MAX }
    [204, {}, []]
  end
end

# Reads two messages, and goes away.
def listen(server)
  Ringspun.connect_tcp("127.0.0.1", server.port) do |stream|
    stream.write("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
    Array.new(2) { stream.read_until("\n\n")[/^data: .*/] }
  end
end

def show(machine, messages, server)
  listeners = Array.new(100) { machine.spin { listen(server) } }
  machine.yield until messages.listeners.size == 100
  puts "#{messages.listeners.size} listen"
  say = URI("http://127.0.0.1:#{server.port}/say")
  ["water boils", "tea is ready"].each { |text| Net::HTTP.post(say, text, "content-type" => "text/plain") }
  seen = listeners.flat_map(&:await)
  puts "#{seen.size} messages have come, the last one is #{seen.last.inspect}"
  machine.yield until messages.listeners.empty?
  puts "nobody listens any more"
  server.stop
end

Ringspun.run do |machine|
  messages = Messages.new
  server = Ringspun::HTTP.listen(messages, "127.0.0.1", Integer(ARGV.first || 0))
  ARGV.empty? ? show(machine, messages, server) : server.wait
end
