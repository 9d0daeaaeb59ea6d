# frozen_string_literal: true

require "socket"

require File.join(Bench::ROOT, "runtime/test/support/servers")

module Bench
  # A private Redis on a TCP port of the loopback, as a remote one is reached. It ends with the process that started it. In the
  # table about fsync every write is on the disk before it is answered:
  # https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/
  class RedisServer
    FSYNC = { "no" => %w[--appendonly no], "always" => %w[--appendonly yes --appendfsync always] }.freeze

    # Below the ports that the kernel gives to clients, so that no client takes the port before the server does.
    PORTS = (12_000...30_000)

    class << self
      # @param fsync [String] "no" or "always"
      def start(fsync: "no")
        @started ||= {}
        @started[fsync] ||= new(fsync)
      end

      def free_port
        port = rand(PORTS)
        TCPServer.new("127.0.0.1", port).close
        port
      rescue Errno::EADDRINUSE
        retry
      end
    end

    attr_reader :port

    def initialize(fsync)
      @port = self.class.free_port
      Servers.start(:"bench-redis-#{fsync}") do |server|
        server.run(Servers.program("redis-server"), "--port", @port.to_s, "--bind", "127.0.0.1", "--save", "",
                   *FSYNC.fetch(fsync), "--dir", server.folder, signal: "TERM")
      end
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
