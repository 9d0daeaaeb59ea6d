# frozen_string_literal: true

require "bench/jobs_file"
require "bench/working"

node = "bench"
arguments = [1_021, "u" * 60, { "urgent" => true }].freeze
batch = 64

# Where the pages of the web look, with as many jobs waiting: the seconds of the slowest look.
slowest_look = lambda do |meter, storage, depth|
  positions = [0, depth / 2, [depth - 25, 0].max]
  looks = [-> { storage.stats }, -> { storage.queues }]
  positions.each do |from|
    looks.push(-> { storage.list("default", from, 25) }, -> { storage.scan(:schedule, from, 25) },
               -> { storage.scan(:schedule, from, 25, from_end: true) })
  end
  looks.map do |look|
    began = meter.now
    look.call
    meter.now - began
  end.max
end

Bench.table "sqlite_depth" do
  title "Many jobs in a file"
  about "20,000 jobs are enqueued, fetched and acknowledged, 64 by each call of our storage in a file, which does not wait for " \
        "the disk: in an empty one, and behind 100,000 jobs that wait and as many that are scheduled. `page` is the slowest of " \
        "the looks that the pages of the web take. `--size waiting=1000000` has a million of each, and takes minutes."
  size jobs: 20_000, waiting: 100_000
  quick jobs: 2_000, waiting: 10_000
  warm_up jobs: batch, waiting: 0
  row "empty", filled: false
  row "deep", filled: true
  proof { |waiting:, filled:, **| { waiting: filled ? waiting : 0, scheduled: filled ? waiting : 0 } }
  columns :rate, :real_ns, :cpu_ns, :page
  against_peer :real_ns

  contender "ringspun", requires: "bench/jobs/ringspun", backends: %w[uring epoll] do |meter, jobs:, waiting:, filled:|
    depth = filled ? waiting : 0
    Ringspun.run do
      store = Bench::JobsFile.new(meter.scratch, "normal")
      storage = store.storage
      hour = Process.clock_gettime(Process::CLOCK_REALTIME) + 3_600
      store.push(depth.times.lazy.map { Bench::Working.entry("HardJob", arguments) })
      store.push(depth.times.lazy.map { Bench::Working.entry("HardJob", arguments) }, at: hour)
      storage.extend([node], 60)
      pushes = Array.new(batch) { Ringspun::Jobs::Storage::Push.new("default", Bench::Working.entry("HardJob", arguments)) }
      meter.measure do
        (jobs / batch).times do
          storage.push(pushes)
          fetched = storage.fetch(node, ["default"], batch)
          storage.ack(node, fetched.map { |one| Ringspun::Jobs::Storage::Ack.new("default", one.token, "jid") })
        end
      end
      meter.operations = jobs / batch * batch
      meter.note(:page, slowest_look.call(meter, storage, depth))
      storage.stats.slice(:enqueued, :scheduled).transform_keys(enqueued: :waiting)
    end
  end

  targets "rate at deep >= 0.8 x at empty", "page <= 0.1", "cpu_ns <= 1.1 x ringspun epoll"
end
