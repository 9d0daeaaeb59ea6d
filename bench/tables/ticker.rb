# frozen_string_literal: true

compute_until = lambda do |meter, time|
  turns = 0
  turns += 1 while meter.now < time
end

# The work beside the ticker: each of the others computes in slices, and yields after each slice.
others_of = lambda do |meter, beside:, slice:, seconds:, many:|
  slices = (seconds / slice / (beside == "begin" ? 1 : many)).ceil
  polled, = IO.pipe
  give_way = { "yield" => -> { sleep(0) }, "begin" => -> {}, "poll" => -> { polled.wait_readable(0) } }.fetch(beside)
  body = lambda do
    (beside == "begin" ? 1 : slices).times do
      compute_until.call(meter, meter.now + slice)
      give_way.call
    end
  end
  [many, body]
end

# How late each tick came after the one before, with the stock sleep. `start` runs a block beside the others.
ticks_beside = lambda do |meter, period:, start:, finish:, **others|
  many, body = others_of.call(meter, **others)
  done = false
  gaps = []
  meter.measure do
    ticker = start.call do
      last = meter.now
      until done
        sleep(period)
        now = meter.now
        gaps << (now - last)
        last = now
      end
    end
    sleep(period * 2) # it ticks before the others begin
    Array.new(many) { start.call { body.call } }.each(&finish)
    done = true
    finish.call(ticker)
  end
  meter.note("gap_worst", gaps.max)
  meter.note("gap_median", gaps.sort[gaps.size / 2])
  { ticked: gaps.size > 2 }
end

Bench.table "ticker" do
  title "A ticker beside those that compute"
  about "A strand that sleeps 50 ms again and again: the longest and the median time from one tick to the next. Beside it " \
        "three compute 100 ms and yield, 50 begin with 20 ms of computing, or one polls after every 100 ms."
  size period: 0.05, seconds: 3.0
  quick seconds: 0.6
  warm_up period: 0.01, seconds: 0.05, slice: 0.01
  row "yield", beside: "yield", slice: 0.1, many: 3
  row "begin", beside: "begin", slice: 0.02, many: 50, quick: false
  row "poll", beside: "poll", slice: 0.1, many: 1, quick: false
  proof { |**| { ticked: true } }
  columns :gap_worst, :gap_median, :real
  against_peer :gap_worst, :gap_median

  # A thread for each, with Ruby's time slices.
  contender "threads" do |meter, **size|
    ticks_beside.call(meter, start: Thread.method(:new), finish: :value.to_proc, **size)
  end

  # A task for each.
  contender "async", requires: "async" do |meter, **size|
    Sync { |task| ticks_beside.call(meter, start: task.method(:async), finish: :wait.to_proc, **size) }
  end

  # A strand for each, by the fiber scheduler: the code is the same.
  contender "ringspun", requires: "ringspun" do |meter, **size|
    Ringspun.run { |machine| ticks_beside.call(meter, start: machine.method(:spin), finish: :await.to_proc, **size) }
  end

  targets "gap_worst <= 1.0 x async at yield", "gap_worst <= 1.0 x async at begin", "gap_worst <= 1.0 x async at poll",
          "gap_median <= 1.1 x async", "total <= 1.1 x ringspun epoll"
end
