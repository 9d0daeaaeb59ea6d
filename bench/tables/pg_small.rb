# frozen_string_literal: true

require "bench/libpq_program"
require "bench/small_statements"

Bench.table "pg_small" do
  title "Postgres, small statements"
  about "`select $1::int`, prepared, by so many strands over a Unix socket; each asks one after the other. `ringspun` is one " \
        "connection for all of them, `pg` one and no strand, `threads` have a connection each, the others 8 for all. `backend` " \
        "is what the server's processes need. The floors are libpq in C on one connection: as many statements at once as there " \
        "are strands, with a Sync each, and one after the other."
  size statements: 20_480
  quick statements: 2_560
  warm_up statements: 512
  row "1 strand", strands: 1
  row "8 strands", strands: 8, quick: false
  row "64 strands", strands: 64
  row "256 strands", strands: 256, quick: false
  beforehand { |**| Bench::PostgresServer.start }
  proof { |statements:, **| { answered: statements } }
  columns :real_ns, :cpu_ns, :backend_ns, :rate
  against_floor :cpu_ns
  against_peer :real_ns, :cpu_ns

  here = ->(&ask) { ask.call(Bench::PostgresServer.start.options) }
  Bench::SmallStatements.contend(self, here, { "async" => 8, "em-pg-client" => 8, Bench::SCHEDULED => 8 })

  bare "libpq pipelined" do |meter, strands:, statements:|
    here.call { |options| Bench::LibpqProgram.measure(meter, options, :pipelined, statements, strands) }
  end
  bare "libpq" do |meter, statements:, **|
    here.call { |options| Bench::LibpqProgram.measure(meter, options, :sequential, statements) }
  end
end
