# frozen_string_literal: true

require "bench/http/contenders"

Bench.table "http_rails" do
  title "HTTP: a Rails application"
  about "Rails 8.1 in production, without a log, asked for `/up`: the same application and middleware in each server. Puma has " \
        "three threads, as Rails sets it up; state is isolated by fibers for Ringspun."
  size connections: 5, ms: 600, warm_ms: 200
  quick ms: 100
  warm_up ms: 0
  row "1 connection", connections: 1
  row "5 connections"
  row "32 connections", connections: 32
  proof { |**| { answered: true } }
  columns :cpu_ns, :rate, :memory
  against_floor :cpu_ns
  against_peer :cpu_ns

  Bench::Http.contend(self, "up", peers: %w[puma], floors: [])

  targets "cpu_ns <= 1.0 x puma", "cpu_ns <= 1.1 x ringspun epoll"
end
