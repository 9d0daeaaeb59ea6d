# frozen_string_literal: true

require "bench/http/contenders"

Bench.table "http_post" do
  title "HTTP: bodies of requests"
  about "Requests with a body of 1 MB, which the program reads in pieces of 64 KB, from four clients. nginx reads and drops it."
  size connections: 4, ms: 400, warm_ms: 100
  quick ms: 100
  warm_up ms: 0
  proof { |**| { answered: true } }
  columns :cpu_ns, :rate, :memory
  against_floor :cpu_ns
  against_peer :cpu_ns

  Bench::Http.contend(self, "post", floors: %w[nginx])

  targets "cpu_ns <= 1.2 x floor", "cpu_ns <= 1.1 x ringspun epoll"
end
