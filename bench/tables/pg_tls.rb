# frozen_string_literal: true

require "bench/small_statements"
require "bench/tls_postgres_server"

Bench.table "pg_tls" do
  title "Postgres, small statements over TLS"
  about "As in pg_small, but over TCP with TLS, whose handshakes come before the measured region. `ringspun` is one connection " \
        "for all strands, as is `courier` for plain threads; `pg` is one and no strand, `threads` have a connection each, the " \
        "others 8 for all. The floors are libpq in C on one connection."
  size statements: 20_480
  quick statements: 2_560
  warm_up statements: 512, strands: 8
  row "1 strand", strands: 1, quick: false
  against_floor :cpu_ns

  pools = { "async" => 8, "em-pg-client" => 8, Bench::SCHEDULED => 8 }
  Bench::SmallStatements.contend(self, Bench::TlsPostgresServer.method(:during), pools, ours: { statements: 81_920 },
                                                                                        cluster: Bench::TlsPostgresServer)

  targets "cpu_ns <= 0.35 x pg at 64 strands", "cpu_ns <= 0.35 x async at 64 strands", "rate >= 2.5 x async at 64 strands"
end
