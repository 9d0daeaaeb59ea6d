# frozen_string_literal: true

module Bench
  # The ways to wait for the gem pg, for what has a method `by_pg(meter, start, finish, ...)`. There `start` runs a block beside
  # the others, and `finish` awaits its value.
  module ByPg
    def in_threads(meter, *, **) = by_pg(meter, Thread.method(:new), :value, *, **)

    # A task of Async for each.
    def in_async(meter, *, **)
      Sync { |task| by_pg(meter, task.method(:async), :wait, *, **) }
    end

    # A strand for each, and pg by our scheduler.
    def in_strands(meter, *, **)
      Ringspun.run { |machine| by_pg(meter, machine.method(:spin), :await, *, **) }
    end
  end
end
