# frozen_string_literal: true

require "bench/delay_proxy"
require "bench/small_statements"

Bench.table "pg_away" do
  title "Postgres, small statements 0.65 ms away"
  about "As in pg_small, but through a proxy that hands all bytes on half of 0.65 ms later, over TCP. `pg` is no strand, " \
        "and asks less often; `threads` have a connection each, `async` 8 for all, those after it 64. The floor " \
        "is libpq in C on one connection, with as many statements at once as there are strands; `libpq 2048` has so many, and " \
        "tells what can pass the proxy."
  size statements: 20_480
  quick statements: 512
  warm_up statements: 256, strands: 8
  row "1 strand", strands: 1, statements: 1_024, quick: false
  against_floor :real_ns

  away = Bench::DelayProxy.method(:during)
  pools = { "async" => 8, "async 64" => 64, "em-pg-client" => 64, Bench::SCHEDULED => 64 }
  Bench::SmallStatements.contend(self, away, pools, alone: { statements: 1_024 })

  reference "libpq 2048", requires: "pg", size: { statements: 102_400 } do |meter, statements:, **|
    away.call { |options| Bench::LibpqProgram.measure(meter, options, :pipelined, statements, 2_048) }
  end

  targets "rate >= 33 x pg at 64 strands", "rate >= 48 x pg at 256 strands",
          "rate >= 1.9 x async 64 at 64 strands", "rate >= 3 x async 64 at 256 strands"
end
