# frozen_string_literal: true

require "bench/http/contenders"

Bench.table "http_hello" do
  title "HTTP: a small answer"
  about "Servers for Rack, one process each, and clients that ask as soon as they are answered: a request has 8 fields, the " \
        "answer 14 bytes. Every byte is compared. Limits and clocks are on, the access log is off but for ours in the row that " \
        "says so, where it is a file. Time is that of the server's processes; the floor answers each empty line with the same " \
        "bytes, and nginx answers by itself."
  size connections: 32, ms: 400, warm_ms: 100, log: 0
  quick ms: 100
  warm_up ms: 0 # a server is a program of its own, which is warmed up by its clients
  row "1 connection", connections: 1
  row "32 connections"
  row "1,000 connections", connections: 1_000, quick: false
  others = [*Bench::Http::PEERS, *Bench::Http::FLOORS].to_h { |name| [name.to_sym, "not asked with a log"] }
  row "32, with the log", log: 1, skipped: others
  proof { |**| { answered: true } }
  columns :cpu_ns, :rate, :memory
  against_floor :cpu_ns
  against_peer :cpu_ns

  Bench::Http.contend(self, "hello")

  targets "cpu_ns <= 1.1 x iodine at 32 connections and 1,000 connections",
          "cpu_ns <= 0.25 x puma at 32 connections and 1,000 connections",
          "cpu_ns <= 0.25 x falcon at 32 connections and 1,000 connections",
          "cpu_ns <= 6 x floor at 32 connections and 1,000 connections", "cpu_ns <= 1.0 x puma at 1 connection",
          "cpu_ns <= 1.1 x ringspun epoll"
end
