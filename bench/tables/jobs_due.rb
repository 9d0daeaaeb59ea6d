# frozen_string_literal: true

require "bench/working"

# How late each job came that had asked to be tried again. Nothing else is due meanwhile, and the jobs fail one after the other.
tried_again = lambda do |meter, jobs, backend|
  next if jobs.zero? # a worker is a process of its own, which nothing here warms up

  working = Bench::Working.new(meter, :ringspun, 10, ["done #{jobs}"], backend:)
  working.enqueue("LateJob", [jobs], 1)
  working.run do
    news = working.news
    meter.take(user: news[:user], system: news[:system], real: news[:clock])
    late = news[:noted].sort
    meter.note(:p99, late[late.size * 99 / 100])
    working.finish
  end
end

Bench.table "jobs_due" do
  title "Jobs that are tried again soon"
  about "100 jobs, each enqueued by the one before, fail and ask to be tried again after 0.2 s, while nothing else is due: how " \
        "much later each of them comes. Sidekiq cannot be asked for less than a second, and looks every five or so."
  size jobs: 100
  quick jobs: 10
  warm_up jobs: 0
  proof { |**| { left: 0, failed: 0 } }
  columns :p99, :user, :system

  Bench::BACKENDS.keys.first(2).each do |backend|
    contender "ringspun", requires: "ringspun", backends: [backend] do |meter, jobs:|
      tried_again.call(meter, jobs, backend)
    end
  end

  targets "p99 <= 0.05", "total <= 1.1 x ringspun epoll"
end
