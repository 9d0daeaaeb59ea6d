# frozen_string_literal: true

require "test_helper"
require "support/setup_copy"

# rubies: one
# inputs: bin, Gemfile, Gemfile.lock, runtime/test/support/setup_copy.rb

# Which Ruby bin/setup takes, on systems that have apt but no reason to use it.
class SetupRubiesTest < Minitest::Test
  include AnyBackend
  include SetupCopy

  NO_VERSION = "echo 'No version is set for command ruby' >&2; exit 126"

  # A shim says where the Ruby behind it is, and that is what is written down: elsewhere it may stand for another.
  def test_a_ruby_behind_a_shim_is_taken_as_it_is
    fake_ruby("versions/3.4.2/bin/ruby", "3.4.2")
    program("path/ruby", %(exec ROOT/versions/3.4.2/bin/ruby "$@"))
    assert_taken "versions/3.4.2/bin/ruby", "3.4.2"
  end

  def test_a_ruby_in_the_folder_of_a_container_image_is_taken
    fake_ruby("usr/local/bin/ruby", "4.0.0")
    assert_taken "usr/local/bin/ruby", "4.0.0", PATH: "#{in_copy("usr/local/bin")}:#{in_copy("path")}"
  end

  def test_where_a_shim_stands_for_no_ruby_the_next_on_path_is_taken
    program("path/ruby", NO_VERSION)
    fake_ruby("path/ruby3.3", "3.3.8")
    assert_taken "path/ruby3.3", "3.3.8"
  end

  { "rbenv" => "home/.rbenv/versions", "asdf" => "home/.asdf/installs/ruby", "mise" => "home/.local/share/mise/installs/ruby",
    "chruby" => "home/.rubies" }.each do |manager, folder|
    define_method("test_what_#{manager}_has_installed_is_taken_where_its_shim_has_none_or_is_too_old") do
      program("#{folder}/3.2.1/bin/ruby", "exit 1") # so does a Ruby that describes itself and is too old
      fake_ruby("#{folder}/3.10.0/bin/ruby", "3.10.0")
      fake_ruby("#{folder}/3.3.6/bin/ruby", "3.3.6")
      program("path/ruby", NO_VERSION)
      assert_taken "#{folder}/3.3.6/bin/ruby", "3.3.6"
      program("path/ruby", %(exec ROOT/#{folder}/3.2.1/bin/ruby "$@"))
      assert_taken "#{folder}/3.3.6/bin/ruby", "3.3.6"
    end
  end

  def test_the_folders_of_version_managers_may_be_elsewhere
    fake_ruby("data/installs/ruby/3.3.7/bin/ruby", "3.3.7")
    assert_taken "data/installs/ruby/3.3.7/bin/ruby", "3.3.7", MISE_DATA_DIR: in_copy("data")
  end

  def test_a_named_ruby_comes_before_that_on_path
    fake_ruby("path/ruby", "3.4.0")
    fake_ruby("mine", "3.3.1")
    assert_taken "mine", "3.3.1", RINGSPUN_RUBY: in_copy("mine")
  end

  def test_a_named_ruby_that_is_none_is_refused
    fake_ruby("path/ruby")
    program("mine", "exit 1")
    assert_refused "RINGSPUN_RUBY=#{in_copy("mine")} is not a Ruby 3.3 or later with its headers and Bundler.",
                   RINGSPUN_RUBY: in_copy("mine")
    fake_ruby("mine", "3.4.0")
    assert_refused "RINGSPUN_RUBY_4=#{in_copy("mine")} is not a Ruby 4 with its headers and Bundler.",
                   RINGSPUN_RUBY_4: in_copy("mine")
  end

  # What the scripts ask, put to a Ruby that is there.
  def test_the_ruby_of_this_test_would_be_taken
    out, err, status = Open3.capture3("bash", "-c", <<~SH)
      source #{in_copy("bin/support/common.sh")}; source #{in_copy("bin/support/rubies.sh")}
      RINGSPUN_RUBY=#{RbConfig.ruby} find_ruby
    SH
    assert_equal ["#{RUBY_VERSION}\t#{RbConfig.ruby}\n", true], [out, status.success?], err
  end

  def test_the_matrix_has_ruby_4_where_one_is_named
    rubies_of_the_matrix
    fake_ruby("mine", "4.0.1")
    run_setup("--matrix", RINGSPUN_RUBY_4: in_copy("mine"))
    assert_equal %w[path/ruby path/ruby3.4 mine].map { |name| in_copy(name) },
                 %w[ruby ruby-matrix ruby-4].map { |name| chosen(name) }
    assert_path_exists in_copy("runtime/lib/ringspun/4.0/native.so")
  end

  def test_the_matrix_has_ruby_4_where_one_is_on_path_and_forgets_one_that_is_gone
    rubies_of_the_matrix
    fake_ruby("path/ruby4.0", "4.0.0")
    run_setup("--matrix")
    assert_equal in_copy("path/ruby4.0"), chosen("ruby-4")

    remove "ruby4.0"
    _, err, status = run_setup("--matrix")
    assert_predicate status, :success?, err
    refute_path_exists in_copy("tmp/setup/ruby-4")
  end

  def test_the_tests_of_the_matrix_run_on_each_of_its_rubies
    rubies_of_the_matrix
    fake_ruby("path/ruby4.0", "4.0.0", name: "4.0: ")
    _, err, status = run_bin("test", "--matrix")
    assert_predicate status, :success?, err
    assert_equal ["3.4: exec rake test:matrix", "4.0: exec rake test:matrix"], calls.last(2)
  end

  def test_the_tests_of_the_matrix_are_those_of_other_backends_and_rubies
    rubies_of_the_matrix
    run_bin("test", "--matrix", HOSTTYPE: "x86_64")
    assert_equal ["exec rake test:others", "3.4: exec rake test:matrix"], calls.last(2)
    assert_path_exists in_copy("tmp/setup/cross")
    refute_path_exists in_copy("tmp/setup/mruby")

    FileUtils.mkdir_p(in_copy("tmp/mruby/source/include/mruby"))
    File.write(in_copy("tmp/mruby/source/include/mruby/version.h"), "")
    before = calls.size
    _, err, status = run_bin("test", "--matrix", HOSTTYPE: "aarch64")
    assert_predicate status, :success?, err
    assert_equal ["exec rake test:others", "3.4: exec rake test:matrix"], calls.drop(before)
    refute_path_exists in_copy("tmp/setup/cross")
    assert_path_exists in_copy("tmp/setup/mruby")
  end

  def test_by_night_all_rubies_run_all
    rubies_of_the_matrix
    run_bin("test", "--nightly")
    assert_equal [*%w[nightly:tests nightly:long].map { |task| "exec rake #{task}" }, "3.4: exec rake test:matrix"], calls.last(3)
  end

  def test_a_failure_on_one_of_them_does_not_hide_what_the_next_says
    rubies_of_the_matrix
    fake_ruby("path/ruby4.0", "4.0.0", name: "4.0: ")
    script = File.read(in_copy("path/ruby3.4"))
    File.write(in_copy("path/ruby3.4"), script.sub("\n", "\ncase $* in *test:matrix*) exit 1 ;; esac\n"))
    _, err, status = run_bin("test", "--matrix")
    assert_equal ["4.0: exec rake test:matrix", 1], [calls.last, status.exitstatus]
    assert_match(/^test: failed on #{in_copy("path/ruby3.4")}\.$/, err)
  end

  private

  def rubies_of_the_matrix
    fake_ruby("path/ruby", "3.3.8")
    fake_ruby("path/ruby3.4", "3.4.1", name: "3.4: ")
  end

  def assert_taken(path, version, **env)
    _, err, status = run_setup(**env)
    assert_predicate status, :success?, err
    assert_match(/^Ruby #{version} \(#{in_copy(path)}\) is ready\.$/, err)
    assert_equal in_copy(path), chosen
    assert_empty installed
  end

  def assert_refused(message, **env)
    _, err, status = run_setup("--matrix", **env)
    assert_equal ["setup: #{message}\n", 1], [err, status.exitstatus]
    assert_empty calls
  end
end
