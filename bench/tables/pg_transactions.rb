# frozen_string_literal: true

require "bench/transactions"

Bench.table "pg_transactions" do
  connections = 8

  title "Postgres, transactions"
  about "`begin`, a select by key, an update of that row, `commit`: four round trips over a Unix socket, one after the other. " \
        "Each strand has a row of its own, and all share #{connections} connections; `pg` is one connection and no strand. An " \
        "operation is a transaction."
  size transactions: 8_192
  quick transactions: 1_024
  warm_up transactions: 128, strands: 8
  row "1 strand", strands: 1, quick: false
  row "64 strands", strands: 64
  row "256 strands", strands: 256, quick: false
  beforehand { |**| Bench::PostgresServer.start }
  proof { |transactions:, strands:| { committed: transactions / strands * strands } }
  columns :real_ns, :cpu_ns, :backend_ns, :rate
  against_peer :real_ns, :cpu_ns

  contender Bench::SUBJECT, requires: Bench::SUBJECT, backends: [Bench::MAIN_BACKEND] do |meter, **size|
    Bench::Transactions.by_us(meter, connections, **size)
  end

  contender("pg", requires: "pg") { |meter, **size| Bench::Transactions.alone(meter, **size) }

  contender("threads", requires: "pg") { |meter, **size| Bench::Transactions.in_threads(meter, connections, **size) }

  contender("async", requires: "async") { |meter, **size| Bench::Transactions.in_async(meter, connections, **size) }

  contender "em-pg-client", requires: Bench::PEER_EM_PG_CLIENT do |meter, **size|
    Bench::Transactions.in_em(meter, connections, **size)
  end

  contender(Bench::SCHEDULED, requires: Bench::SUBJECT) { |meter, **size| Bench::Transactions.in_strands(meter, connections, **size) }

  targets "real_ns <= 1.0 x async at 64 strands", "cpu_ns <= 1.0 x async at 64 strands", "real_ns <= 1.0 x threads at 64 strands"
end
