# frozen_string_literal: true

# A line of a log, and a pattern that has to look at all of it. A match takes more than a microsecond, like a small unit of real
# work; with a cheaper one the table would measure the loop. And the text and pattern of UringMachine's own script (1.0.6).
line_of_log = '203.0.113.7 - - [21/Nov/2026:20:56:01 +0000] "GET /articles/42/comments?page=3&order=newest HTTP/1.1" 200 ' \
              '5316 "https://example.org/articles/42" "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"'
line_pattern = %r{\A\S+ \S+ \S+ \[[^\]]+\] "(?:GET|POST) [^ ?]+(?:\?\S*)? HTTP/1\.[01]" [1-5]\d\d \d+ "[^"]*" ".*\bFirefox/\d+}
texts = {
  "log" => [line_of_log, line_pattern],
  "foobar" => ["foobar" * 100, /foo(.+)$/]
}

# What threads, Async and our strands share.
started = lambda do |groups, workers, matches, text, lock, start|
  line, pattern = texts.fetch(text)
  groups.times.flat_map do
    mutex = lock.new
    workers.times.map do
      start.call do
        matched = 0
        matches.times { mutex.synchronize { matched += 1 if pattern.match?(line) } }
        matched
      end
    end
  end
end

Bench.table "mutex_cpu" do
  title "Mutex, CPU-bound"
  about "20 groups, each a mutex and 10 workers which lock it and match a Regexp within, 5,000 times each; and " \
        "10,000 times the text of UringMachine's own script. The floor is the same loop without any lock or worker."
  size groups: 20, workers: 10, matches: 5_000, text: "log"
  quick matches: 200
  warm_up matches: 10
  row "N=20"
  row "N=20, foobar", quick: false, matches: 10_000, text: "foobar"
  proof { |groups:, workers:, matches:, **| { matched: groups * workers * matches } }

  # A thread for each worker, a stock Mutex for each group.
  contender "threads" do |meter, groups:, workers:, matches:, text:|
    meter.measure { { matched: started.call(groups, workers, matches, text, Mutex, Thread.method(:new)).sum(&:value) } }
  end

  # A task for each worker. The stock Mutex is the lock in Async's guide to thread safety, and costs half of Async::Semaphore:
  # https://socketry.github.io/async/guides/thread-safety/
  contender "async", requires: "async" do |meter, groups:, workers:, matches:, text:|
    meter.measure do
      Sync { |task| { matched: started.call(groups, workers, matches, text, Mutex, task.method(:async)).sum(&:wait) } }
    end
  end

  # The stock Mutex under our scheduler, a strand for each worker.
  contender "ringspun fs", requires: "ringspun" do |meter, groups:, workers:, matches:, text:|
    meter.measure do
      Ringspun.run do |machine|
        { matched: started.call(groups, workers, matches, text, Mutex, machine.method(:spin)).sum(&:await) }
      end
    end
  end

  # A fiber for each worker, and UringMachine's own mutex for each group.
  uringmachine do |meter, ring, groups:, workers:, matches:, text:|
    line, pattern = texts.fetch(text)
    counts = []
    meter.measure do
      Bench::UringMachine.run(ring) do |machine|
        groups.times.flat_map do
          mutex = UM::Mutex.new
          workers.times.map do
            machine.spin do
              matched = 0
              matches.times { machine.synchronize(mutex) { matched += 1 if pattern.match?(line) } }
              counts << matched
            end
          end
        end
      end
    end
    { matched: counts.sum }
  end

  # The stock Mutex on its fiber scheduler.
  uringmachine_fs do |meter, groups:, workers:, matches:, text:|
    counts = []
    meter.measure do
      Bench::UringMachine.schedule do |start|
        counting = ->(&work) { start.call { counts << work.call } }
        started.call(groups, workers, matches, text, Mutex, counting)
      end
    end
    { matched: counts.sum }
  end

  # A strand for each worker, a Ringspun::Mutex for each group.
  contender "ringspun", requires: "ringspun" do |meter, groups:, workers:, matches:, text:|
    meter.measure do
      Ringspun.run do |machine|
        { matched: started.call(groups, workers, matches, text, Ringspun::Mutex, machine.method(:spin)).sum(&:await) }
      end
    end
  end

  bare "bare loop" do |meter, groups:, workers:, matches:, text:|
    line, pattern = texts.fetch(text)
    meter.measure do
      counts = (groups * workers).times.map do
        matched = 0
        matches.times { matched += 1 if pattern.match?(line) }
        matched
      end
      { matched: counts.sum }
    end
  end

  targets "total <= 1.10 x floor", "total <= 1.03 x best peer", "total <= 1.1 x ringspun epoll",
          "ringspun fs: total <= 1.03 x async", "ringspun fs: total <= 1.03 x uringmachine fs"
end
