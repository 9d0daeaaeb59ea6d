# frozen_string_literal: true

require "bench/mruby"

Bench.table "mruby_memory" do
  title "Memory on mruby"
  about "Resident bytes for each of 10,000 that wait, and the bytes of code and constants that the gem adds to libmruby, in a " \
        "build with -Os and without the simulation. The peer has evaluations only. The floor is a fiber that has yielded, made " \
        "by the C API; `bare` is one that mruby code makes."
  size count: 10_000
  quick count: 2_000
  warm_up count: 100
  row "a strand", row: "a strand"
  row "an evaluation", row: "an evaluation"
  proof { |count:, scale:, **| { done: count * scale } }
  columns :rss_per_strand, :text
  against_floor :rss_per_strand
  against_peer :rss_per_strand

  Bench::Mruby.contend(self, scale: 1) do |meter, command, build, row:, count:, scale:, **kind|
    answer = Bench::Mruby.work(command, row, count * scale, **kind)
    meter.take(user: 0, system: 0, real: answer.fetch(:real))
    meter.note(:rss_per_strand, answer.fetch(:grown))
    meter.note(:text, Bench::Mruby.text(build)) if build
    answer.slice(:done)
  end

  targets "rss_per_strand <= 1.5 x floor", "rss_per_strand <= 1.0 x concurrently at an evaluation",
          "text <= 150_000 at a strand"
end
