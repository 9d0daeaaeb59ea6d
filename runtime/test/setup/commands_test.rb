# frozen_string_literal: true

require "test_helper"
require "support/setup_copy"

# rubies: one
# inputs: bin, Gemfile, Gemfile.lock, runtime/test/support/setup_copy.rb

# What the other scripts of bin/ want of bin/setup.
class SetupCommandsTest < Minitest::Test
  include AnyBackend
  include SetupCopy

  # Whose tests start a server: by what they include, by a program that they run.
  STARTING = %w[runtime/test/stock/redis_test.rb runtime/test/stock/postgres_test.rb runtime/test/house/examples_test.rb
                runtime/test/house/docs_test.rb jobs/test/storage/redis_test.rb jobs/test/house/support_test.rb
                jobs/test/torture/fault_run_test.rb jobs/test/interop/web_test.rb postgres/test/types_test.rb
                bench/test/jobs_test.rb].freeze
  STARTING_NONE = %w[runtime/test/house/tidy_test.rb runtime/test/machine/signal_test.rb runtime/test/setup/commands_test.rb
                     jobs/test/entry/arguments_test.rb jobs/test/storage/memory_test.rb bench/test/options_test.rb].freeze

  def setup
    super
    fake_ruby("path/ruby")
    %w[runtime/test jobs/test postgres/test bench].each do |name|
      FileUtils.rm_rf(in_copy(name)) # the copy has some of it
      FileUtils.mkdir_p(File.dirname(in_copy(name)))
      FileUtils.ln_s(File.join(ROOT, name), in_copy(name))
    end
  end

  def test_test_files_that_start_no_server_need_none
    remove "redis-server"
    STARTING_NONE.each { |name| assert_no_server "test", in_copy(name) }
    assert_no_server "test", in_copy(STARTING_NONE.first), "-n", "/servers/"
    assert_no_server "test", "--help"
  end

  def test_options_of_the_setup_are_passed_on
    remove "redis-server"
    commands = [["test"], ["test", in_copy(STARTING.first)], ["test", "--matrix"], ["bench", "--quick"], ["bench", "--matrix"]]
    commands.each do |name, *rest|
      [["--no-system", *rest], [*rest, "--no-system"]].each do |arguments|
        _, err, status = run_bin(name, *arguments)
        assert_equal [[], 1], [installed, status.exitstatus], arguments
        assert_includes err, "redis-server"
      end
    end
  end

  def test_the_bundle_and_the_console_pass_them_on_as_well
    remove "ruby"
    [["bundle", "--no-system", "exec", "rake"], ["console", "--no-system"]].each do |command|
      _, err, status = run_bin(*command)
      assert_equal [[], 1], [installed, status.exitstatus], command
      assert_match(/missing: ruby ruby-dev/, err)
    end
  end

  def test_test_files_that_start_a_server_do_need_it
    STARTING.each do |name|
      remove "redis-server"
      before = installed.size
      run_bin("test", in_copy(STARTING_NONE.first), in_copy(name), "-v")
      assert_equal ["redis-server"], installed.drop(before), name
    end
  end

  # By what they are known.
  SUSPICIOUS = /\bServers\b|RedisCase|AofRedis|InteropCase|RedisServer|PostgresServer|\bOn(Lane|Pool)\b/

  # The list above, and what decides, must know of the next one.
  def test_no_test_file_starts_a_server_unseen
    suspects = Dir[File.join(ROOT, "{runtime,jobs,postgres,http,bench}/test/**/*_test.rb")].select do |path|
      path != __FILE__ && File.read(path).match?(SUSPICIOUS)
    end
    unseen, = Open3.capture2("bash", "-c", <<~'SH', "bash", ROOT, *suspects)
      source "$1/bin/support/common.sh" && source "$1/bin/support/needs.sh"
      for path in "${@:2}"; do [[ $(needs_of "$path") == *@(redis|postgresql)* ]] || echo "$path"; done
    SH
    of_ringspun = %w[simulation/servers_test.rb stream/net_test.rb].map { |path| File.join(ROOT, "runtime/test", path) }
    assert_equal of_ringspun, unseen.lines(chomp: true).sort
  end

  # Before anything is installed.
  def test_who_names_no_test_file_is_told
    none = in_copy("none_test.rb")
    FileUtils.mkdir_p(empty = in_copy("empty"))
    unnamed = "no test file is named; see bin/test --help."
    answers = { [none] => "there is no test file #{none}.", ["queue"] => "there is no test file queue.",
                [empty] => "no test file is in #{empty}.", ["--all-of-them"] => unnamed, ["-n", __FILE__] => unnamed }
    answers.each do |arguments, answer|
      out, err, status = run_bin("test", *arguments)
      assert_equal ["", "test: #{answer}\n", 1], [out, err, status.exitstatus]
    end
    assert_empty calls
  end

  def test_a_folder_stands_for_the_test_files_in_it
    program("path/ruby", 'case $1 in *run_tests.rb) printf "%s\n" "$@" ;; *) exec ROOT/path/real "$@" ;; esac')
  end

  def test_an_option_that_the_bench_has_not_is_refused_before_anything_is_installed
    remove "redis-server"
    [%w[--quik], %w[--only switch --sizes=3]].each do |arguments|
      _, err, status = run_bin("bench", *arguments)
      option = arguments.last.split("=").first
      assert_equal ["bench: unknown option #{option}; see bin/bench --help.\n", 2], [err, status.exitstatus]
    end
    assert_empty calls
  end

  def test_all_tests_those_of_the_night_and_the_bench_need_them
    fake_ruby("path/ruby3.4", "3.4.1")
    [["test"], ["test", "--nightly"], ["test", "--matrix"], ["bench", "--quick"]].each do |command|
      remove "redis-server"
      before = installed.size
      run_bin(*command)
      assert_equal ["redis-server"], installed.drop(before), command
    end
  end

  # By the files that the tables require.
  def test_the_bench_installs_what_its_tables_need
    remove "redis-server", "initdb", "chromium", "g++", "pkg-config", "nginx"
    { "switch" => [], "jobs_enqueue" => %w[redis-server], "echo" => %w[g++], "http_hello" => %w[nginx] }.each do |table, packages|
      before = installed.size
      run_bin("bench", "--only", table)
      assert_equal packages, installed.drop(before), table
    end
    remove "redis-server"
    before = installed.size
    run_bin("bench")
    assert_equal ["redis-server postgresql"], installed.drop(before)
  end

  def test_the_console_and_the_help_need_none
    remove "redis-server"
    assert_no_server "console"
    assert_no_server "bench", "--help"
    assert_no_server "bench", "--list"
  end

  def test_the_help_needs_no_ruby_and_builds_nothing
    run_bin("bench", "--help")
    assert_empty calls
    remove "ruby"
    %w[setup test bench console].each do |name|
      out, err, status = run_bin(name, "--help")
      assert_equal ["", true], [err, status.success?], name
      assert_match(/^usage: bin.#{name} /, out)
    end
    assert_empty calls
  end

  # As in a container, where no variable names a locale.
  def test_files_are_read_as_utf_8_whatever_the_locale
    [{}, { LANG: "C" }, { LC_ALL: "POSIX", LANG: "C.UTF-8" }].each do |env|
      code = "source #{ROOT}/bin/support/common.sh && #{RbConfig.ruby} -e 'print Encoding.default_external'"
      out, = Open3.capture2(environment({ **env, PATH: ENV.fetch("PATH") }), "bash", "-c", code, unsetenv_others: true)
      assert_equal "UTF-8", out, env
    end
  end

  def test_bundle_runs_programs_of_the_bundle_under_the_ruby_of_the_setup
    remove "redis-server"
    fake_ruby("elsewhere/ruby3.4", "3.4.1")
    assert_no_server "bundle", "exec", "rake", "-T", RINGSPUN_RUBY: in_copy("elsewhere/ruby3.4")
    assert_equal "exec rake -T", calls.last
    assert_equal [in_copy("elsewhere/ruby3.4")], Dir[in_copy("tmp/setup/path/*/ruby")].map { |link| File.readlink(link) }
    assert_path_exists in_copy("runtime/lib/ringspun/3.4/native.so")
    FileUtils.mkdir_p(in_copy("vendor/bundle/ruby/3.4.0/bin"))
    File.write(in_copy("vendor/bundle/ruby/3.4.0/bin/rake"), "#!/usr/bin/env ruby3.4\n") # of another Ruby 3.4
    assert_no_server "bundle", "exec", "rake", "-T", RINGSPUN_RUBY: in_copy("elsewhere/ruby3.4")
    assert_equal "exec #{in_copy("elsewhere/ruby3.4")} -S rake -T", calls.last
  end

  # A lock file comes before a setup, which refuses to work without one that fits.
  def test_bundle_locks_without_a_setup
    run_setup
    File.write(in_copy("Gemfile"), "\n", mode: "a")
    before = calls.size
    run_bin("bundle", "lock")
    assert_equal ["lock"], calls.drop(before)
  end

  private

  def assert_no_server(*command, **env)
    out, err, status = run_bin(*command, **env)
    assert_predicate status, :success?, out + err
    assert_empty installed, command
  end
end
