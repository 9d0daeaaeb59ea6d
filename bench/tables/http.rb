# frozen_string_literal: true

require "net/http"
require "bench/clients"
require "bench/http_server"

latency = 0.02

# The same requests for all contenders: Net::HTTP, with a connection each.
ask = ->(port) { Net::HTTP.get("127.0.0.1", "/", port) == "hello" }

# `start` runs a block beside the others, `finish` awaits its value.
stock = lambda do |meter, requests, start, finish|
  Bench::HttpServer.during(latency) do |port|
    began = meter.now
    answered = meter.measure { requests.times.map { start.call { ask.call(port) } }.count(&finish) }
    meter.note(:beyond, meter.now - began - latency)
    { answered: }
  end
end

Bench.table "http" do
  title "HTTP fan-out"
  about "200 requests by Net::HTTP at once to a server in another process which takes 20 ms for each. `beyond` is the time " \
        "that is not the server's: what it takes longer than 20 ms or, for the floor, which asks one by one, its CPU time."
  size requests: 200
  quick requests: 50
  warm_up requests: 5
  proof { |requests:| { answered: requests } }
  columns :real, :user, :system, :beyond
  against_floor :beyond
  against_peer :real, :total

  # A thread for each.
  contender("threads") { |meter, requests:| stock.call(meter, requests, Thread.method(:new), :value) }

  # A task for each.
  contender "async", requires: "async" do |meter, requests:|
    Sync { |task| stock.call(meter, requests, task.method(:async), :wait) }
  end

  # A strand for each.
  contender "ringspun", requires: "ringspun" do |meter, requests:|
    Ringspun.run { |machine| stock.call(meter, requests, machine.method(:spin), :await) }
  end

  bare "one by one" do |meter, requests:|
    Bench::HttpServer.during(latency) do |port|
      answered = meter.measure { requests.times.count { ask.call(port) } }
      meter.note(:beyond, meter.reading[:user] + meter.reading[:system])
      { answered: }
    end
  end

  targets "beyond <= 1.3 x floor", "real <= 0.8 x async", "total <= 1.1 x ringspun epoll"
end
