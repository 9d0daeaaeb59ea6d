# frozen_string_literal: true

require "socket"

require "bench/workspace"
require "bench/floor_program"

module Bench
  # The clients of a contender: bench/floor/connections.c in processes of its own, so that they are faster than any contender and
  # their cost is not counted.
  class Clients
    LOOPBACK = Addrinfo.tcp("127.0.0.1", 0)
    BACKLOG = 1024

    # The same as in connections.c: connections for each ticket, and tickets under way.
    TICKET = 128
    TICKETS = 4

    # Yields clients which connect `count` times, a multiple of TICKET, and close each connection at once.
    def self.storm(port, count, &) = new(count, "storm", port).with(&)

    # Yields a client which connects `count` times and keeps the connections until the block ends.
    def self.hold(port, count, &) = new(count, "hold", port, count).with(&)

    # Descriptors for everything but the idle connections.
    RESERVED = 500

    # As many idle connections as the limit of descriptors allows, in this process and in the clients, which hold the other ends.
    def self.affordable(idle) = [idle, Process.getrlimit(:NOFILE).first - RESERVED].min

    # Yields while so many connections from clients wait, and notes the memory of one. `accept` takes one and waits on it in a
    # strand, `settle` lets all reach their wait, `ended` returns how many have seen the end: a reset, for a close would leave the
    # clients' ports in TIME_WAIT.
    def self.among_idle(meter, idle, port, accept, settle, ended)
      idle = affordable(idle)
      meter.note(:idle, idle)
      return yield if idle.zero?

      proof = nil
      hold(port, idle) do |clients|
        before = meter.resident_bytes
        clients.start
        1.upto(idle) do |number|
          accept.call
          clients.go_on(number)
        end
        settle.call
        meter.note(:rss_per_idle, (meter.resident_bytes - before) / idle)
        proof = yield
      end
      lost = idle - ended.call
      raise "#{lost} idle connections were lost" unless lost.zero?

      proof
    end

    # The port of a listening socket, by its descriptor.
    def self.port_of(descriptor)
      Socket.for_fd(descriptor).tap { |socket| socket.autoclose = false }.local_address.ip_port
    end

    def initialize(count, *arguments)
      @tickets = (count.to_f / TICKET).ceil
      @pipe = IO.popen([FloorProgram.new("connections.c").path, *arguments.map(&:to_s)], "w")
    end

    def with
      yield self
      @pipe.close
      raise "the clients failed" unless $?.success?
    end

    def start = grant(TICKETS)

    # Called with the number of accepted connections: after each whole ticket it grants another one.
    def go_on(accepted) = (accepted % TICKET).zero? && grant(1)

    private

    def grant(count)
      count = [count, @tickets].min
      @tickets -= count
      @pipe.syswrite("t" * count)
    end
  end
end
