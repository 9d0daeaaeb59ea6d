# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

# bin/setup in a copy of the tree, with a Ruby that writes down what Bundler is asked for instead of asking it.
class SetupTest < Minitest::Test
  include AnyBackend

  ROOT = File.expand_path("../..", __dir__)
  NEEDED = %w[bin Gemfile Gemfile.lock runtime/ringspun.gemspec jobs/ringspun-jobs.gemspec runtime/lib/ringspun/version.rb
              runtime/ext rakelib/compile.rake].freeze

  FAKE_RUBY = <<~SH
    #!/bin/sh
    root=$(dirname "$0")
    case "$*" in
      *rbconfig*) printf '#{RUBY_VERSION}\\t%s' "$0" && exit ;;
      *install*) mkdir -p "$root/vendor/bundle" ;;
      *rake*) touch "$root/runtime/lib/ringspun/#{RUBY_VERSION[/\d+\.\d+/]}/native.so" ;;
    esac
    while [ "$1" != -- ]; do shift; done
    shift
    echo "$*" >>"$root/calls"
  SH

  def setup
    @root = Dir.mktmpdir
    NEEDED.each do |name|
      FileUtils.mkdir_p(File.dirname(in_copy(name)))
      FileUtils.cp_r(File.join(ROOT, name), in_copy(name))
    end
    FileUtils.mkdir_p(in_copy("runtime/lib/ringspun/#{RUBY_VERSION[/\d+\.\d+/]}"))
    File.write(in_copy("ruby"), FAKE_RUBY, perm: 0o755)
  end

  def teardown
    FileUtils.remove_entry(@root)
    super
  end

  def test_help_says_what_it_takes_and_does_nothing
    before = files
    %w[--help -h].each do |option|
      out, err, status = run_setup(option)
      assert_equal ["", true], [err, status.success?]
      assert_match(%r{\AMakes this clone ready.*^usage: bin/setup .*--yes.*--matrix.*--quiet.*RINGSPUN_RUBY}m, out)
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
    assert_match(/Installing gems.*Building the extension.*is ready/m, err)
    assert_equal ["install --quiet", "exec rake compile"], calls.reject { |call| call.start_with?("config ") }
    before = calls
    assert_quiet("Ruby #{RUBY_VERSION} (#{in_copy("ruby")}) is ready.\n", *run_setup)
    assert_quiet("", *run_setup("--quiet"))
    assert_equal before, calls
  end

  def test_a_change_makes_it_do_again_what_depends_on_it
    run_setup
    { "runtime/ext/ringspun/extconf.rb" => ["exec rake compile"],
      "Gemfile.lock" => ["install --quiet"] }.each do |name, expected|
      before = calls.size
      File.write(in_copy(name), "\n", mode: "a")
      run_setup("--quiet")
      assert_equal expected, calls.drop(before).reject { |call| call.start_with?("config ") }, name
    end
  end

  private

  def in_copy(name) = File.join(@root, name)
  def files = Dir.glob("**/*", File::FNM_DOTMATCH, base: @root).sort
  def calls = File.readlines(in_copy("calls"), chomp: true)

  # From elsewhere, as it may be.
  def run_setup(*arguments)
    Open3.capture3({ "RINGSPUN_RUBY" => in_copy("ruby") }, in_copy("bin/setup"), *arguments, chdir: "/")
  end

  def assert_quiet(expected, out, err, status) = assert_equal(["", expected, true], [out, err, status.success?])
end
