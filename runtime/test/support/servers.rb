# frozen_string_literal: true

require "etc"
require "io/nonblock"
require "socket"
require "tmpdir"

# Servers of our own, for tests and the bench, each started when somebody first wants it and stopped with the process, on a Unix
# socket in a temporary folder. A test class that needs one includes Servers::Postgres or Servers::Redis.
#
# Between us and a server stands a shell that knows when we end, however we do: its end of a socket pair then says so. It stops
# the server, waits for it and removes the folder. Should somebody kill the shell, the kernel stops the server.
class Servers
  START_SECONDS = 20

  # Forks once more, so that it is no child of ours and no Process.wait in a test can meet it.
  KEEPER = <<~'SH'
    folder=$1 signal=$2
    shift 2
    (
      "$@" >"$folder/log" 2>&1 3<&- &
      read -r _ <&3
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

    # A program that Debian may keep off PATH. Where there is no Redis there may be a Valkey, for us the same.
    def program(name)
      folders = [*ENV["PATH"].split(":"), *Dir["/usr/lib/postgresql/*/bin"].sort_by { |folder| -folder[/\d+/].to_i }]
      [name, name.sub(/\Aredis-/, "valkey-")].product(folders).map { |file, folder| File.join(folder, file) }
                                             .find { |path| File.executable?(path) } || raise("#{name} is missing: run bin/setup")
    end
  end

  defined?(Minitest) ? Minitest.after_run { stop } : at_exit { stop }

  attr_reader :folder

  # The block gets the server and starts it by run.
  def initialize(name)
    @folder = Dir.mktmpdir("ringspun-#{name}-")
    File.chown(user.uid, user.gid, @folder)
    yield self
    wait_until_ready
  end

  # Runs a program to its end, as the server's user.
  def prepare(*command)
    log = File.join(@folder, "prepare.log")
    pid = spawn(*as_user(command), in: File::NULL, %i[out err] => log, chdir: "/")
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

  # Returns when it is gone.
  def stop
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

  def as_user(command, *options)
    options += ["--reuid=#{user.uid}", "--regid=#{user.gid}", "--clear-groups"] if Process.uid.zero?
    ["setpriv", *options, *command]
  end

  # Of both servers only the log tells.
  def wait_until_ready
    log = File.join(@folder, "log")
    give_up = Process.clock_gettime(Process::CLOCK_MONOTONIC) + START_SECONDS
    until File.exist?(log) && File.read(log).match?(/ready to accept connections/i)
      raise "not ready:\n#{File.read(log) if File.exist?(log)}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > give_up

      sleep 0.01
    end
  rescue StandardError
    stop
    raise
  end

  class << self
    # @param more [Hash{Symbol => Object}] settings of the server
    def postgres(name = :postgres, **more)
      start(name) do |server|
        data = File.join(server.folder, "data")
        server.prepare(program("initdb"), "--pgdata=#{data}", "--username=ringspun", "--auth=trust", "--encoding=UTF8",
                       "--locale=C", "--no-sync")
        settings = { listen_addresses: "", unix_socket_directories: server.folder, fsync: "off", full_page_writes: "off",
                     max_connections: 200, shared_buffers: "16MB", **more }.map { |setting, value| "--#{setting}=#{value}" }
        server.run(program("postgres"), "-D", data, *settings, signal: "INT")
      end
    end

    def postgres_url = "postgres:///postgres?user=ringspun&host=#{postgres.folder}"

    def redis
      start(:redis) do |server|
        server.run(program("redis-server"), "--port", "0", "--unixsocket", File.join(server.folder, "redis.sock"),
                   "--save", "", "--appendonly", "no", "--dir", server.folder, signal: "TERM")
      end
    end
  end

  # Starts it before the descriptors are counted: the server's is no test's.
  module Postgres
    def before_setup
      Servers.postgres
      super
    end

    # For libpq and what is built on it.
    def postgres_options = { host: Servers.postgres.folder, user: "ringspun", dbname: "postgres" }
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
