# frozen_string_literal: true

# A proxy to slow APIs: it asks all of them at once, by Net::HTTP as it is, and answers with what has come in time. A thousand
# clients may wait here: each takes a strand, and no thread.
#
#   bin/bundle exec ruby examples/http_proxy.rb                           # shows 20 clients, and three APIs that are slow
#   bin/bundle exec ruby examples/http_proxy.rb 9292 http://a/ http://b/  # serves on that port; Ctrl-C ends it
#
# Prints:
#   20 clients got {"weather":"weather is fine","trains":"trains is fine","stocks":"no answer within 2 s"}

require "json"
require "net/http"
require "ringspun/http"

class Proxy
  # @param apis [Hash{String => URI}]
  def initialize(apis, seconds: 10)
    @apis = apis
    @seconds = seconds
  end

  def call(_env)
    answers = Ringspun.scope do |scope|
      @apis.transform_values { |uri| scope.spin { ask(uri) } }.transform_values(&:await)
    end
    [200, { "content-type" => "application/json" }, [JSON.generate(answers)]]
  end

  private

  def ask(uri)
    Ringspun::Machine.current.timeout(@seconds) { Net::HTTP.get(uri).chomp }
  rescue Ringspun::TimeoutError
    "no answer within #{@seconds} s"
  rescue SystemCallError, SocketError, IOError => error
    error.message
  end
end

# An API that takes its time.
def api(seconds)
  app = lambda do |env|
    sleep(seconds)
    [200, { "content-type" => "text/plain" }, ["#{env["PATH_INFO"].delete_prefix("/")} is fine\n"]]
  end
  Ringspun::HTTP.listen(app, "127.0.0.1", 0)
end

def show(machine)
  slow = { "weather" => 0.05, "trains" => 0.1, "stocks" => 1000 }.transform_values { |seconds| api(seconds) }
  apis = slow.to_h { |name, server| [name, URI("http://127.0.0.1:#{server.port}/#{name}")] }
  proxy = Ringspun::HTTP.listen(Proxy.new(apis, seconds: 2), "127.0.0.1", 0)
  clients = Array.new(20) { machine.spin { Net::HTTP.get("127.0.0.1", "/", proxy.port) } }
  clients.map(&:await).tally.each { |answer, count| puts "#{count} clients got #{answer}" }
  [proxy, *slow.values].each { |server| server.stop(within: 0) }
end

Ringspun.run do |machine|
  next show(machine) if ARGV.empty?

  apis = ARGV.drop(1).to_h { |url| [url, URI(url)] }
  Ringspun::HTTP.listen(Proxy.new(apis), "127.0.0.1", Integer(ARGV.first)).wait
end
