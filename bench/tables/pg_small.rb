# frozen_string_literal: true

require "bench/small_statements"

Bench.table "pg_small" do
  title "Postgres, small statements"
  about "`select $1::int`, prepared, by so many strands over a Unix socket; each asks one after the other. `ringspun` is one " \
        "connection for all of them, `no busy_poll` the same on a machine without it, `courier` the same for plain threads; " \
        "`pg` is one and no strand, `threads` have a connection each, the others 8 for all. `backend` is what the server's " \
        "processes need. The floors are libpq in C on one connection: as many statements at once as there are strands, with a " \
        "Sync each, and one after the other. Strands of ours ask for eight times as many, for else a sample would take 60 ms."
  size statements: 20_480
  quick statements: 2_560
  warm_up statements: 512, strands: 8
  row "1 strand", strands: 1, quick: false
  row "8 strands", strands: 8, quick: false
  against_floor :cpu_ns

  here = ->(&ask) { ask.call(Bench::PostgresServer.start.options) }
  scale "callers", :strands, 1, 4, 16, 64, 256, most: { "threads" => 64 }
  pools = { "async" => 8, "em-pg-client" => 8, Bench::SCHEDULED => 8 }
  Bench::SmallStatements.contend(self, here, pools, ours: { statements: 163_840 })

  bare "libpq" do |meter, statements:, **|
    here.call { |options| Bench::LibpqProgram.measure(meter, options, :sequential, statements) }
  end

  targets "rate >= 0.95 x pg at 1 strand",
          "no busy_poll: cpu_ns <= 1.1 x pg at 1 strand", "no busy_poll: rate >= 0.85 x pg at 1 strand",
          "cpu_ns <= 0.35 x pg at 64 strands", "cpu_ns <= 0.3 x async at 64 strands",
          "rate >= 3.3 x pg at 64 strands", "rate >= 2.5 x async at 64 strands", "rate >= 3.5 x pg at 256 strands",
          "courier: real_ns <= 1.1 x pg at 1 strand", "courier: real_ns <= 1 x threads at 8 strands",
          "courier: cpu_ns <= 0.75 x threads at 8 strands",
          "courier: cpu_ns <= 0.5 x threads at 64 strands", "courier: rate >= 1.8 x threads at 64 strands"
end
