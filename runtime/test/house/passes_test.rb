# frozen_string_literal: true

require "test_helper"
require "stringio"
require "support/rakefile"
require "tmpdir"
require_relative "../../../bin/support/passes"

# rubies: one
# inputs: bin/support, rakelib, Rakefile

# What `rake test` runs its passes by. Where nothing is said of JOBS there are two.
class PassesTest < Minitest::Test
  include AnyBackend
  include Rakefile

  SCRIPT = File.join(ROOT, "bin/support/passes.rb")

  def shell(name, code, *arguments, env: {}) = Passes.pass(name, "sh", "-c", code, "sh", *arguments, env:)

  # Whether all have passed, and the lines of the report.
  def run_all(*passes, jobs: 2)
    out = StringIO.new
    passed = Passes.new(passes, jobs:, out:).run
    [passed, out.string.lines(chomp: true)]
  end

  def headings(lines) = lines.grep(/\A==/).map { |line| line.sub(/, \d+ s\z/, "") }

  # The list at the end, without seconds, in alphabetical order.
  def listed(lines) = lines.filter_map { |line| line[/\A *\d+\.\d s CPU +\d+\.\d s  (.*)/, 1] }.sort

  # What it prints that has the tasks.
  def with_rake(code, env = {})
    answer = rake_child(code, env:)
    assert_equal ["", true], [answer.err, answer.status.success?]
    answer.out.lines(chomp: true)
  end

  # Which test files `rake test:ruby` would run.
  def files_of_passes(matrix, nightly)
    with_rake("puts TEST_PASSES.fetch(:ruby).call.flat_map(&:command)", { "MATRIX" => matrix, "RINGSPUN_NIGHTLY" => nightly })
      .grep(/\A[^ ]+_test\.rb\z/).sort
  end

  # What becomes of such a task when its patterns match no file.
  def without_files(name)
    rake_child(<<~'RUBY', name)
      [TIDY_TESTS, RUNTIME_TESTS, JOBS_TESTS, POSTGRES_TESTS, HTTP_TESTS, TORTURES].each(&:clear)
      TEST_PASSES.fetch(ARGV.fetch(0).to_sym).call
    RUBY
  end

  def test_a_task_without_files_has_failed
    %w[tidy ruby servers epoll ring gc_stress torture].each do |name|
      answer = without_files(name)
      assert_equal ["no test ran: no file matches\n", false], [answer.err, answer.status.success?], name
    end
  end

  def test_two_run_at_the_same_time
    Dir.mktmpdir do |folder|
      File.mkfifo(fifo = File.join(folder, "fifo"))
      # Each waits in open for the other.
      passed, lines = run_all(shell("reads", "read word <$1; echo $word", fifo), shell("writes", "echo met >$1", fifo))
      assert passed
      assert_includes lines, "met"
    end
  end

  def test_no_more_than_jobs_at_the_same_time
    Dir.mktmpdir do |folder|
      alone = "mkdir $1/busy || exit 1; sleep 0.01; rmdir $1/busy"
      passed, lines = run_all(*Array.new(3) { |i| shell("pass #{i}", alone, folder) }, jobs: 1)
      assert passed, lines
      assert_equal ["== pass 0: passed", "== pass 1: passed", "== pass 2: passed", "== all passes"], headings(lines)
    end
  end

  def test_what_a_pass_prints_comes_in_one_piece
    Dir.mktmpdir do |folder|
      fifos = %w[there back].map { |name| File.join(folder, name).tap { |path| File.mkfifo(path) } }
      # Their lines are printed in turns.
      passed, lines = run_all(shell("one", "echo 1; echo >$1; read x <$2; echo 3 >&2", *fifos),
                              shell("two", "read x <$1; echo 2; echo >$2; echo 4", *fifos))
      assert passed
      assert_includes lines.each_cons(2), %w[1 3]
      assert_includes lines.each_cons(2), %w[2 4]
    end
  end

  def test_what_failed_comes_again_at_the_end
    passes = [shell("bad", "echo broken; exit 3"), shell("worse", "kill -SEGV $$"), shell("good", "echo fine")]
    passed, lines = run_all(*passes, jobs: 1)
    refute passed
    failures = ["== bad: FAILED (exit 3)", "== worse: FAILED (signal SEGV)"]
    assert_equal [*failures, "== good: passed", "== all passes", *failures], headings(lines)
    assert_equal 2, lines.count("broken")
    assert_equal 1, lines.count("fine")
    assert_equal ["FAILED: bad", "FAILED: worse", "good"], listed(lines)
  end

  def test_the_names_of_failed_tests_are_the_last_lines
    output = "  1) Failure:\nA::BTest#test_one [b_test.rb:1]:\n  2) Error:\nA::BTest#test_two:\nno, A::BTest#test_one"
    _, lines = run_all(shell("bad", 'echo "$1"', output), shell("worse", 'echo "$1"; exit 1', output))
    assert_equal ["FAILED: worse", "A::BTest#test_one", "A::BTest#test_two"], lines.last(3)
  end

  def test_the_environment_of_a_pass_is_its_own
    passes = %w[a b].map { |value| shell("says #{value}", "echo got $VALUE", env: { "VALUE" => value }) }
    _, lines = run_all(*passes)
    assert_equal ["got a", "got b"], lines.grep(/got/).sort
  end

  def test_the_command_has_what_would_load_bundler_and_none_else
    options = { "RUBYOPT" => "-rbundler/setup", "METERED_RUBYOPT" => nil }
    says = 'echo "${RUBYOPT-none} ${METERED_RUBYOPT-none}"; tr "\\0" "\\n" </proc/$PPID/environ | grep -c ^RUBYOPT=; true'
    passed, lines = run_all(shell("has it", says, env: options), shell("has none", says, env: { "RUBYOPT" => nil }))
    assert passed
    assert_equal ["-rbundler/setup none", "none none"], lines.grep(/ none\z/).grep_v(/CPU/).sort
    assert_equal %w[0 0], lines.grep(/\A\d\z/)
  end

  def test_what_a_pass_leaves_running_holds_nobody_up
    Dir.mktmpdir do |folder|
      File.mkfifo(fifo = File.join(folder, "fifo"))
      passed, lines = run_all(shell("leaves one", "echo left; cat $1 & exit 0", fifo), shell("other", "true"))
      assert passed
      assert_includes lines, "left"
      assert_match(/^left running, and ended: .*#{fifo}/, lines.join("\n"))
    end
  end

  def test_one_alone_prints_as_it_goes
    answer = ruby_child("load ARGV.shift; p Passes.new([Passes.pass('alone', 'echo', 'hello')]).run", SCRIPT)
    assert_equal ["hello\ntrue\n", ""], [answer.out, answer.err]
  end

  def test_a_signal_ends_the_passes_that_run_and_starts_no_other
    %w[INT TERM].each do |signal|
      answer = ruby_child(<<~'RUBY', SCRIPT, signal)
        load ARGV.shift
        sleeping = Passes.pass("sleeps", "sh", "-c", "trap 'echo told; exit 1' INT; kill -$1 $2; while :; do sleep 0.01; done",
                               "sh", ARGV.shift, Process.pid)
        begin
          Passes.new([sleeping, Passes.pass("never", "echo", "never")], jobs: 1).run
        rescue SignalException => error
          puts error.class
        end
      RUBY
      assert_empty answer.err
      error = signal == "INT" ? "Interrupt" : "SignalException"
      assert_match(/^told\n.*^ +\S+ s CPU +\S+ s  FAILED: sleeps\n.*^#{error}\n\z/m, answer.out)
      refute_match(/^never/, answer.out)
    end
  end

  # By night. By day it leaves out more.
  def test_the_matrix_leaves_out_what_no_ruby_has_a_say_in
    all, again, by_day = [["", "1"], %w[1 1], ["1", ""]].map { |matrix, nightly| files_of_passes(matrix, nightly) }
    left_out = all - again
    assert_operator left_out.size, :>=, 5
    assert_empty again - all
    assert_includes left_out, "jobs/test/worker/storm_test.rb"
    assert_equal all.select { |path| File.foreach(File.join(ROOT, path)).include?("# rubies: one\n") }, left_out
    assert_empty by_day - again
    refute_empty by_day
    refute_includes by_day, "runtime/test/io/bad_input_test.rb"
  end

  # By day a part of their tests.
  def test_a_server_has_a_pass_of_the_files_that_name_it
    lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nil })
      @selection = Selection.new(changes: Data.define { def among(*) = nil }.new, out: File.open(File::NULL, "w"))
      texts = { "all_test.rb" => "# servers: all", "some_test.rb" => "# servers: 15, 17", "other_test.rb" => "# servers: 17" }
      POSTGRES_TESTS.clear.push(*texts.keys, "none_test.rb")
      File.define_singleton_method(:read) { |path| texts.fetch(path, "#") }
      server_passes(%w[15 17 pgbouncer]).each do |pass|
        of = pass.env.values_at("RINGSPUN_POSTGRES", "RINGSPUN_SEEDS_TIMES", "RINGSPUN_ONE_TEST_IN")
        puts [pass.name, *of, *pass.command.grep(/_test\.rb/)].join(" ")
      end
    RUBY
    assert_equal [
      "Not on 15, by their own word: other_test.rb", "Not on pgbouncer, by their own word: some_test.rb other_test.rb",
      "Postgres on 15 15 1/4 5 all_test.rb some_test.rb", "Postgres on 17 17 1/4 5 all_test.rb some_test.rb other_test.rb",
      "Postgres on pgbouncer pgbouncer 1/4 12 all_test.rb"
    ], lines
  end

  def test_a_pass_of_files_that_say_so_has_its_tests_in_turns
    lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nil, "JOBS" => "1" })
      changed = Data.define(:paths) { def among(patterns) = patterns & paths }
      texts = { "turns_test.rb" => "# pass: own\n# in turns: a, b", "daily_test.rb" => "# in turns: a" }
      File.define_singleton_method(:read) { |path| texts.fetch(path) }
      [[], %w[b], %w[turns_test.rb]].each do |paths|
        @selection = Selection.new(changes: changed.new(paths), out: File.open(File::NULL, "w"))
        puts split_passes("all", texts.keys).map { |pass| "#{pass.name}: #{pass.env["RINGSPUN_ONE_TEST_IN"]}" }.join(" ")
      end
    RUBY
    assert_equal ["all, 1 of 1: 3 all, own: 3", "all, 1 of 1: 3 all, own: ", "all, 1 of 1: 3 all, own: "], lines
  end

  # A pass of the matrix, which has a quarter of the tests.
  def test_a_changed_input_has_all_tests_run_in_a_share_of_them
    lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nil, "JOBS" => "1" })
      @selection = Selection.new(changes: Data.define { def among(patterns) = patterns & %w[a] }.new, out: File.open(File::NULL, "w"))
      File.define_singleton_method(:read) { |_path| "# in turns: a" }
      define_singleton_method(:run_together) do |*|
        split_passes("all", %w[turns_test.rb]).each { |pass| system(pass.env, "echo share: $RINGSPUN_ONE_TEST_IN") }
      end
      Rake::Task["test:matrix"].invoke
    RUBY
    assert_equal ["share:"], lines.map(&:rstrip)
  end

  # By night, and where that has changed.
  def test_all_tests_of_another_server
    lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nil })
      changed = Data.define(:paths) { def among(patterns) = paths&.select { |path| path.start_with?(*patterns) } }
      [[nil, false], [%w[postgres/lib/x], false], [%w[jobs/x], false], [nil, true]].each do |paths, nightly|
        @selection = Selection.new(changes: changed.new(paths), nightly:)
        puts in_turns("Postgres on 15", %w[postgres]).map { |pair| pair.join("=") }
      end
    RUBY
    left_out = "left out (runs by night, and after a change in postgres): two thirds of Postgres on 15"
    third, all = %w[RINGSPUN_ONE_TEST_IN=3 RINGSPUN_ONE_TEST_IN=]
    assert_equal [left_out, third, all, left_out, third, all], lines
  end

  def test_valkey_has_a_pass_where_it_stands_beside_redis
    lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nil })
      @selection = Selection.new(changes: Data.define { def among(*) = nil }.new, out: File.open(File::NULL, "w"))
      require_relative "runtime/test/support/servers"
      JOBS_TESTS.clear.push("one_test.rb", "other_test.rb")
      File.define_singleton_method(:read) { |path| path == "one_test.rb" ? "# servers: valkey" : "#" }
      [%w[redis], %w[valkey], %w[redis valkey]].flat_map { |here| valkey_passes(here) }.each do |pass|
        puts [pass.name, *pass.env.compact.to_a, *pass.command.grep(/_test\.rb/)].join(" ")
      end
    RUBY
    assert_equal ["No second time on Valkey: there is no valkey here.", "No second time on Valkey: there is no redis here.",
                  "the jobs on Valkey RINGSPUN_REDIS valkey RINGSPUN_SEEDS_TIMES 1/4 RINGSPUN_ONE_TEST_IN 3 one_test.rb"], lines
  end

  # What repeats other passes, and only in the short form.
  def test_who_repeats_others_takes_turns_by_the_day
    tasks = %i[epoll gc_stress]
    { nil => nil, "1" => "4" }.each do |short, parts|
      lines = with_rake(<<~RUBY, { "SHORT" => short, "RINGSPUN_NIGHTLY" => nil })
        @selection = Selection.new(changes: Data.define { def among(_patterns) = nil }.new)
        #{tasks}.each do |task|
          http, others = TEST_PASSES.fetch(task).call.partition { |pass| pass.name == "HTTP on epoll" }
          puts others.map { |pass| "one in: " + pass.env.fetch("RINGSPUN_ONE_TEST_IN").to_s }.uniq
          puts http.map { |pass| "on epoll: " + pass.env.fetch("RINGSPUN_ONE_TEST_IN").to_s }
        end
      RUBY
      assert_equal ["one in: #{parts}"] * tasks.size, lines.grep(/\Aone in/), short
      assert_equal ["on epoll: #{"5" if short}"], lines.grep(/\Aon epoll/), short
      told = lines.grep(/\Aleft out \(run on the next days, and by night\): three quarters of /)
      assert_equal (short ? tasks.size : 0), told.size
    end
  end

  # Whatever share there was around it.
  def test_another_ruby_takes_turns_by_day_alone
    { nil => "4", "1" => "" }.each do |nightly, expected|
      lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nightly, "RINGSPUN_ONE_TEST_IN" => "7" })
        define_singleton_method(:run_together) { |*| puts "share: #{ENV["RINGSPUN_ONE_TEST_IN"]}" }
        Rake::Task["test:matrix"].invoke
      RUBY
      assert_equal ["share: #{expected}"], lines.grep(/\Ashare/)
    end
  end

  # The bench, Rails, and the engine under sanitizers: a part in the short form, unless what they are about has changed.
  def test_who_rests_on_others_takes_turns_until_an_input_changes
    Dir.mktmpdir do |folder|
      lines = with_rake(<<~RUBY, { "RINGSPUN_NIGHTLY" => nil, "MATRIX" => nil })
        changed = Data.define(:paths) do
          def among(patterns) = patterns & paths
          def basis = "since then"
        end
        FileUtils.mkdir_p("\#{folder = #{folder.inspect}}/tmp/setup")
        FileUtils.touch("\#{folder}/tmp/setup/rails-8.1-\#{RUBY_VERSION}")
        define_singleton_method(:asan_pass) { |name, files| pass(name, *files) }
        [[nil, []], ["1", []], ["1", %w[bench jobs/lib http engine]]].each do |short, paths|
          ENV["SHORT"] = short
          @selection = Selection.new(changes: changed.new(paths), out: File.open(File::NULL, "w"))
          bench = TEST_PASSES.fetch(:ruby).call.find { |pass| pass.name == "the bench" }
          rails = Dir.chdir(folder) { TEST_PASSES.fetch(:rails).call }
          engine = %i[sanitize cross].flat_map { |task| TEST_PASSES.fetch(task).call }.select { |pass| pass.name.start_with?("the engine") }
          puts [bench, *rails, *engine].map { |pass| pass.env.fetch("RINGSPUN_ONE_TEST_IN", "").to_s }.inspect
        end
      RUBY
      assert_equal [[""] * 5, %w[3 3 3 4 4], [""] * 5].map(&:inspect), lines
    end
  end

  # With half of the seeds, unless somebody says how many.
  def test_by_day_generators_have_half_of_their_seeds
    { nil => "1/2", "7" => "7" }.each do |said, expected|
      lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nil, "RINGSPUN_SEEDS_TIMES" => said })
        define_singleton_method(:run_together) { |*| puts "seeds: #{ENV.values_at("SHORT", "RINGSPUN_SEEDS_TIMES")}" }
        %w[test test:others test:all].each { |name| Rake::Task[name].clear_prerequisites.invoke }
        ENV["RINGSPUN_NIGHTLY"] = "1"
        p short, seeds_by_day, fewer_seeds
      RUBY
      assert_equal ["seeds: #{["1", expected]}"] * 3, lines.grep(/\Aseeds/)
      assert_equal ['{"SHORT"=>nil}', "{}", "{}"], lines.last(3)
    end
  end

  def test_random_programs_on_mruby_have_their_part_of_the_seeds
    { nil => "1000", "1/2" => "500", "10" => "10000" }.each do |times, expected|
      lines = with_rake(<<~'RUBY', { "RINGSPUN_SEEDS_TIMES" => times, "RINGSPUN_SEEDS" => nil })
        puts TEST_PASSES.fetch(:mruby_random).call.map { |pass| pass.env.fetch("RINGSPUN_SEEDS") }
      RUBY
      assert_equal [expected] * 2, lines
    end
  end

  # With the words that it sets for its parts.
  def test_each_pass_of_a_change_can_be_made
    lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nil })
      define_singleton_method(:run_passes) { |passes| puts "made: #{passes.map(&:name).uniq.size}" }
      TEST_PASSES.each_key { |name| Rake::Task["test:#{name}"].clear_prerequisites }
      Rake::Task["test:all"].clear_prerequisites.invoke
    RUBY
    assert_operator lines.last[/\Amade: (\d+)\z/, 1].to_i, :>, 40
  end

  def test_a_bare_debian_is_set_up_again_by_day_where_that_has_changed
    lines = with_rake(<<~'RUBY', { "RINGSPUN_NIGHTLY" => nil })
      changed = Data.define(:paths) { def among(patterns) = paths&.select { |path| path.start_with?(*patterns) } }
      [%w[bin/support/plan.sh], %w[bin/setup], %w[jobs/x], nil].each do |paths|
        @selection = Selection.new(changes: changed.new(paths))
        puts TEST_PASSES.fetch(:bare_debian_short).call.map { |pass| pass.command.join(" ") }
      end
      ENV["RINGSPUN_NIGHTLY"] = "1"
      puts TEST_PASSES.fetch(:bare_debian_short).call.size
    RUBY
    command = "nice -n 10 bin/support/bare_debian.sh --short"
    left_out = "left out (runs by night, and after a change in bin/setup, bin/support): bin/setup in a bare Debian 12"
    assert_equal [command, command, left_out, left_out, "0"], lines
  end

  def test_what_is_not_here_is_left_out_and_said
    Dir.mktmpdir do |folder|
      lines = with_rake(<<~RUBY)
        define_singleton_method(:run_together) { |*names| puts names.join(" ") }
        Dir.chdir(#{folder.inspect})
        Rake::Task["test:others"].invoke
        FileUtils.mkdir_p("tmp/setup")
        %w[cross mruby].each { |stamp| FileUtils.touch("tmp/setup/\#{stamp}") }
        Rake::Task["test:others"].reenable
        Rake::Task["test:others"].invoke
      RUBY
      left_out = %w[cross mruby].map { |what| "left out (bin/setup --matrix has found no #{what}): test:#{what}" }
      assert_equal [*left_out, "servers epoll gc_stress sanitize ring bare_debian_short",
                    "servers epoll gc_stress cross sanitize ring bare_debian_short mruby"], lines
    end
  end

  def test_all_of_a_change_goes_together
    names = with_rake(<<~RUBY).last.split # behind what it says of passes that this machine leaves out
      define_singleton_method(:run_together) { |*names| puts names.join(" ") }
      Rake::Task["test:all"].clear_prerequisites.invoke
    RUBY
    assert_empty BY_NAME - names
    assert_equal names.uniq, names
  end

  # What `rake test`, `rake test:others` and `rake test:matrix` are made of, wherever something is missing.
  BY_NAME = %w[ruby rails rubocop c codec http_codec uring_faults evaluations sim rbs werror held_up_changed
               epoll ring servers gc_stress sanitize bare_debian_short rubies].freeze

  def test_a_seed_is_a_number
    { "SEED" => "abc", "SEEDS" => "-1", "SECONDS" => "" }.each do |name, value|
      answer = rake_child("check_numbers(ARGV[0] => ARGV[1])", name, value)
      assert_equal ["#{name}=#{value} is no number\n", 1], [answer.err, answer.status.exitstatus]
    end
    assert_empty with_rake("check_numbers({ 'SEED' => '0123' })")
  end

  # Those of other Rubies know nothing of this one's gems.
  def test_another_ruby_has_its_own_environment
    Dir.mktmpdir do |folder|
      lines = with_rake(<<~RUBY)
        passes = TEST_PASSES.fetch(:rubies)
        Dir.chdir(#{folder.inspect})
        FileUtils.mkdir_p("tmp/setup")
        File.write("tmp/setup/ruby-matrix", RbConfig.ruby)
        one = passes.call.first
        puts one.name, one.command.last(3).join(" "), one.env.values_at("BUNDLE_GEMFILE", "BUNDLER_SETUP", "JOBS", "SHORT").inspect
      RUBY
      assert_equal ["Ruby #{RUBY_ENGINE_VERSION}", "exec rake test:matrix", '[nil, nil, "1", nil]'], lines
    end
  end

  def test_jobs
    assert_match(/1 or more, got 0/, assert_raises(ArgumentError) { Passes.new([], jobs: 0) }.message)
  end
end
