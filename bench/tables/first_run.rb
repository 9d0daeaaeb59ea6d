# frozen_string_literal: true

require "bench/statistics"
require "rbconfig"

# The region, in a program of its own: what a library that is loaded needs for one task that does nothing.
measure = lambda do |meter, library, task, programs:, times:, environment: {}|
  script = <<~RUBY
    #{"require #{library.inspect}" if library}
    read = -> { [Process.times.utime, Process.times.stime, Process.clock_gettime(Process::CLOCK_MONOTONIC)] }
    #{"#{task}; " * 3 if times > 1}
    before = read.call
    #{times}.times { #{task} }
    puts read.call.zip(before).map { |now, was| (now - was) / #{times} }.join(" ")
  RUBY
  clocks = Array.new(programs) do
    answer = IO.popen([environment, RbConfig.ruby, "-I#{Bench::ROOT}/runtime/lib", "-e", script], &:read)
    raise "the program has failed" unless Process.last_status.success?

    answer.split.map { |seconds| Float(seconds) }
  end
  meter.take(**%i[user system real].zip(clocks.transpose.map { |seconds| Bench::Statistics.median(seconds) }).to_h)
  meter.operations = 1
  { programs: clocks.size }
end

Bench.table "first_run" do
  title "A run that does nothing"
  about "A program that begins one task and waits for its end, once the library is loaded: the first of the " \
        "program, which opens a ring, and one of the next 1,000. The median of nine programs."
  size programs: 9, times: 1
  quick programs: 3
  warm_up programs: 1
  row "the first", times: 1
  row "the next", times: 1_000
  proof { |programs:, **| { programs: } }
  columns :real_ns, :cpu_ns
  against_peer :real_ns

  contender "threads" do |meter, **size|
    measure.call(meter, nil, "Thread.new {}.join", **size)
  end

  contender "async", requires: "async" do |meter, **size|
    measure.call(meter, "async", "Async {}.wait", **size)
  end

  contender "ringspun", requires: "ringspun", backends: Bench::BACKENDS.keys.first(2) do |meter, **size|
    environment = { "RINGSPUN_BACKEND" => Ringspun.backend.name.to_s }
    measure.call(meter, "ringspun", "Ringspun.run {}", **size, environment:)
  end

  targets "real_ns <= 100_000 at the first", "real_ns <= 0.5 x threads at the next",
          "cpu_ns <= 1.1 x ringspun epoll"
end
