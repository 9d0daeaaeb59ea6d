# frozen_string_literal: true

require "test_helper"
require "support/setup_copy"

# rubies: one
# inputs: bin, Gemfile, Gemfile.lock, runtime/test/support/setup_copy.rb

# bin/setup on a system that has all it needs. What it does where that lacks something: setup/.
class SetupTest < Minitest::Test
  include AnyBackend
  include SetupCopy

  OPTIONS = %w[--yes --no-system --no-servers --needs=LIST --matrix --peers --yjit --upgrade-system --quiet].freeze

  def setup
    super
    fake_ruby("path/ruby")
  end

  def test_help_says_what_it_takes_and_does_nothing
    before = files
    %w[--help -h].each do |option|
      out, err, status = run_setup(option)
      assert_equal ["", true], [err, status.success?]
      assert_match(/\AMakes this clone ready.*^usage: bin.setup /m, out)
      assert_empty OPTIONS.reject { |option| out.match?(/^ +#{option} /) }
      assert_match(/^RINGSPUN_RUBY names.*^RINGSPUN_RUBY_4 names/m, out)
      refute_match(/^#|set -euo/, out)
    end
    assert_equal before, files
  end

  def test_an_unknown_argument_is_refused
    before = files
    out, err, status = run_setup("--everything")
    assert_equal ["", "setup: unknown argument --everything; see bin/setup --help.\n", 1], [out, err, status.exitstatus]
    assert_equal before, files
  end

  def test_the_second_time_it_does_nothing
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_match(/Installing gems.*Building the extension.*is ready.*Installing Rails/m, err)
    assert_equal ["install --quiet", "exec rake compile", "install --quiet"], calls.reject { |call| call.start_with?("config ") }
    before = calls
    assert_quiet("Ruby #{RUBY_VERSION} (#{in_copy("path/ruby")}) is ready.\n", *run_setup)
    assert_quiet("", *run_setup("--quiet"))
    assert_equal before, calls
  end

  def test_a_change_makes_it_do_again_what_depends_on_it
    run_setup
    { "runtime/ext/ringspun/extconf.rb" => ["exec rake compile"],
      "postgres/ext/ringspun_postgres/extconf.rb" => ["exec rake compile"],
      "engine/src/core/base.c" => ["exec rake compile"], "engine/include/ringspun/engine.h" => ["exec rake compile"],
      "Gemfile.lock" => ["install --quiet"], "jobs/test/rails/8.1/Gemfile.lock" => ["install --quiet"] }.each do |name, expected|
      before = calls.size
      File.write(in_copy(name), "\n", mode: "a")
      run_setup("--quiet")
      assert_equal expected, calls.drop(before).reject { |call| call.start_with?("config ") }, name
    end
  end

  def test_a_library_that_was_built_again_and_is_the_same_is_left_as_it_is
    run_setup
    %w[runtime/lib/ringspun/%s/native.so postgres/lib/ringspun/%s/postgres_native.so
       http/lib/ringspun/%s/http_native.so].each do |name|
      library = in_copy(format(name, RUBY_VERSION[/\d+\.\d+/]))
      before = calls.size
      FileUtils.touch(library, mtime: Time.now + 60)
      assert_quiet("", *run_setup("--quiet"))
      File.write(library, "another")
      run_setup("--quiet")
      assert_equal ["exec rake compile"], calls.drop(before), name
    end
  end

  # Bundler leaves one that it has kept for other clones in `extensions` alone, and extralite looks for it in its lib.
  def test_the_extension_of_a_gem_is_in_its_lib_too
    gems = in_copy("vendor/bundle/ruby/3.3.0")
    FileUtils.mkdir_p(["#{gems}/gems/some-1.0/lib", "#{gems}/extensions/x86_64-linux/3.3.0/some-1.0/some"])
    File.write("#{gems}/extensions/x86_64-linux/3.3.0/some-1.0/some/native.so", "built")
    run_setup
    assert_equal "built", File.read("#{gems}/gems/some-1.0/lib/some/native.so")
  end

  private

  def assert_quiet(expected, out, err, status) = assert_equal(["", expected, true], [out, err, status.success?])
end
