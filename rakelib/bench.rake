# frozen_string_literal: true

# Scripts of the seeds => the tables that have taken their place. The gem `concurrently` has the task itself, and its tables the
# same names here.
BENCHMARKS = { "single_row_mode" => "pg_streams", "em_pg" => "pg_parallel",
               "bm_io_pipe" => "pipe", "bm_io_socketpair" => "socketpair", "bm_queue" => "queue",
               "bm_mutex_cpu" => "mutex_cpu", "bm_mutex_io" => "mutex_io" }.freeze

desc "Tables of the bench by the names of their seeds: call_methods, wait_methods, call_methods_waiting, jobs_seed, " \
     "#{BENCHMARKS.keys.join(", ")}"
task :benchmark, [:table] do |_, arguments|
  tables = arguments.table || "call_methods,wait_methods,call_methods_waiting"
  sh File.expand_path("../bin/bench", __dir__), "--only", BENCHMARKS.fetch(tables, tables), *arguments.extras, verbose: false
end

namespace :bench do
  desc "Say which of the twelve main rows are slower than in the run that is kept. It never fails: machines differ"
  task :guard do
    sh File.expand_path("../bin/bench", __dir__), "--main", "--contender", "ringspun", "--backends", "uring",
       "--compare", File.expand_path("../bench/results/ruby-3.3.json", __dir__), verbose: false do |ok, _|
      warn "bench:guard: not all rows could be measured" unless ok
    end
  end

  desc "Take pictures of the report of the run that is kept, for the docs"
  task :screenshots do
    sh RbConfig.ruby, "-w", "-Ibench/lib", "bench/test/support/screenshots.rb", "docs/images/bench", verbose: false
  end

  desc "Measure the main rows on Ruby 3.3, 3.4 and 3.4 with YJIT for what is kept, and write the docs: a quarter of an hour"
  task :rubies do
    root = File.expand_path("..", __dir__)
    sh File.join(root, "bin/setup"), "--yjit", "--quiet", verbose: false
    newer = File.read(File.join(root, "tmp/setup/ruby-yjit")).chomp
    keep do |keeping|
      keeping.main_rows("default" => [{}, []], "newer" => [{ "RINGSPUN_RUBY" => newer }, []],
                        "yjit" => [{ "RINGSPUN_RUBY" => newer }, ["--yjit"]])
    end
  end

  desc "Measure tables anew for what is kept, and write the docs: bench:keep[pg_*,jobs_*]; without a name all, about 100 minutes"
  task :keep, [:table] do |_, arguments|
    keep { |keeping| keeping.tables([arguments.table, *arguments.extras].compact) }
  end

  # @yieldreturn [Array<String>] what was written
  def keep
    load_bench
    puts(yield(Bench::Keeping.new).map { |path| "wrote #{path}" })
    Rake::Task["bench:docs"].invoke
  rescue Bench::Invalid => error
    abort "bench: #{error.message}"
  end

  def load_bench
    $LOAD_PATH.unshift(File.expand_path("../bench/lib", __dir__))
    require "bench"
  end

  desc "Write the tables and the chart of README.md and docs from the run that is kept, bench/results"
  task :docs do
    load_bench
    puts(Bench::Documents.kept.write.map { |path| "wrote #{path}" })
  end
end
