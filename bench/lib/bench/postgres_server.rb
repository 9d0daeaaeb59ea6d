# frozen_string_literal: true

require "etc"
require "open3"

require File.join(Bench::ROOT, "runtime/test/support/servers")

module Bench
  # A private PostgreSQL cluster on a Unix socket, which ends with the process that started it. Its start takes longer than most
  # samples, so the parent starts one for all of them, and children find it by their environment.
  class PostgresServer
    # All tables fit into the cache, and are small enough to stay there when they are read as a whole: PostgreSQL reads a table
    # through a small ring of buffers from a quarter of the cache on, see
    # https://github.com/postgres/postgres/blob/REL_17_STABLE/src/backend/storage/buffer/README
    # Parallel workers, a vacuum or a compilation beside a sample would slow some samples only.
    SETTINGS = { max_connections: 1_100, shared_buffers: "640MB", wal_level: "minimal", max_wal_senders: 0, autovacuum: "off",
                 max_parallel_workers_per_gather: 0, jit: "off", synchronize_seqscans: "off" }.freeze

    MUTEX = Mutex.new

    # Returns the cluster that this process or its parent has started, and starts one if there is none.
    def self.start
      MUTEX.synchronize do
        ENV[variable] ||= run_anew.folder
        @start ||= new(ENV.fetch(variable))
      end
    rescue RuntimeError => error
      raise Unavailable, error.message
    end

    # The name of the variable by which children find its folder.
    def self.variable = "BENCH_POSTGRES"

    def self.run_anew = Servers.postgres(:"bench-postgres", **SETTINGS)
    private_class_method :variable, :run_anew

    # Yields a client of ours in a strand, and the machine, which may have options of its own.
    def self.client(options = start.options, machine: {}, **more)
      require "ringspun/postgres"
      Ringspun.run(**machine) do |machine|
        client = Ringspun::Postgres.connect(**options, **more)
        yield client, machine
      ensure
        client&.close
      end
    end

    attr_reader :folder

    def initialize(folder)
      @folder = folder
    end

    # The options of a connection, for libpq and the gem pg.
    def options = { host: @folder, user: "ringspun", dbname: "postgres" }

    def socket = File.join(@folder, ".s.PGSQL.5432")

    # Makes a table of so many rows of 1.5 KB, in the order of its index and in the cache. Called in the process that has started
    # the cluster.
    def resources(rows)
      MUTEX.synchronize do
        @resources ||= {}
        @resources[rows] ||= make_resources(PostgresServer.resources(rows), rows)
      end
    end

    # The first value that a statement returns, as a text; without any client library, as it is not measured.
    def ask(sql, database: "postgres") = run(sql, database:).lines.first.to_s.chomp

    # The name of that table.
    def self.resources(rows) = "resources_#{rows}"

    BODY_BYTES = 1_420
    NAME_BYTES = 17

    # Measures the region, and notes the CPU time of the backends for it.
    def measure(meter, &)
      before = backend_seconds
      meter.measure(&).tap { meter.note(:backend, backend_seconds - before) }
    end

    # CPU time of all children of the postmaster so far, those that have ended included.
    def backend_seconds
      postmaster = File.read(File.join(@folder, "data/postmaster.pid")).to_i
      ended_seconds(postmaster) + children(postmaster).sum { |pid| running_nanoseconds(pid) } / 1e9
    end

    private

    def make_resources(name, rows)
      run("create table #{name} as " \
          "select i as id, timestamptz '2020-01-01' + i * interval '1 minute' as cdate, 'kind ' || i % 7 as kind, " \
          "'resource ' || lpad(i::text, 8, '0') as name, i * 7 % 1000 as size, " \
          "substr(repeat(md5(i::text), 45), 1, #{BODY_BYTES}) as body from generate_series(1, #{rows}) i",
          "create unique index on #{name} (cdate)",
          "vacuum (freeze, analyze) #{name}",
          "select sum(length(body)) from #{name}")
      name
    end

    # By the server's own client, psql, for the parent loads no library.
    def run(*commands, database: "postgres")
      program = Servers.postgres_program("psql")
      command = [program, "-XAt", "-h", @folder, "-U", "ringspun", "-d", database, "-v", "ON_ERROR_STOP=1",
                 *commands.flat_map { |sql| ["-c", sql] }]
      output, status = Open3.capture2e(*command)
      raise output unless status.success?

      output
    end

    # cutime and cstime. Only the second field may contain blanks: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
    def ended_seconds(pid)
      File.read("/proc/#{pid}/stat").rpartition(")").last.split[13, 2].sum(&:to_i) / Etc.sysconf(Etc::SC_CLK_TCK).to_f
    end

    def children(pid) = File.read("/proc/#{pid}/task/#{pid}/children").split

    # By schedstat, for `stat` has ticks of 10 ms, too coarse for a sum over many backends:
    # https://docs.kernel.org/scheduler/sched-stats.html
    def running_nanoseconds(pid)
      File.read("/proc/#{pid}/schedstat").to_i
    rescue SystemCallError
      0 # it has ended meanwhile
    end
  end
end
