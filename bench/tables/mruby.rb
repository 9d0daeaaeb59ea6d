# frozen_string_literal: true

require "bench/mruby"

Bench.table "mruby" do
  title "mruby"
  about "The tables of concurrent procs on mruby, in the seed's form, and switch and spawn beside them. A spawn is that of a " \
        "strand, in batches of 100. The peer is the gem concurrently on the same mruby, with a stand-in for mruby-poll. The " \
        "collector is off, and on for `GC on op/s`. The floor is mruby alone, with methods in C: for call one that calls its " \
        "block, for await_readable and await_writable one that does so after poll(2), for wait 0, waiting call and switch a " \
        "fiber that is resumed and yields, for spawn and the other rows one that the C API makes, resumed, and ends. Where a " \
        "row awaits an Array of 100 evaluations, the floor has one of 100 fibers. `bare` is a plain proc that mruby code " \
        "calls; for switch a fiber that it resumes and that yields, for spawn Fiber.new and resume."
  size count: 60_000
  quick count: 6_000
  warm_up count: 3_000
  ["call", "call_nonblock", "call_detached", "call_and_forget", "wait 0", "await_readable", "await_writable",
   "awaited call_detached", "waiting call", "waiting call_nonblock", "waiting call_detached", "waiting call_and_forget",
   "switch, 3 strands", "switch, 1,000 strands"].each { |row| row row, row:, quick: ["call", "wait 0"].include?(row) }
  # A fiber of the floor's takes more than a kilobyte, and none is collected.
  row "spawn", row: "spawn", count: 15_000, quick: false
  proof { |count:, scale:, **| { done: 3 * count * scale } }
  columns :real_ns, :rate, :gc_rate
  against_floor :real_ns
  against_peer :real_ns

  Bench::Mruby.contend(self, scale: 10) do |meter, command, _, row:, count:, scale:, **kind|
    answer = Bench::Mruby.work(command, row, count * scale, **kind)
    meter.operations = count * scale
    # The clock of the program is all that mruby has.
    meter.take(user: 0, system: 0, real: answer.fetch(:real))
    meter.note(:gc_real, answer.fetch(:gc_real))
    answer.slice(:done)
  end

  targets "real_ns <= 1.5 x floor", "rate >= 5 x concurrently at call", "rate >= 15 x concurrently at waiting call"
end
