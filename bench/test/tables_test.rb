# frozen_string_literal: true

require_relative "test_helper"

class BenchTest::TablesTest < Minitest::Test
  OF_CONCURRENT_PROCS = %w[call_methods calls_awaiting wait_methods call_methods_waiting waiting_evaluations].freeze

  OF_POSTGRES = %w[
    pg_small pg_away pg_tls pg_batch pg_writes pg_transactions pg_beside pg_parallel pg_streams pg_rows pg_memory pg_copy
    pg_notify pg_arrays
  ].freeze

  OF_MRUBY = %w[mruby mruby_memory].freeze

  OF_JOBS = %w[jobs_enqueue jobs_seed jobs_work jobs_watched jobs_due jobs_calls jobs_cores jobs_waiting sqlite_enqueue
               sqlite_work sqlite_beside sqlite_start sqlite_depth active_job_enqueue active_job_calls
               sqlite_active_job].freeze

  OF_HTTP = %w[http_hello http_sleep http_events http_post http_file http_idle http_new http_rails].freeze

  def test_all_tables_are_there_in_the_order_of_the_report
    assert_equal %w[pipe socketpair mutex_cpu mutex_io queue select channel switch timeout spawn first_run beside_cpu
                    parked echo armed accept files timers ticker interrupt idle batch call_methods calls_awaiting
                    wait_methods call_methods_waiting waiting_evaluations mruby mruby_memory http tls tls_echo keep_alive cluster
                    http_hello http_sleep http_events http_post http_file http_idle http_new http_rails
                    pg pg_small pg_away pg_tls pg_batch pg_writes pg_transactions pg_beside pg_parallel pg_streams pg_rows
                    pg_memory pg_copy pg_notify pg_arrays lines idle_streams splice_forwarder jobs_enqueue jobs_seed jobs_work
                    jobs_watched jobs_due jobs_calls jobs_cores jobs_waiting sqlite_enqueue sqlite_work sqlite_beside
                    sqlite_start sqlite_depth active_job_enqueue active_job_calls sqlite_active_job],
                 BenchTest.tables.map(&:name)
  end

  def test_every_table_has_all_contenders_and_says_what_it_does
    (BenchTest.tables - of_concurrent_procs - of_mruby - of_jobs - of_postgres - of_http - [cluster]).each do |table|
      peers = table.name == "batch" ? [] : %w[threads async]
      peers << "io-stream" if %w[echo lines idle_streams].include?(table.name)
      peers << "eventmachine" if table.name == "echo"
      assert_equal peers, table.peers.map(&:name).grep_v(/\Auringmachine/), table.name
      ours = ["ringspun", "ringspun epoll", "ringspun sqpoll"]
      ours.unshift("ringspun streams") if table.name == "echo"
      ours.unshift("ringspun fs epoll") if table.name == "echo"
      ours.unshift("ringspun fs") unless %w[first_run batch ticker http tls keep_alive pg idle_streams].include?(table.name)
      ours.pop if table.name == "first_run" # each is a program of its own, which gets no more than the name of a backend
      assert_equal ours, table.contenders.filter_map { _1.backend && _1.name }
      refute_empty table.about, table.name
    end
  end

  # Each of the five tables that it is measured by itself, in each form that its scripts have.
  def test_uringmachine_is_in_its_own_tables
    of_its_own = %w[pipe socketpair mutex_cpu mutex_io queue]
    BenchTest.tables.each do |table|
      forms = table.peers.map(&:name).grep(/\Auringmachine/)
      assert_equal ["uringmachine", "uringmachine sqpoll", "uringmachine fs"], forms if of_its_own.include?(table.name)
      assert_predicate table.peers.find { |peer| peer.name == forms.first }, :on_ruby_4? if forms.any?
    end
  end

  # What is judged there: nobody is faster, and stock classes on our scheduler are no slower than on its own or Async's.
  def test_the_tables_of_uringmachine_are_judged_against_it
    tables = BenchTest.tables.select { |table| table.contender("uringmachine fs") }
    assert_equal %w[pipe socketpair mutex_cpu mutex_io queue], tables.map(&:name)
    tables.each do |table|
      targets = table.targets.map(&:sentence)
      most = { "mutex_cpu" => "1.03", "queue" => "1.03", "mutex_io" => "1.0" }.fetch(table.name, "0.9")
      assert_includes targets, "total <= #{most} x best peer", table.name
      assert_includes targets, "ringspun fs: total <= 1.03 x uringmachine fs", table.name
      assert_operator table.rows.size, :>, 1, table.name
    end
  end

  def test_concurrent_procs_are_beside_the_gem_and_the_drop_in
    of_concurrent_procs.each do |table|
      floor = table.name == "waiting_evaluations" ? "bare fiber" : "plain proc"
      assert_equal ["concurrently", "ringspun", "ringspun epoll", "drop-in", floor], table.contenders.map(&:name)
      assert_equal %w[concurrently], table.peers.map(&:name)
      refute_empty table.about, table.name
      assert_empty %i[rate gc_rate objects] - table.columns, table.name
    end
  end

  def test_jobs_are_beside_sidekiq_and_those_of_active_job_beside_each_adapter
    ours = ["ringspun", "ringspun epoll"]
    { "jobs_enqueue" => ["sidekiq", *ours, "single", "named pool", "pool", "plain threads", "redis-benchmark", "floor"],
      "jobs_seed" => ["exq default", "exq named", "exq poolboy", "ringspun, single", "ringspun, named pool", "ringspun, pool",
                      "ringspun, group commit"],
      "jobs_work" => ["sidekiq 5", "sidekiq 10", "sidekiq 25", *ours], "jobs_watched" => ours, "jobs_due" => ours,
      "jobs_calls" => ["sidekiq", *ours, "one by one"], "jobs_cores" => ["sidekiq", *ours, "bare processes"],
      "jobs_waiting" => [*ours, "bare fiber"],
      "sqlite_enqueue" => [*ours, "redis", "floor"], "sqlite_work" => [*ours, "redis"], "sqlite_beside" => ["ringspun"],
      "sqlite_start" => [*ours, "redis", "a write"], "sqlite_depth" => ours,
      "sqlite_active_job" => ["solid_queue 3", "solid_queue 25", *ours, "normal"],
      "active_job_enqueue" => ["sidekiq", "solid_queue", "good_job", *ours, "serialized"],
      "active_job_calls" => ["sidekiq 5", "sidekiq 50", "solid_queue fibers", "solid_queue threads", "good_job", *ours,
                             "one by one"] }.each do |name, contenders|
      table = of_jobs.find { |candidate| candidate.name == name }
      assert_equal contenders, table.contenders.map(&:name)
      assert_equal contenders.grep(/\A(?:sidekiq|solid_queue|good_job|exq)/), table.peers.map(&:name)
      refute_empty table.about, name
    end
  end

  def test_a_cluster_is_beside_other_servers_of_several_processes
    assert_equal ["prefork", "puma", "ringspun", "ringspun epoll", "bare processes"], cluster.contenders.map(&:name)
    assert_equal %w[prefork puma], cluster.peers.map(&:name)
    refute_empty cluster.about
  end

  def test_servers_of_http_are_beside_others_and_their_floors
    all, floors = %w[puma falcon iodine agoo itsi], ["C epoll", "nginx"]
    peers = { "http_hello" => all, "http_sleep" => %w[puma falcon], "http_events" => %w[puma falcon iodine], "http_post" => all,
              "http_file" => all, "http_idle" => all, "http_new" => all, "http_rails" => %w[puma] }
    of_http.each do |table|
      assert_equal peers.fetch(table.name), table.peers.map(&:name), table.name
      assert_equal ["ringspun", "ringspun epoll"], table.contenders.select(&:backend).map(&:name)
      assert_empty table.floors.map(&:name) - floors
      refute_empty table.about, table.name
    end
  end

  def test_postgres_is_asked_by_our_client_by_the_gem_pg_in_each_way_and_by_libpq_alone
    { "pg_small" => ["no busy_poll", "courier", "pg", "threads", "async", "em-pg-client", "ringspun fs", "libpq pipelined",
                     "libpq"],
      "pg_away" => ["no busy_poll", "courier", "pg", "threads", "async", "async 64", "em-pg-client", "ringspun fs",
                    "libpq pipelined", "libpq 2048"],
      "pg_tls" => ["no busy_poll", "courier", "pg", "threads", "async", "em-pg-client", "ringspun fs", "libpq pipelined"],
      "pg_batch" => ["pg", "pg pipelined", "libpq"],
      "pg_writes" => ["pg", "async", "ringspun fs"],
      "pg_transactions" => ["pg", "threads", "async", "em-pg-client", "ringspun fs"],
      "pg_beside" => ["threads", "async", "ringspun fs"],
      "pg_parallel" => ["single", "blocking", "threads", "async", "em-pg-client", "ringspun fs", "em-pg-client blocking",
                        "libpq"],
      "pg_streams" => ["threads", "async", "em-pg-client", "ringspun fs", "pg with cancel", "libpq"],
      "pg_rows" => ["no busy_poll", "stream_each_row", "stream_each_row chunked", "stream_each_tuple", "seed's form",
                    "libpq single row", "libpq chunked"],
      "pg_memory" => ["PG::Result", "PG::Result#values", "stream_each_row", "stream_each_tuple"],
      "pg_copy" => %w[pg libpq],
      "pg_notify" => %w[threads async],
      "pg_arrays" => ["pg"] }.each do |name, contenders|
      table = of_postgres.find { |candidate| candidate.name == name }
      contenders = ["ringspun", *contenders]
      assert_equal contenders, table.contenders.map(&:name)
      assert_equal contenders.grep_v(/\A(?:ringspun|no busy_poll|courier|libpq|single)/), table.peers.map(&:name)
      refute_empty table.columns & %i[backend backend_ns]
      refute_empty table.about, name
    end
  end

  # As many as there are connections but for one.
  def test_slow_statements_of_postgres_are_of_each_kind
    beside = of_postgres.find { |table| table.name == "pg_beside" }
    assert_equal(%w[unknown known locked], beside.rows.map { |row| row.size.fetch(:kind) })
    assert_includes beside.columns, :p99
    assert_equal :p99, beside.headline
  end

  def test_the_numbers_of_postgres_are_those_of_the_seed
    parallel, streams = %w[pg_parallel pg_streams].map { |name| of_postgres.find { |table| table.name == name } }
    assert_equal %w[90000/1 5000/5 2000/10 1000/20], parallel.rows.map(&:label)
    assert_equal(parallel.rows.map(&:label), parallel.rows.map { |row| row.size.values_at(:chunk, :connections).join("/") })
    assert_equal %w[400x1 80x5 40x10 20x20 10x40], streams.rows.map(&:label)
    assert_equal({ streams: 80, rows: 5_000, table: 80_000, strands: 1 },
                 streams.size_of(streams.rows.first, streams.contenders.first))
  end

  # What does not wait for the disk is beside what does.
  def test_a_file_is_measured_in_both_ways_to_be_durable
    %w[sqlite_enqueue sqlite_work sqlite_beside sqlite_start].each do |name|
      rows = of_jobs.find { |table| table.name == name }.rows
      assert_equal(%w[full normal], rows.map { |row| row.size.fetch(:durable) }, name)
    end
  end

  def test_the_numbers_of_callers_are_those_of_the_seed
    enqueue, seed = of_jobs.first(2)
    assert_equal %w[1 6 12 24 48], seed.rows.map(&:label)
    assert_equal [1, 6, 12, 24, 48], enqueue.rows.map { |row| row.size.fetch(:callers) }.first(5)
    assert_equal 4.0, seed.size_of(seed.rows.first, seed.contenders.first).fetch(:seconds)
    assert_equal 1.0, seed.warm_up_size({}).fetch(:seconds)
  end

  def test_uring_promises_no_more_than_a_tenth_above_epoll_everywhere
    stricter = %w[armed accept]
    unsaid = %w[jobs_seed cluster jobs_cores sqlite_beside] # what several processes take nobody adds up
    (BenchTest.tables - of_mruby - of_postgres).reject { |table| unsaid.include?(table.name) }.each do |table|
      promise = /\A(?:total|cpu_ns|rss_per_idle) <= #{stricter.include?(table.name) ? 0.8 : 1.1} x ringspun epoll(?: at armed)?\z/
      assert_equal 1, table.targets.map(&:sentence).grep(promise).size, table.name
    end
  end

  def test_every_floor_but_that_of_a_free_timeout_exists
    without = BenchTest.tables.reject(&:floor).map(&:name)
    assert_equal %w[timeout first_run beside_cpu timers ticker interrupt tls http_sleep http_rails pg_writes
                    pg_transactions pg_beside pg_memory pg_notify pg_arrays lines splice_forwarder jobs_seed jobs_work
                    jobs_watched jobs_due sqlite_work sqlite_beside sqlite_depth sqlite_active_job], without
  end

  def test_the_promised_tables_show_system_calls
    assert_equal(%w[pipe socketpair timeout echo armed files batch],
                 BenchTest.tables.select { |table| table.syscalls && table.columns.include?(:syscalls) }.map(&:name))
  end

  def test_a_folder_of_its_name_adds_contenders_to_a_table
    Dir.mktmpdir do |directory|
      Dir.mkdir(File.join(directory, "usual"))
      File.write(File.join(directory, "usual/more.rb"), %(contender("ringspun") {}\ntargets "real <= 1.0 x threads"\n))
      table = Bench::Table.declare("usual", File.join(directory, "usual.rb")) { contender("threads") {} }
      assert_equal ["threads", "ringspun", "ringspun epoll", "ringspun sqpoll"], table.contenders.map(&:name)
      assert_equal ["real <= 1.0 x threads"], table.targets.map(&:sentence)
    end
  end

  private

  def cluster = BenchTest.tables.find { |table| table.name == "cluster" }
  def of_http = BenchTest.tables.select { |table| OF_HTTP.include?(table.name) }
  def of_jobs = BenchTest.tables.select { |table| OF_JOBS.include?(table.name) }
  def of_mruby = BenchTest.tables.select { |table| OF_MRUBY.include?(table.name) }
  def of_postgres = BenchTest.tables.select { |table| OF_POSTGRES.include?(table.name) }
  def of_concurrent_procs = BenchTest.tables.select { |table| OF_CONCURRENT_PROCS.include?(table.name) }
end
