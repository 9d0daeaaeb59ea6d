# frozen_string_literal: true

# A service that speaks JSON: it keeps notes in memory.
#
#   bin/bundle exec ruby examples/http_json.rb        # shows requests and answers
#   bin/bundle exec ruby examples/http_json.rb 9292   # serves on that port; Ctrl-C ends it
#
# Prints:
#   POST /notes: 201 {"id":1,"text":"tea"}
#   GET /notes/1: 200 {"id":1,"text":"tea"}
#   GET /notes/2: 404 {"error":"there is no note 2"}
#   POST /notes: 400 {"error":"a note is JSON with a text"}

require "json"
require "net/http"
require "ringspun/http"

class Notes
  JSON_TYPE = { "content-type" => "application/json" }.freeze

  def initialize
    @texts = []
  end

  # As Rack has it.
  def call(env)
    case [env["REQUEST_METHOD"], env["PATH_INFO"].split("/").drop(1)]
    in ["POST", ["notes"]] then add(JSON.parse(env["rack.input"].read))
    in ["GET", ["notes", /\A\d+\z/ => id]] then show(Integer(id, 10))
    else answer(404, error: "there is no such page")
    end
  rescue JSON::ParserError
    answer(400, error: "a note is JSON with a text")
  end

  private

  def add(given)
    @texts << given.fetch("text").to_s
    answer(201, id: @texts.size, text: @texts.last)
  end

  def show(id)
    text = @texts[id - 1] if id.positive?
    text ? answer(200, id:, text:) : answer(404, error: "there is no note #{id}")
  end

  def answer(status, **content) = [status, JSON_TYPE.dup, [JSON.generate(content)]]
end

def ask(http, method, path, body = nil)
  answer = http.send_request(method, path, body, "content-type" => "application/json")
  puts "#{method} #{path}: #{answer.code} #{answer.body}"
end

def show_requests(server)
  Net::HTTP.start("127.0.0.1", server.port) do |http|
    ask(http, "POST", "/notes", '{"text":"tea"}')
    ask(http, "GET", "/notes/1")
    ask(http, "GET", "/notes/2")
    ask(http, "POST", "/notes", "tea")
  end
  server.stop
end

Ringspun.run do
  server = Ringspun::HTTP.listen(Notes.new, "127.0.0.1", Integer(ARGV.first || 0))
  ARGV.empty? ? show_requests(server) : server.wait
end
