# frozen_string_literal: true

# Contenders that behave in each of the ways a sample can end.
Bench.table "behaviours" do
  size times: 10
  warm_up times: 1
  proof { |times:| { done: times } }

  contender "right" do |meter, times:|
    meter.measure { nil }
    meter.operations = times
    meter.note(:parked, 7)
    { done: times }
  end

  contender "wrong" do |meter, times:|
    meter.measure { nil }
    { done: times - 1 }
  end

  contender("absent", requires: "ringspun_bench_no_such_library") {}
  contender("ringspun", requires: "ringspun_bench_no_such_library") {}
  contender("unable") { |_meter, **| raise Bench::Unavailable, "not on this machine" }
  contender("raising") { |_meter, **| raise ArgumentError, "something broke" }
  contender("unmeasured") { |_meter, times:| { done: times } }
  contender("hanging") { |_meter, **| sleep }
  contender("crashing") { |_meter, **| Process.kill(:KILL, Process.pid) && sleep }

  # Leaves a process behind, which holds a lock for as long as it lives.
  contender "leaving" do |meter, times:|
    meter.measure { nil }
    lock = File.open(ENV.fetch("BENCH_LOCK"), "w").tap { |file| file.flock(File::LOCK_SH) }
    spawn("sleep", "1000", lock => lock)
    { done: times }
  end

  # Another Ruby has gems of its own, so it is told of none of ours.
  contender "uringmachine" do |meter, times:|
    meter.measure { nil }
    meter.note(:parked, ENV.fetch("WHICH_RUBY") + ENV.values_at("RUBYLIB", "RUBYOPT", "BUNDLE_GEMFILE").compact.join)
    { done: times }
  end

  contender "fresh" do |meter, times:|
    meter.measure { nil }
    meter.note(:parked, Process.pid)
    { done: times }
  end
end
