# frozen_string_literal: true

require "bench/http/contenders"

met = lambda do |program, work, meter, **size|
  Bench::Http.ask(program, work, meter, **size) { |result| meter.note(:p99, result[:p99]) }
end

Bench.table "http_new" do
  title "HTTP: a new connection"
  about "A new connection every millisecond, with one request, alone and beside 32 that ask as soon as they are answered. " \
        "`p99 s` is the time from its connect to its answer."
  size connections: 0, new_us: 1_000, ms: 1_000
  quick ms: 200
  warm_up ms: 0
  row "alone"
  row "beside 32", connections: 32
  proof { |**| { answered: true } }
  columns :p99, :cpu_ns, :rate
  against_floor :p99
  against_peer :p99

  Bench::Http.contend(self, "hello", &met)

  targets "p99 at beside 32 <= 3 x at alone", "cpu_ns <= 1.1 x ringspun epoll"
end
