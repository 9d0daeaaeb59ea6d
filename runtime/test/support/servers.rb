# frozen_string_literal: true

require "etc"
require "fileutils"
require "io/nonblock"
require "socket"
require "tmpdir"
require_relative "patience"

# Servers of our own, for tests and the bench, each started when somebody first wants it and stopped with the process, on a Unix
# socket in a temporary folder. A test class that needs one includes Servers::Postgres or Servers::Redis.
#
# Between us and a server stands a shell that knows when we end, however we do: its end of a socket pair then says so. It stops
# the server, waits for it and removes the folder. Should somebody kill the shell, the kernel stops the server.
class Servers
  # Long enough for one that has no processor for a while, which is no child of ours: see Patience.
  START_SECONDS = 60

  # Forks once more, so that it is no child of ours and no Process.wait in a test can meet it. A line is a signal for the server,
  # which is then run again.
  KEEPER = <<~'SH'
    folder=$1 signal=$2
    shift 2
    (
      while "$@" >>"$folder/log" 2>&1 3<&- & read -r now <&3; do
        kill -"$now" $! 2>&-
        { wait $!; } 2>/dev/null # it would tell of the signal
      done
      kill -"$signal" $! 2>&-
      wait $!
      rm -rf "$folder"
    ) >/dev/null & # what reads our errors sees their end when all is done
  SH

  @running = {}

  class << self
    def start(name, &)
      @running[[name, Process.pid]] ||= new(name, &)
    end

    def stop
      @running.each { |(_, pid), server| server.stop if pid == Process.pid }
      @running.clear
    end

    def program(name) = programs(name).first || raise("#{name} is missing: run bin/setup")

    private

    # Debian may keep them off PATH.
    def programs(name)
      redis_variants.map { |variant| name.sub(/\Aredis-/, "#{variant}-") }.uniq.product(folders)
                    .map { |file, folder| File.join(folder, file) }.select { |path| File.executable?(path) }
    end

    # Where there is no Redis there may be a Valkey, for us the same.
    def redis_variants = [chosen("RINGSPUN_REDIS", REDIS_VARIANTS) || REDIS_VARIANTS].flatten

    def chosen(variable, variants)
      name = ENV.fetch(variable, nil)
      name.nil? || variants.include?(name) ? name : raise("#{variable}=#{name} is none of #{variants.join(", ")}")
    end

    # The newest PostgreSQL first.
    def folders
      systems = ["/usr", *unpacked]
      postgresql = systems.flat_map { |system| Dir[File.join(system, "lib/postgresql/*/bin")] }
      [*ENV["PATH"].split(":"), *postgresql.sort_by { |folder| -folder[%r{postgresql/(\d+)}, 1].to_i },
       *systems.flat_map { |system| [File.join(system, "sbin"), File.join(system, "bin")] }]
    end

    # Where bin/setup has unpacked servers beside the system; see bin/support/unpacked.sh. The path has no link, for the user of
    # the servers may not see the one that is in the clone.
    def unpacked
      link = File.expand_path("../../../tmp/setup/servers", __dir__)
      [File.join(File.realpath(link), "usr")] if File.exist?(link)
    end

    def version_of(program) = Gem::Version.new(IO.popen([program, "--version"], &:read)[/\d[\d.]*/])
  end

  defined?(Minitest) ? Minitest.after_run { stop } : at_exit { stop }

  attr_reader :folder

  # The block gets the server and starts it by run.
  def initialize(name)
    @folder = Dir.mktmpdir("ringspun-#{name}-")
    File.chown(user.uid, user.gid, @folder)
    yield self
    wait_until_ready
  rescue StandardError
    stop
    FileUtils.rm_rf(@folder)
    raise
  end

  # A file of the server's own, which it alone may read.
  #
  # @return [String] its path
  def write(name, text)
    path = File.join(@folder, name)
    File.write(path, text, perm: 0o600)
    File.chown(user.uid, user.gid, path)
    path
  end

  # Runs a program to its end, as the server's user.
  def prepare(*command, input: File::NULL)
    log = File.join(@folder, "prepare.log")
    pid = spawn(*as_user(command), in: input, %i[out err] => log, chdir: "/")
    Process.wait2(pid).last.success? || raise("#{command.join(" ")}:\n#{File.read(log)}")
  end

  # @param signal [String] which ends it at once, with clients or without
  def run(*command, signal:)
    @line, theirs = Socket.pair(:UNIX, :STREAM)
    theirs.nonblock = false # a shell would take "not yet" for the end
    # In a process group of its own, because Ctrl-C is for the tests.
    pid = spawn("sh", "-c", KEEPER, "sh", @folder, signal, *as_user(command, "--pdeathsig=#{signal}"),
                in: File::NULL, 3 => theirs, pgroup: true, chdir: "/")
    Process.wait(pid)
    theirs.close
  end

  # Ends it by that signal, and runs it again. Returns when it is ready.
  def restart(signal)
    loop do
      from = File.size(log)
      @line.puts(signal)
      break if wait_until_ready(from)
    end
  end

  # Returns when it is gone.
  def stop
    return unless @line

    @line.close_write
    @line.read
    @line.close
  end

  # Databases refuse to run as root.
  def user = @user ||= Process.uid.zero? ? unprivileged : Etc.getpwuid

  private

  def unprivileged
    Etc.getpwnam("postgres")
  rescue ArgumentError
    Etc.getpwnam("nobody")
  end

  # Without what the tests preload: libasan hangs in programs that look for a translation before they allocate.
  def as_user(command, *options)
    options += ["--reuid=#{user.uid}", "--regid=#{user.gid}", "--clear-groups"] if Process.uid.zero?
    ["env", "--unset=LD_PRELOAD", "setpriv", *options, *command]
  end

  READY = /ready to accept connections|process up/i

  # A Postgres whose predecessor was killed does not start before all processes of that one have ended.
  TOO_EARLY = /pre-existing shared memory block .* is still in use/
  private_constant :READY, :TOO_EARLY

  # Of all servers only the log tells.
  #
  # @param from [Integer] what is in the log before that byte is of an earlier run
  # @return [Boolean] false: it has ended at once
  def wait_until_ready(from = 0)
    patience = Patience.new(START_SECONDS)
    until (text = File.exist?(log) ? File.read(log, nil, from).to_s : "").match?(READY)
      return false if text.match?(TOO_EARLY)
      raise "not ready:\n#{text}" if patience.over?

      sleep 0.01
    end
    true
  end

  def log = File.join(@folder, "log")

  # What the tests of Postgres may run on, by RINGSPUN_POSTGRES: a major version, or PgBouncer before the newest server, which
  # keeps track of so many prepared statements a connection.
  POSTGRES_VARIANTS = { "15" => nil, "17" => nil, "pgbouncer" => 0, "pgbouncer-100" => 100 }.freeze

  # What the tests of the jobs may run on, by RINGSPUN_REDIS.
  REDIS_VARIANTS = %w[redis valkey].freeze

  # The first that knows of prepared statements in transaction mode.
  PGBOUNCER_LEAST = Gem::Version.new("1.21")

  class << self
    # @param version [String, nil] a major one; without it the newest that is here, or that of RINGSPUN_POSTGRES
    # @param more [Hash{Symbol => Object}] settings of the server
    # @yieldparam server [Servers] that is about to start
    # @yieldparam data [String] the folder with its pg_hba.conf
    def postgres(name = :postgres, version: chosen_version, **more)
      start([name, *version].join("-")) do |server|
        data = File.join(server.folder, "data")
        server.prepare(postgres_program("initdb", version), "--pgdata=#{data}", "--username=ringspun", "--auth=trust",
                       "--encoding=UTF8", "--locale=C", "--no-sync")
        yield server, data if block_given?
        settings = { listen_addresses: "", unix_socket_directories: server.folder, fsync: "off", full_page_writes: "off",
                     max_connections: 200, shared_buffers: "16MB", **more }.map { |setting, value| "--#{setting}=#{value}" }
        server.run(postgres_program("postgres", version), "-D", data, *settings, signal: "INT")
      end
    end

    def postgres_program(name, version = chosen_version)
      programs(name).find { |path| version.nil? || version_of(path).segments.first.to_s == version } ||
        raise("#{name} #{version} is missing: run bin/setup#{" --matrix" if version}")
    end

    # In transaction mode, before the newest server. It uses a connection for one transaction only, so that no two of a client are
    # ever on the same.
    #
    # @param max_prepared_statements [Integer] 0: it has no idea of them
    def pgbouncer(max_prepared_statements:)
      start("pgbouncer-#{max_prepared_statements}") do |server|
        File.write(File.join(server.folder, "users"), '"ringspun" ""')
        File.write(config = File.join(server.folder, "pgbouncer.ini"), <<~INI)
          [databases]
          * = host=#{postgres.folder} port=5432
          [pgbouncer]
          unix_socket_dir = #{server.folder}
          listen_port = 5432
          auth_type = trust
          auth_file = #{server.folder}/users
          pool_mode = transaction
          server_lifetime = 0
          max_prepared_statements = #{max_prepared_statements}
        INI
        server.run(pgbouncers.first || program("pgbouncer"), config, signal: "QUIT") # TERM has waited for clients since 1.23
      end
    end

    # Where clients connect: the server, or what RINGSPUN_POSTGRES has put before it.
    def postgres_endpoint
      statements = POSTGRES_VARIANTS.fetch(chosen_postgres) if chosen_postgres
      statements ? pgbouncer(max_prepared_statements: statements) : postgres
    end

    # @param name [String] of POSTGRES_VARIANTS
    # @return [Boolean] its programs are here
    def postgres_here?(name)
      return pgbouncers.any? if POSTGRES_VARIANTS.fetch(name)

      programs("postgres").any? { |path| version_of(path).segments.first.to_s == name }
    end

    # @param name [String] of REDIS_VARIANTS
    # @return [Boolean] its server is here
    def redis_here?(name) = folders.any? { |folder| File.executable?(File.join(folder, "#{name}-server")) }

    # Statements, a line each, for a server that does not run yet.
    def execute(server, data, statements)
      server.prepare(postgres_program("postgres"), "--single", "-D", data, "-c", "fsync=off", "postgres",
                     input: server.write("statements", statements))
    end

    def postgres_url = "postgres:///postgres?user=ringspun&host=#{postgres_endpoint.folder}"

    # @param options [Array<String>] that differ
    def redis(name = :redis, *options)
      start(name) do |server|
        server.run(program("redis-server"), "--port", "0", "--unixsocket", File.join(server.folder, "redis.sock"),
                   "--save", "", "--appendonly", "no", "--dir", server.folder, *options, signal: "TERM")
      end
    end

    private

    def pgbouncers = programs("pgbouncer").select { |path| version_of(path) >= PGBOUNCER_LEAST }
    def chosen_postgres = chosen("RINGSPUN_POSTGRES", POSTGRES_VARIANTS.keys)
    def chosen_version = chosen_postgres&.[](/\A\d+\z/)
  end

  # Starts it before the descriptors are counted: the server's is no test's.
  module Postgres
    def before_setup
      Servers.postgres_endpoint
      super
    end

    # For libpq and what is built on it.
    def postgres_options = { host: Servers.postgres_endpoint.folder, user: "ringspun", dbname: "postgres" }
  end

  # As for Postgres.
  module Redis
    def before_setup
      Servers.redis
      super
    end

    def redis_path = File.join(Servers.redis.folder, "redis.sock")
  end
end
