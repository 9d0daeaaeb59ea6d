# frozen_string_literal: true

require "bench/http/contenders"

# Ideal is what the sleeps take alone.
asked = lambda do |program, work, meter, each:, **size|
  Bench::Http.ask(program, work, meter, each:, **size) do |result|
    meter.note(:kept, each * BenchApp::SECONDS / result[:seconds])
  end
end

Bench.table "http_sleep" do
  title "HTTP: a program that waits"
  about "As `http_hello`, with a program that sleeps for 100 ms, and 1,000 clients which ask it 20 times each. `kept` is the " \
        "part of the ideal rate that is reached. A server with a thread for each request has 1,000 of them here."
  size connections: 1_000, each: 20
  quick connections: 100, each: 3
  warm_up each: 0
  proof { |**| { answered: true } }
  columns :cpu_ns, :rate, :kept, :memory
  against_floor :cpu_ns
  against_peer :cpu_ns, :real_ns

  Bench::Http.contend(self, "sleep", peers: %w[puma falcon], floors: [], &asked)

  targets "kept >= 0.95", "cpu_ns <= 1.1 x ringspun epoll"
end
