# frozen_string_literal: true

require "bench/small_statements"

statements = Bench::SmallStatements.method(:new)

# How many connections are shared where not each strand has its own.
shared = ->(strands) { [strands, 8].min }

floor = lambda do |meter, *arguments|
  require "bench/libpq_program"
  Bench::LibpqProgram.measure(meter, Bench::PostgresServer.start.options, *arguments)
end

Bench.table "pg_small" do
  title "Postgres, small statements"
  about "`select $1::int`, prepared, by so many strands over a Unix socket; each asks one after the other. `pg` is one " \
        "connection and no strand, `threads` have a connection each, the others 8 for all. `backend` is what the server's " \
        "processes need. The floors are libpq in C on one connection: as many statements at once as there are strands, with a " \
        "Sync each, and one after the other."
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

  # Nothing but one connection.
  contender "pg", requires: "pg" do |meter, **size|
    statements.call(meter, ->(&work) { work.call }, :itself, **size, strands: 1).by_pg(1)
  end

  # A thread for each, with a connection of its own.
  contender "threads", requires: "pg" do |meter, strands:, **size|
    statements.call(meter, Thread.method(:new), :value, strands:, **size).by_pg(strands)
  end

  # A task for each.
  contender "async", requires: "async" do |meter, strands:, **size|
    require "pg"
    Sync { |task| statements.call(meter, task.method(:async), :wait, strands:, **size).by_pg(shared.call(strands)) }
  end

  # A fiber for each, and the pool that it comes with.
  contender "em-pg-client", requires: Bench::PEER_EM_PG_CLIENT do |meter, strands:, **size|
    Bench::EventFiber.run do
      pool = Bench.em_pg_pool(shared.call(strands)) { |client| client.prepare_defer("small", Bench::SmallStatements::SQL) }
      statements.call(meter, Bench::EventFiber.method(:new), :value, strands:, **size).measure do |number, _|
        pool.exec_prepared("small", [number]) { |result| result.getvalue(0, 0) }
      end
    end
  end

  # A strand for each, and pg by our scheduler.
  contender "ringspun fs", requires: "ringspun" do |meter, strands:, **size|
    require "pg"
    Ringspun.run do |machine|
      statements.call(meter, machine.method(:spin), :await, strands:, **size).by_pg(shared.call(strands))
    end
  end

  bare("libpq pipelined") { |meter, strands:, statements:| floor.call(meter, :pipelined, statements, strands) }
  bare("libpq") { |meter, statements:, **| floor.call(meter, :sequential, statements) }
end
