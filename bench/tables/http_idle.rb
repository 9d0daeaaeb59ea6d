# frozen_string_literal: true

require "bench/http/contenders"

# The memory with few connections, and with the idle ones beside these.
held = lambda do |program, work, meter, idle:, few:, ms:|
  Bench::Http.asking(program, work, meter, connections: few, ms:) do |served, clients|
    clients.run
    before = served.family.bytes
    more = Bench::Http::Asking.new(meter.scratch, served.port, Bench::Http::Messages.request(work),
                                   Bench::Http::Messages.body(work), connections: idle, each: 1)
    more.ready
    result = nil
    spent = served.family.spent { result = more.run }
    meter.take(**spent, real: result[:seconds])
    meter.note(:idle, idle)
    meter.note(:rss_per_idle, (served.family.bytes - before) / idle)
  ensure
    more&.close
  end
  { answered: true }
end

Bench.table "http_idle" do
  title "HTTP: connections that are kept alive"
  about "10,000 connections that have been answered twice each, and ask no more. `RSS B/idle` is what the server's processes " \
        "have grown by for each."
  size idle: 10_000, few: 32, ms: 50
  quick idle: 1_000
  warm_up idle: 0
  proof { |**| { answered: true } }
  columns :idle, :rss_per_idle
  against_floor :rss_per_idle
  against_peer :rss_per_idle

  Bench::Http.contend(self, "hello", floors: %w[nginx], &held)

  targets "rss_per_idle <= 16_384", "rss_per_idle <= 4_096", "rss_per_idle <= 1.1 x ringspun epoll"
end
