# frozen_string_literal: true

require "bench/concurrent_procs"

# Notes the memory of one of so many. The block starts them all, and lets them reach their wait.
weigh = lambda do |meter, evaluations, &start|
  before = meter.resident_bytes
  started = start.call
  meter.note(:rss_per_strand, (meter.resident_bytes - before) / evaluations)
  started
end

Bench.table "waiting_evaluations" do
  title "Evaluations that wait at once"
  about "So many evaluations wait to be resumed: resident bytes for each, beside a bare parked fiber. Then all of them, or the " \
        "first 100, are resumed and give way to each other by `wait 0`, which is the operation. The floor's fibers transfer to " \
        "each other in a ring: with 10,000 of them, stacks come from memory and not from a cache. The collector is off, and on " \
        "for `GC on op/s`."
  size switches: 50_000
  quick switches: 10_000
  warm_up evaluations: 10, active: 10, switches: 1_000
  row "100", evaluations: 100, active: 100, quick: false
  row "10,000", evaluations: 10_000, active: 10_000
  row "100 of 10,000", evaluations: 10_000, active: 100, quick: false
  proof { |switches:, scale:, **| { ran: Bench::ConcurrentProcs.runs_of(switches * scale), lost: 0 } }
  columns :real_ns, :cpu_ns, :rate, :gc_rate, :objects, :rss_per_strand
  against_floor :rss_per_strand
  against_peer :real_ns, :cpu_ns

  Bench::ConcurrentProcs.contend(self, scale: 10) do |meter, evaluations:, active:, switches:, scale:|
    count = switches * scale
    turns = count / active
    ran = 0
    ended = 0
    test = concurrent_proc do
      while await_resume!
        turns.times { wait 0 }
        ran += turns
      end
      ended += 1
    end
    started = weigh.call(meter, evaluations) do
      Array.new(evaluations) { test.call_detached }.tap { wait 0 }
    end
    resume = -> { started.first(active).each { |evaluation| evaluation.resume!(true) } }
    proof = Bench::ConcurrentProcs.measure(meter, count, -> { ran }, before: resume) do
      # The root yields as often as each of them; its own switches are not counted.
      turns.times { wait 0 }
    end
    started.each { |evaluation| evaluation.resume!(false) }
    wait 0
    { **proof, lost: evaluations - ended }
  end

  bare "bare fiber", size: { scale: 10 } do |meter, evaluations:, active:, switches:, scale:|
    count = switches * scale
    turns = count / active
    ran = 0
    main = Fiber.current
    fibers = []
    weigh.call(meter, evaluations) do
      evaluations.times do |index|
        fiber = Fiber.new do
          main.transfer
          following = fibers[(index + 1) % active]
          loop do
            turns.times { following.transfer }
            ran += turns
            # The last time round, each lets the next one see the end.
            (index + 1 == active ? main : following).transfer
          end
        end
        fibers << fiber.tap(&:transfer)
      end
    end
    proof = Bench::ConcurrentProcs.measure(meter, count, -> { ran }) { fibers.first.transfer }
    { **proof, lost: fibers.count { |fiber| !fiber.alive? } }
  end

  targets "rss_per_strand <= floor + 2048 at 10,000", "cpu_ns flat within 100% at 100 and 10,000",
          "cpu_ns flat within 100% at 100 and 100 of 10,000", "cpu_ns/floor flat within 100% at 100 and 10,000",
          "cpu_ns <= 1.1 x ringspun epoll"
end
