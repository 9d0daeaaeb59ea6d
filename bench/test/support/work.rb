# frozen_string_literal: true

require_relative "../../../runtime/test/support/share_of_the_day"

# Real children, with the sizes of the warm-up: whether the work is done, not how fast. By day on the tables whose file has
# changed and on a seventh of the others, which is another one each day.
module BenchTest::Work
  OF_MRUBY = %w[mruby mruby_memory].freeze
  PARTS = 7

  private

  def now?(table)
    ShareOfTheDay.new(PARTS, inputs: [path(table)], changes:).at?(BenchTest.tables.index(table))
  end

  def changes = @changes ||= Changes.new(Bench::ROOT)
  def path(table) = table.file.delete_prefix("#{Bench::ROOT}/")

  # Two at a time: most of it is the start of children. mruby is not built for this, which takes a minute and more.
  def work
    tables = BenchTest.tables.reject { |table| OF_MRUBY.include?(table.name) }
    all = tables.flat_map { |table| yield(table).map { |contender| [table, contender] } }
    turns = Thread::Queue.new(all).close
    complaints = Array.new(2) do
      Thread.new do
        found = []
        while (turn = turns.pop)
          found << complaint(*turn)
          Supervised.tick
        end
        found.compact
      end
    end
    assert_empty complaints.flat_map(&:value)
  end

  def complaint(table, contender)
    size = table.warm_up_size(table.size_of(table.rows.first, contender)).merge(small(table))
    sample = Bench::Sampler.new(time_limit: 60.0).sample(table, contender, size)
    return if sample["real"] || sample["unavailable"]

    "#{table.name} #{contender.name}: #{sample["failed"]}"
  end

  # Spawning and the seed are warmed up at length; here they need not be. A worker is not warmed up at all.
  SMALL = { "spawn" => { count: 100 }, "jobs_seed" => { seconds: 0.05 }, "jobs_work" => { jobs: 100 },
            "jobs_watched" => { jobs: 420 }, "jobs_due" => { jobs: 3 }, "jobs_calls" => { calls: 10 },
            "jobs_cores" => { jobs: 200 },
            "sqlite_work" => { jobs: 100 }, "sqlite_beside" => { seconds: 0.1 }, "sqlite_start" => { jobs: 2, idle: 0.1 },
            "sqlite_active_job" => { jobs: 20 },
            "jobs_waiting" => { jobs: 10 }, "cluster" => { requests: 50 }, "active_job_calls" => { calls: 10 },
            "http_hello" => { ms: 20 }, "http_sleep" => { connections: 10, each: 1 },
            "http_events" => { connections: 10, events: 1 }, "http_post" => { ms: 20 }, "http_file" => { ms: 20 },
            "http_idle" => { idle: 100 }, "http_new" => { ms: 50 },
            "http_rails" => { ms: 20 } }.freeze
  def small(table) = SMALL.fetch(table.name, {})
end
