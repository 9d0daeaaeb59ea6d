# frozen_string_literal: true

require_relative "test_helper"

require "fileutils"
require "open3"
require "rbconfig"

# The commands of the gem `concurrently`, in a copy of the tree with a bench that says what it was asked for.
class BenchTest::CommandsTest < Minitest::Test
  def test_the_scripts_run_the_tables_that_have_taken_their_place
    assert_equal [%w[call_methods], []], asked("bench/perf/concurrent_proc_calls.rb")
    assert_equal [%w[calls_awaiting], ["--quick"]], asked("bench/perf/concurrent_proc_calls_awaiting.rb", "--quick")
  end

  def test_the_task_takes_the_name_of_a_table
    names = %w[call_methods wait_methods call_methods_waiting jobs_seed]
    assert_equal names.map { |name| [[name], []] }, asked_of_rake(*names.map { |name| "benchmark[#{name}]" })
  end

  def test_the_task_takes_the_names_of_the_other_seeds_scripts
    tables = { "single_row_mode" => "pg_streams", "em_pg" => "pg_parallel", "bm_io_pipe" => "pipe",
               "bm_io_socketpair" => "socketpair", "bm_mutex_cpu" => "mutex_cpu", "bm_mutex_io" => "mutex_io",
               "bm_queue" => "queue" }
    assert_equal tables.values.map { |table| [[table], %w[--quick]] },
                 asked_of_rake(*tables.keys.map { |script| "benchmark[#{script},--quick]" })
  end

  # It compares with the run that is kept, and fails nothing.
  def test_the_guard_runs_the_main_rows
    in_copy("echo \"$@\"; exit 1") do |folder|
      out, status = Open3.capture2e(RbConfig.ruby, Gem.bin_path("rake", "rake"), "bench:guard", chdir: folder)
      assert_predicate status, :success?, out
      assert_match(%r{\A--main --contender ringspun --backends uring --compare \S+/bench/results/ruby-3.3.json$}, out)
      assert_match(/not all rows could be measured/, out)
    end
  end

  def test_the_task_hands_options_on_and_without_a_name_runs_all_three
    assert_equal [[%w[wait_methods], ["--quick", "--seed", "7"]], [%w[call_methods wait_methods call_methods_waiting], []]],
                 asked_of_rake("benchmark[wait_methods,--quick,--seed,7]", "benchmark")
  end

  def test_what_the_bench_ends_with_is_what_the_scripts_end_with
    in_copy("exit 2") do |folder|
      _, status = Open3.capture2e(RbConfig.ruby, File.join(folder, "bench/perf/concurrent_proc_calls.rb"))
      assert_equal 2, status.exitstatus
    end
  end

  private

  # A rake for each of the tasks. One process has loaded all of them.
  RAKE = <<~'RUBY'
    require "rake"
    Rake.application.init("rake", [])
    Rake.application.load_rakefile
    ARGV.each { |task| Process.wait(fork { Rake.application.run([task]) }) }
  RUBY

  def asked_of_rake(*tasks) = all_asked("-e", RAKE, *tasks)
  def asked(*command) = all_asked(*command).then { |all| all.size == 1 ? all.first : flunk(all.inspect) }

  # What it was asked for, each time: tables that exist, and options.
  def all_asked(*command)
    in_copy("echo \"$@\"") do |folder|
      out, status = Open3.capture2e(RbConfig.ruby, *command, chdir: folder)
      assert_predicate status, :success?, out
      out.lines.map do |line|
        only, tables, *options = line.split
        assert_equal "--only", only, out
        assert_empty tables.split(",") - BenchTest.tables.map(&:name)
        [tables.split(","), options]
      end
    end
  end

  def in_copy(bench)
    Dir.mktmpdir do |folder|
      FileUtils.mkdir_p(%w[bin rakelib].map { |name| File.join(folder, name) })
      FileUtils.mkdir_p(File.join(folder, "bench"))
      FileUtils.cp_r(File.join(Bench::ROOT, "bench/perf"), File.join(folder, "bench"))
      FileUtils.cp(File.join(Bench::ROOT, "rakelib/bench.rake"), File.join(folder, "rakelib"))
      FileUtils.touch(File.join(folder, "Rakefile"))
      File.write(File.join(folder, "bin/bench"), "#!/bin/sh\n#{bench}\n", perm: 0o755)
      yield folder
    end
  end
end
