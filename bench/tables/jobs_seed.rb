# frozen_string_literal: true

require "bench/enqueuing"

strategies = { "single" => :single, "named pool" => :named_pool, "pool" => :pool, "group commit" => :group_commit }

# Benchee's statistics of the times of calls.
describe = lambda do |meter, times|
  average = times.sum.fdiv(times.size)
  deviation = Math.sqrt(times.sum { |time| (time - average)**2 } / times.size) / average
  { average:, deviation:, median: times[times.size / 2], p99: times[times.size * 99 / 100] }.each do |name, value|
    meter.note(name, value)
  end
end

Bench.table "jobs_seed" do
  title "Enqueuing jobs, as Exq measures it"
  about "Callers that enqueue one job after the other, by the three strategies of Exq and the four of ours: `single` is one " \
        "connection for all, `named pool` one of as many as there are cores by chance, `pool` the same checked out and " \
        "returned, `group commit` whatever has come together at once. Ours are strands; Redis is private, over TCP, and " \
        "emptied before and after each. `ips` is one caller's."
  form :benchee
  size seconds: 4.0
  quick seconds: 0.3
  warm_up seconds: 1.0
  [1, 6, 12, 24, 48].each { |callers| row callers.to_s, callers:, quick: callers == 48 }
  proof { |**| { lost: 0 } }
  columns :rate, :cpu_ns
  against_peer :real_ns

  %w[default named poolboy].each do |strategy|
    contender "exq #{strategy}", requires: File.join(Bench::ROOT, "bench/peers/exq") do |meter, callers:, seconds:|
      Bench::Exq.measure(meter, strategy, callers:, seconds:)
    end
  end

  # Group commit is what ours does unless it is told otherwise.
  strategies.each do |name, strategy|
    declare = strategy == :group_commit ? method(:subject) : method(:beside)
    declare.call "ringspun, #{name}", requires: "bench/jobs/ringspun" do |meter, callers:, seconds:|
      server = Bench::RedisServer.start
      Bench::Jobs::Ringspun.connect(server, strategy:)
      Ringspun.run do |machine|
        enqueuing = Bench::Enqueuing.new(server, machine.method(:spin), :await)
        enqueuing.measure(meter, callers:, seconds:, timed: true).tap do
          describe.call(meter, enqueuing.times)
          meter.note(:seconds, seconds)
        end
      end
    end
  end
end
