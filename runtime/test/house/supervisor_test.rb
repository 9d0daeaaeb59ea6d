# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/servers"

# rubies: one
# inputs: bin/support, runtime/test/support/supervised.rb, Gemfile.lock

# Tests that hang, crash and fail, run by the script that runs all tests.
class SupervisorTest < Minitest::Test
  include AnyBackend

  SCRIPT = File.expand_path("../../../bin/support/run_tests.rb", __dir__)

  # As seconds of CPU, and seconds without any.
  LIMIT = "2"

  # For one that computes until it is ended, twice.
  SHORT_LIMIT = { "RINGSPUN_TEST_LIMIT_SECONDS" => "1" }.freeze

  HEAD = <<~RUBY
    class InnerTest < Minitest::Test
      def self.run_order = :alpha
      def test_a_first = pass
      def test_z_last = pass
  RUBY

  # Runs an inner test class with these methods.
  #
  # @return [Array(String, Process::Status)]
  def supervise(methods, *options, env: {}, before: [], spawn: {})
    Tempfile.create(["inner", ".rb"]) do |file|
      file.write(HEAD, methods, "\nend\n")
      file.close
      # The process of the tests loads Bundler by itself.
      env = { "RUBYOPT" => nil, "RINGSPUN_TEST_LIMIT_SECONDS" => LIMIT, **env }
      Open3.capture2e(env, *before, RbConfig.ruby, "-w", SCRIPT, file.path, "--seed", "1", *options, **spawn)
    end
  end

  # One test fails, and the others are run.
  def assert_ends_one(reason, methods, runs: 3, alone: "fails alone as well: a defect", env: {})
    output, status = supervise(methods, env:)
    assert_equal 1, status.exitstatus, output
    assert_match(/^FAILED: InnerTest#test_m\n#{reason}/m, output)
    assert_match(/^#{runs} runs, \d+ assertions, 1 failures or errors, in several processes$/, output)
    circumstances = "seed 1; load [\\d. ]+; the process had waited \\d+\\.\\d s for a processor"
    assert_match(/^again: InnerTest#test_m #{alone} \(#{circumstances}\)$/, output)
    output
  end

  def test_a_test_that_waits_for_ever
    reason = "ended, for it waits, and has done nothing for 2 s"
    output = assert_ends_one(reason, "def test_m = Thread::Queue.new.pop(timeout: 999)")
    assert_match(/sleep.*in `test_m'|sleep.*InnerTest#test_m/m, output) # where its thread was
  end

  def test_a_test_that_computes_for_ever
    assert_ends_one("ended, for it has used \\d s of CPU", "def test_m = loop { }", env: SHORT_LIMIT)
  end

  def test_a_spin_in_c_that_holds_the_lock
    methods = 'def test_m = "pw".crypt("$6$rounds=999999999$salt")' # minutes
    output = assert_ends_one("ended, for it has used \\d s of CPU", methods, env: SHORT_LIMIT)
    assert_includes output, "It holds the GVL."
  end

  def test_a_hang_in_a_forked_child
    assert_gone assert_ends_one("ended, for it waits", "def test_m = Process.wait(fork { puts $$; sleep })")
  end

  # The process whose number has been printed. Whoever is its parent by now may not have heard of its end.
  def assert_gone(output)
    path = "/proc/#{output[/^\.?(\d+)$/, 1]}/stat"
    refute File.exist?(path) && !File.read(path).match?(/\) Z /), path
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end

  def test_children_in_groups_of_their_own_end_as_well
    methods = "def test_m = Process.wait(spawn('echo $$; exec sleep 600', pgroup: true))"
    assert_gone assert_ends_one("ended, for it waits", methods)
  end

  def test_a_hang_beside_a_server_that_is_busy
    assert_ends_one("ended, for it waits", <<~RUBY)
      require "support/servers"
      require "socket"
      def test_m
        path = File.join(Servers.redis.folder, "redis.sock")
        spawn("setsid", "-f", #{RbConfig.ruby.inspect}, "-rsocket", "-e", <<~'PING', path)
          UNIXSocket.open(ARGV[0]) { |redis| loop { redis.write("PING\\r\\n" * 100) && redis.readpartial(999) } } rescue nil
        PING
        Thread::Queue.new.pop(timeout: 999)
      end
    RUBY
  end

  def test_a_test_that_ends_the_process
    assert_ends_one("has ended the process: pid \\d+ SIGABRT", "def test_m = Process.kill(:ABRT, $$)")
    assert_ends_one("has ended the process: pid \\d+ exit 0", "def test_m = exit!(true)")
  end

  def test_a_failure_that_does_not_come_again
    Dir.mktmpdir do |folder|
      path = File.join(folder, "failed").inspect
      output, status = supervise("def test_m = Dir.exist?(#{path}) ? pass : (Dir.mkdir(#{path}) && flunk('once'))")
      assert_match(/^again: InnerTest#test_m is right alone: timing/, output)
      refute_predicate status, :success?
    end
  end

  def test_a_slow_test_lives
    output, status = supervise("def test_m = 8.times { sleep(0.5) && (i = 0; i += 1 until i == 3_000_000) }")
    assert_predicate status, :success?, output
    assert_match(/3 runs, \d assertions, 0 failures/, output)
  end

  # They are no children of the tests.
  WITH_CHILDREN = "require 'support/children'\ninclude Children\n"

  def test_what_a_forked_ruby_computes_counts
    code = "8.times { sleep(0.5); i = 0; i += 1 until i == 3_000_000 }"
    output, status = supervise("#{WITH_CHILDREN}def test_m = assert_predicate(ruby_child('#{code}').status, :success?)")
    assert_predicate status, :success?, output
    methods = "#{WITH_CHILDREN}def test_m = ruby_child('loop { }')"
    assert_ends_one("ended, for it has used \\d s of CPU", methods, env: SHORT_LIMIT)
  end

  def test_a_test_that_says_that_it_goes_on
    output, status = supervise("def test_m = 5.times { sleep(1) && Supervised.tick }")
    assert_predicate status, :success?, output
  end

  def test_failures_are_told_when_they_happen_here_and_there
    Tempfile.create("live") do |live|
      reader, writer = IO.pipe
      methods = <<~RUBY
        def test_m = flunk("so")
        def test_n = $stdin.gets && assert_match(/FAILED: InnerTest#test_m.*so/m, File.read(#{live.path.inspect}))
      RUBY
      output = Thread.new do
        supervise(methods, env: { "RINGSPUN_LIVE" => live.fileno.to_s }, spawn: { live => live, in: reader })
      end
      sleep 0.01 until File.read(live.path).include?("so")
      writer.puts
      output, = output.value
      assert_match(/^4 runs, \d+ assertions, 1 failures, 0 errors/, output)
      assert_match(/^FAILED: InnerTest#test_m.*^FAILED|Finished/m, output)
    ensure
      [reader, writer].each(&:close)
    end
  end

  def test_signals_that_were_ignored_have_their_defaults
    inner = <<~RUBY
      def test_m
        %w[INT TERM QUIT].each do |signal|
          pid = spawn("kill -\#{signal} $$; exit 3")
          assert_equal Signal.list[signal], Process.wait2(pid).last.termsig
        end
      end
    RUBY
    output, status = supervise(inner, before: ["sh", "-c", 'trap "" INT TERM QUIT; exec "$@"', "sh"])
    assert_predicate status, :success?, output
  end

  def test_who_asks_it_to_end_is_heard
    %w[INT TERM].each do |signal|
      output, status = supervise("def test_m = (Process.kill(:#{signal}, Process.ppid) && sleep)")
      assert_equal 1, status.exitstatus, output
      refute_match(/^again|Error/, output)
    end
  end

  def test_who_asks_it_to_end_before_the_first_test_is_heard
    output, status = supervise("Process.kill(:TERM, Process.ppid) && sleep")
    assert_equal 1, status.exitstatus, output
    assert_empty output
  end

  def test_what_ends_the_process_outside_of_tests
    output, status = supervise("Minitest.after_run { exit!(5) }")
    assert_equal [1, 1], [status.exitstatus, output.scan(/^FAILED: outside of any test: .* exit 5$/).size], output
    output, status = supervise("end\nraise 'no'\nclass X")
    refute_predicate status, :success?, output
    assert_match(/^FAILED: outside of any test/, output)
  end

  def test_what_has_not_run_in_the_end_is_said
    Tempfile.create(["inner", ".rb"]) do |file|
      file.write(HEAD, (1..3).map { |number| "def test_m#{number} = exit!(true)" }.join("\n"), "\nend\n")
      file.close
      answer = ruby_child(<<~RUBY, File.dirname(SCRIPT), file.path, env: { "RUBYOPT" => "-rbundler/setup" })
        require File.join(ARGV.first, "supervisor")
        command = [RbConfig.ruby, File.join(ARGV.first, "test_process.rb"), ARGV.last]
        exit Supervisor.new(command, limits: Watchdog::Limits.of(nil), out: $stdout, processes_max: 2).run
      RUBY
      assert_equal 1, answer.status.exitstatus
      assert_match(/^FAILED: 2 tests have ended their process; those after them have not run$/, answer.out)
    end
  end

  def test_a_filter_without_a_match_has_failed
    output, status = supervise("", "-n", "test_nowhere")
    refute_predicate status, :success?, output
  end

  def test_without_a_supervisor
    output, status = supervise("def test_m = sleep(3)", env: { "RINGSPUN_SUPERVISOR" => "none" })
    assert_predicate status, :success?, output
  end
end
