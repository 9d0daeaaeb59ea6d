# frozen_string_literal: true

require "test_helper"
require "support/setup_copy"

# rubies: one
# inputs: bin, Gemfile, Gemfile.lock, bench/main_rows.tsv, runtime/test/support/setup_copy.rb

# The Ruby with YJIT that bin/setup makes ready beside the one that is taken, on which the bench may run.
class SetupYjitTest < Minitest::Test
  include AnyBackend
  include SetupCopy

  # A folder of chruby's.
  WITH = "home/.rubies/3.4.1-yjit/bin/ruby"

  def setup
    super
    fake_ruby("path/ruby", "3.3.8")
  end

  def test_one_that_is_here_is_ready_beside_the_first
    fake_ruby(WITH, "3.4.1")
    2.times { assert_predicate run_setup("--yjit").last, :success? }
    assert_equal [in_copy("path/ruby"), in_copy(WITH)], [chosen, chosen("ruby-yjit")]
    assert_path_exists in_copy("runtime/lib/ringspun/3.4/native.so")
    assert_equal 2, calls.grep(/rake compile/).size
    assert_empty installed
  end

  def test_the_first_is_taken_where_it_has_yjit
    fake_ruby("yjit/ruby", "3.3.8")
    _, err, status = run_setup("--yjit", RINGSPUN_RUBY: in_copy("yjit/ruby"))
    assert_predicate status, :success?, err
    assert_equal [in_copy("yjit/ruby")] * 2, [chosen, chosen("ruby-yjit")]
  end

  # What is built for one of them would be taken by the other.
  def test_of_two_with_the_same_version_only_that_with_yjit_is_ready
    fake_ruby("home/.rubies/3.3.8-yjit/bin/ruby", "3.3.8")
    2.times { assert_predicate run_setup("--yjit").last, :success? }
    assert_equal [in_copy("path/ruby"), in_copy("home/.rubies/3.3.8-yjit/bin/ruby")], [chosen, chosen("ruby-yjit")]
    assert_equal 1, calls.grep(/rake compile/).size
  end

  def test_where_none_has_it_one_is_built
    _, err, status = run_setup("--yjit")
    assert_predicate status, :success?, err
    assert_match(%r{\A#{in_copy("home/.cache/ringspun/ruby")}/3\.4\.11-1-\h{12}-yjit/bin/ruby\z}, chosen("ruby-yjit"))
    assert_equal in_copy("path/ruby"), chosen
    assert_match(/--enable-yjit$/, calls.grep(/^configure/).fetch(0))
    assert_match(/install the gems for Ruby 3\.4/, err)
  end

  def test_with_the_matrix_its_ruby_is_that_one
    fake_ruby("path/ruby3.4", "3.4.2")
    fake_ruby(WITH, "3.4.1")
    _, err, status = run_setup("--matrix", "--yjit", HOSTTYPE: "aarch64")
    assert_predicate status, :success?, err
    assert_equal in_copy(WITH), chosen("ruby-matrix")
    refute_path_exists in_copy("tmp/setup/ruby-yjit")
  end

  def test_a_system_on_which_none_is_built_says_what_to_do
    on "ID=fedora"
    _, err, status = run_setup("--yjit")
    assert_equal 1, status.exitstatus
    assert_equal "setup: no Ruby here has YJIT. Install one by rbenv, asdf or mise while a compiler of Rust is there: " \
                 "bin/setup finds it.\n", err
  end

  def test_a_named_ruby_without_it_is_refused
    _, err, status = run_setup("--yjit", RINGSPUN_RUBY: in_copy("path/ruby"))
    assert_equal 1, status.exitstatus
    assert_equal "setup: RINGSPUN_RUBY=#{in_copy("path/ruby")} has no YJIT. Name one that was built with a compiler of Rust " \
                 "at hand, or none: `bin/setup --yjit` finds one, or builds it.\n", err
    assert_empty calls
  end

  def test_the_bench_runs_on_it_and_hands_yjit_on
    FileUtils.mkdir_p(in_copy("bench"))
    FileUtils.cp(File.join(ROOT, "bench/main_rows.tsv"), in_copy("bench"))
    program(WITH, "case \"$*\" in *bench/main.rb*) echo \"with: $RUBYOPT $*\" >>ROOT/calls && exit ;; esac\n" \
                  "#{fake_ruby(WITH, "3.4.1") && File.read(in_copy(WITH))}")
    _, err, status = run_bin("bench", "--quick", "--yjit")
    assert_predicate status, :success?, err
    assert_equal "with: --yjit -rbundler/setup bench/main.rb --quick --yjit", calls.last
  end

  # It would also decide which gems are loaded.
  def test_the_bench_says_that_it_leaves_rubyopt_out
    _, err, status = run_bin("bench", "--quick", RUBYOPT: "--yjit")
    assert_predicate status, :success?, err
    assert_match(/^bench: RUBYOPT=--yjit is left out: no Ruby here has it\. For YJIT there is an option, --yjit\.$/, err)
  end
end
