# frozen_string_literal: true

# Each parked fiber needs two mappings, its stack and the guard page below it, so the default limit of 65,530 mappings allows
# about 32,700. As many strands as mappings are certain to reach the limit.
limit = File.readable?("/proc/sys/vm/max_map_count") ? File.read("/proc/sys/vm/max_map_count").to_i : 65_530

# Starts `count` of something that parks, and notes the memory of one. `park` starts one, `settle` lets all reach their wait,
# `release` lets them end and returns how many did.
#
# A start beyond the limit has to raise an error that names the limit, and must not end those that are parked.
weigh = lambda do |meter, count, park:, release:, settle: -> {}|
  before = meter.resident_bytes
  parked = 0
  error = nil
  meter.measure do
    while parked < count
      park.call
      parked += 1
    end
  rescue StandardError => error
    meter.note(:limit_told, error.message.match?(/vm\.max_map_count is/) ? 1 : 0)
  ensure
    settle.call
  end
  meter.note(:parked, parked)
  meter.note(:rss_per_strand, (meter.resident_bytes - before) / [parked, 1].max)
  { parked:, lost: parked - release.call, error: error && "#{error.class}: #{error.message}" }
end

Bench.table "parked" do
  title "Parked strands"
  about "30,000 strands which wait, at the kernel's default limit of mappings: resident bytes for each, beside a bare " \
        "parked fiber. Past the limit, spawning has to raise an error that names it (`limit told` is 1)."
  size past_limit: false
  quick strands: 2_000
  warm_up strands: 100, past_limit: false
  row "30,000", strands: 30_000
  unasked = "not asked of it"
  if limit <= 65_530
    row "past the limit", strands: limit, past_limit: true, quick: false,
                          skipped: { threads: unasked, async: unasked, "bare fiber": unasked }
  end
  scale "strands", :strands, 100, 1_000, 10_000, 30_000, most: { "threads" => 1_000 }
  proof do |strands:, past_limit:|
    past_limit ? { parked: 30_000..strands, lost: 0 } : { parked: strands, lost: 0, error: nil }
  end
  columns :rss_per_strand, :parked, :limit_told, :real
  against_floor :rss_per_strand
  against_peer :rss_per_strand

  # Threads which wait for a queue that nobody fills. Fewer of them: 30,000 take over a minute to start, and each takes the
  # same memory.
  contender "threads", size: { strands: 2_000 } do |meter, strands:, **|
    gate = Thread::Queue.new
    threads = []
    weigh.call(meter, strands, park: -> { threads << Thread.new { gate.pop } },
                               release: lambda {
                                 gate.close
                                 threads.count(&:join)
                               })
  end

  # Tasks which wait for a queue that nobody fills.
  contender "async", requires: "async" do |meter, strands:, **|
    gate = Thread::Queue.new
    Sync do |task|
      tasks = []
      weigh.call(meter, strands, park: -> { tasks << task.async { gate.pop } },
                                 release: lambda {
                                   gate.close
                                   tasks.count { |waiting| waiting.wait.nil? }
                                 })
    end
  end

  # Strands which wait for a stock Queue that nobody fills.
  contender "ringspun fs", requires: "ringspun" do |meter, strands:, **|
    gate = Thread::Queue.new
    Ringspun.run do |machine|
      spun = []
      weigh.call(meter, strands, park: lambda {
        spun << machine.spin { gate.pop }
        machine.yield
        raise spun.pop.error if spun.last.error
      },
                                 release: lambda {
                                   gate.close
                                   spun.count { |waiting| waiting.await.nil? }
                                 })
    end
  end

  # Strands which wait for a Ringspun::Queue that nobody fills. The yield lets each reach its wait before the next is spun: a
  # strand gets its stack when it starts, and fails then if it is beyond the limit.
  contender "ringspun", requires: "ringspun" do |meter, strands:, **|
    gate = Ringspun::Queue.new
    Ringspun.run do |machine|
      waiting = 0
      spun = []
      park = lambda do
        spun << machine.spin do
          waiting += 1
          gate.pop
        end
        machine.yield
        raise spun.pop.error if spun.last.error
      end
      # So often at most: a strand that never starts must be a wrong result, and not a bench that hangs.
      settle = -> { 1_000.times { machine.yield if waiting < spun.size } }
      weigh.call(meter, strands, park:, settle:,
                                 release: lambda {
                                   waiting.times { gate.push(true) }
                                   spun.count(&:await)
                                 })
    end
  end

  bare "bare fiber" do |meter, strands:, **|
    fibers = []
    weigh.call(meter, strands, park: -> { fibers << Fiber.new { Fiber.yield }.tap(&:resume) },
                               release: lambda {
                                 fibers.each(&:resume)
                                 fibers.count { |fiber| !fiber.alive? }
                               })
  end

  targets "parked >= 30_000", "rss_per_strand <= floor + 2048 at 30,000", "limit_told >= 1 at past the limit",
          "total <= 1.1 x ringspun epoll"
end
