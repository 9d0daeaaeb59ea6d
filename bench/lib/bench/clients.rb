# frozen_string_literal: true

require "socket"

require "bench/workspace"
require "bench/floor_program"

module Bench
  # The other side of a contender's connections: bench/floor/connections.c in processes of its own, so that it is faster
  # than any contender and what it costs is not counted.
  class Clients
    LOOPBACK = Addrinfo.tcp("127.0.0.1", 0)
    BACKLOG = 1024

    # What connections.c says: connections for each ticket, and how many tickets are under way.
    TICKET = 128
    TICKETS = 4

    # Yields clients which connect `count` times, a number of whole tickets, and are gone at once.
    def self.storm(port, count, &) = new(count, "storm", port).with(&)

    # Yields a client which connects `count` times and keeps the connections until the block ends.
    def self.hold(port, count, &) = new(count, "hold", port, count).with(&)

    # Descriptors for everything but the idle connections.
    RESERVED = 500

    # What the limit of descriptors leaves room for; the parent's as well as that of the clients, who hold the other ends.
    def self.affordable(idle) = [idle, Process.getrlimit(:NOFILE).first - RESERVED].min

    # Yields while so many connections wait, which are opened from outside, and asks what one weighs. `accept` takes one and
    # waits on it in a strand, `settle` lets all reach their wait, `ended` answers how many have seen the end: a reset, with
    # which their clients leave no port behind.
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

    # Where the socket with that number listens.
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

    # To be called when so many have been accepted: for the last of each ticket, others may come.
    def go_on(accepted) = (accepted % TICKET).zero? && grant(1)

    private

    def grant(count)
      count = [count, @tickets].min
      @tickets -= count
      @pipe.syswrite("t" * count)
    end
  end
end
