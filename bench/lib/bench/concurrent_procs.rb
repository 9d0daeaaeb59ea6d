# frozen_string_literal: true

module Bench
  # The contenders of the tables of concurrent procs. All have the same names in Kernel and IO, so a table has one block for all
  # of them: they differ only in the library that is called.
  module ConcurrentProcs
    PEER = "concurrently"
    BATCH = 100

    # A background proc may need to wait for others after the region. So often at most: one that never runs must be a wrong
    # result, and not a bench that hangs.
    TURNS = 100

    module_function

    # Declares all but the floor. Ours run `scale` times as often as the peer, so that both take about as long.
    def contend(table, scale:, &body)
      # As its guides do it: at the root, with nothing around it.
      table.contender(PEER, requires: File.join(ROOT, "bench/peers/concurrently"), size: { scale: 1 }) do |meter, **size|
        body.call(meter, **size)
      end
      # Not on sqpoll: a thread of the kernel's that submits has nothing to do here.
      table.contender(SUBJECT, requires: "ringspun/core_ext", size: { scale: }, backends: %w[uring epoll]) do |meter, **size|
        raise "this is not Ringspun alone" if defined?(Concurrently)

        Ringspun.run { body.call(meter, **size) }
      end
      # By its path: the peer's gem has the same name. As programs for the peer use it.
      table.contender(DROP_IN, requires: File.join(ROOT, "runtime/lib/concurrently"), size: { scale: }) do |meter, **size|
        raise "this is not the drop-in" unless Concurrently::Proc < Ringspun::ConcurrentProc

        body.call(meter, **size)
      end
    end

    # Runs the region for so many operations with the collector on, and then with it off for the reading. In this order, for on a
    # heap that has grown without collections the first would meet none. Returns how often the proc has run, by `ran`.
    def measure(meter, count, ran, before: -> {}, &region)
      meter.operations = count
      %i[time_with_gc measure_without_gc].each.with_index(1) do |way, round|
        before.call
        meter.public_send(way, &region)
        settle(ran, round * count)
      end
      { ran: ran.call }
    end

    # How often the proc has run after both. For the proof.
    def runs_of(count) = 2 * count

    def settle(ran, expected)
      TURNS.times { wait 0 if ran.call < expected }
    end
  end
end
