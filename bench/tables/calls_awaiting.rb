# frozen_string_literal: true

require "bench/concurrent_procs"

# rubocop:disable Lint/UselessTimes -- as the seed has them: one call, and a turn for all others
forms = {
  "call" => lambda { |test, count|
    count.times do
      1.times { test.call }
      wait 0
    end
  },
  "call_nonblock" => lambda { |test, count|
    count.times do
      1.times { test.call_nonblock }
      wait 0
    end
  },
  "call_detached" => lambda { |test, count|
    count.times do
      1.times { test.call_detached }
      wait 0
    end
  },
  "call_and_forget" => lambda { |test, count|
    count.times do
      1.times { test.call_and_forget }
      wait 0
    end
  }
}

Bench.table "calls_awaiting" do
  title "Calling and waiting"
  about "One call of a concurrent proc that waits (`wait 0`) and then counts, and `wait 0` after it. The collector is off, and " \
        "on for `GC on op/s`. The floor calls a plain proc, and nothing waits."
  size calls: 10_000
  quick calls: 2_000
  warm_up calls: 500
  forms.each_key { |form| row form, form:, quick: form == "call" }
  proof { |calls:, scale:, **| { ran: Bench::ConcurrentProcs.runs_of(calls * scale) } }
  columns :real_ns, :cpu_ns, :rate, :gc_rate, :objects
  against_floor :real_ns
  against_peer :real_ns, :cpu_ns

  Bench::ConcurrentProcs.contend(self, scale: 4) do |meter, form:, calls:, scale:|
    ran = 0
    test = concurrent_proc do
      wait 0
      ran += 1
    end
    Bench::ConcurrentProcs.measure(meter, calls * scale, -> { ran }) { forms.fetch(form).call(test, calls * scale) }
  end

  bare "plain proc", size: { scale: 20 } do |meter, calls:, scale:, **|
    ran = 0
    test = proc { ran += 1 }
    Bench::ConcurrentProcs.measure(meter, calls * scale, -> { ran }) { (calls * scale).times { 1.times { test.call } } }
  end

  targets "objects <= 0.01 at call", "cpu_ns <= 1.1 x ringspun epoll"
end
# rubocop:enable Lint/UselessTimes
