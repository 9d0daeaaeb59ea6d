# frozen_string_literal: true

module Bench
  # Who runs in the tables of concurrent procs, and how. All have the same names in Kernel and IO, so a table has one block for
  # all: what is called is the one difference between them.
  module ConcurrentProcs
    PEER = "concurrently"
    BATCH = 100

    # A background proc may need another turn after the region. Bounded: one that never runs shall be a wrong result, and not
    # a bench that hangs.
    TURNS = 100

    module_function

    # Declares all but the floor. `scale` is by how much more often ours run than the peer, which takes as long as that.
    def contend(table, scale:, &body)
      # As its guides tell: at the root, without anything around it.
      table.contender(PEER, requires: File.join(ROOT, "bench/peers/concurrently"), size: { scale: 1 }) do |meter, **size|
        body.call(meter, **size)
      end
      # A thread of the kernel's that submits has nothing to do here.
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

    # Runs the region for so many operations with the collector on, and then with it off, which is the reading: a region on a
    # heap that grew without collections would meet none. Answers how often the proc has run, which is what `ran` says.
    def measure(meter, count, ran, before: -> {}, &region)
      meter.operations = count
      %i[time_with_gc measure_without_gc].each.with_index(1) do |way, round|
        before.call
        meter.public_send(way, &region)
        settle(ran, round * count)
      end
      { ran: ran.call }
    end

    # How often it has run then. For the proof.
    def runs_of(count) = 2 * count

    def settle(ran, expected)
      TURNS.times { wait 0 if ran.call < expected }
    end
  end
end
