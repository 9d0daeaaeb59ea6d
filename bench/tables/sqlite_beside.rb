# frozen_string_literal: true

require "bench/flat_out"
require "bench/jobs_file"

Bench.table "sqlite_beside" do
  title "Processes that share a file"
  about "A process enqueues jobs of 217 bytes, 64 by each call of our storage in a file, and another one fetches and " \
        "acknowledges them, 64 by each call as well: without a pause, for 2 s alone, and then for 2 s beside each other. " \
        "`kept` is the rate of the one that lost more, over its own alone; `worst gap` is the longest call of either then."
  size seconds: 2.0
  quick seconds: 0.5
  warm_up seconds: 0.0
  row "full", durable: "full"
  row "normal", durable: "normal"
  proof { |**| { dry: 0 } }
  columns :kept, :gap_worst, :rate, :cpu_ns
  against_peer :cpu_ns

  # Neither process has anything to do with a backend.
  contender "ringspun", requires: "ringspun", backends: [Bench::MAIN_BACKEND] do |meter, seconds:, durable:|
    next if seconds.zero? # the processes are warmed up by themselves

    Bench::FlatOut.new(Bench::JobsFile.new(meter.scratch, durable), seconds).measure(meter)
  end

  targets "kept >= 0.25", "gap_worst <= 0.25"
end
