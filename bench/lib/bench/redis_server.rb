# frozen_string_literal: true

require "socket"

require File.join(Bench::ROOT, "runtime/test/support/free_port")
require File.join(Bench::ROOT, "runtime/test/support/servers")

module Bench
  # A private Redis on a TCP port of the loopback, as a remote one is reached. It ends with the process that started it. In the
  # table about fsync every write is on the disk before it is answered:
  # https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/
  class RedisServer
    FSYNC = { "no" => %w[--appendonly no], "always" => %w[--appendonly yes --appendfsync always] }.freeze

    # @param fsync [String] "no" or "always"
    def self.start(fsync: "no")
      @started ||= {}
      @started[fsync] ||= new(fsync)
    end

    attr_reader :port

    def initialize(fsync)
      @port = FreePort.find
      Servers.redis(:"bench-redis-#{fsync}", "--port", @port.to_s, "--bind", "127.0.0.1", *FSYNC.fetch(fsync))
    rescue RuntimeError => error
      raise Unavailable, error.message
    end

    def url = "redis://127.0.0.1:#{@port}"

    # Sends a command without any client library, so that none is warmed up by it. Returns a text, a number, nil or an Array of
    # them.
    def ask(*command)
      parts = command.map(&:to_s)
      connection.write("*#{parts.size}\r\n", *parts.map { |part| "$#{part.bytesize}\r\n#{part}\r\n" })
      answer
    end

    def empty = ask("FLUSHALL")

    # For processes that have their jobs in it.
    def environment = { "REDIS_URL" => url }

    # Puts jobs into the queue.
    def push(entries)
      ask("SADD", "queues", "default")
      entries.each_slice(1_000) { |slice| ask("LPUSH", "queue:default", *slice) }
    end

    # How many jobs wait in the queue.
    def waiting = ask("LLEN", "queue:default")

    # One of them.
    def entry = ask("LINDEX", "queue:default", 0)

    # Jobs in the queues and in flight, and those that have failed.
    def jobs_left
      lists = ask("KEYS", "queue:*")
      { left: lists.sum { |list| ask("LLEN", list) }, failed: ask("ZCARD", "retry") }
    end

    private

    def connection = @connection ||= TCPSocket.new("127.0.0.1", @port)

    def answer
      line = connection.gets("\r\n", chomp: true)
      case line[0]
      when "+" then line[1..]
      when ":" then Integer(line[1..])
      when "*" then Array.new(Integer(line[1..])) { answer }
      when "$" then line == "$-1" ? nil : connection.read(Integer(line[1..]) + 2)[0...-2]
      else raise "redis-server says #{line}"
      end
    end
  end
end
