# frozen_string_literal: true

require "bench/http/contenders"

Bench.table "http_events" do
  title "HTTP: streams of events"
  about "Server-Sent Events: 1,000 clients get an event of 64 bytes each 100 ms, ten of them, from a streaming body each; of " \
        "Iodine by its own calls, from one timer. An operation is an event that has come. A server with a thread for each has " \
        "1,000 of them here. The floor sends the event to all by one timer."
  size connections: 1_000, events: 10
  quick connections: 100, events: 3
  warm_up events: 0
  proof { |**| { answered: true } }
  columns :cpu_ns, :rate, :memory
  against_floor :cpu_ns
  against_peer :cpu_ns

  Bench::Http.contend(self, "events", peers: %w[puma falcon iodine], floors: ["C epoll"])

  targets "cpu_ns <= 0.5 x falcon", "cpu_ns <= 1.2 x iodine", "cpu_ns <= 1.1 x ringspun epoll"
end
