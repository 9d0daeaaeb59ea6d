# frozen_string_literal: true

require "test_helper"
require "support/setup_copy"

# rubies: one
# inputs: bin, Gemfile, Gemfile.lock, runtime/test/support/setup_copy.rb

# What bin/setup makes beside the system, in the cache, where Debian 12 lacks it.
class SetupBesideTest < Minitest::Test
  include AnyBackend
  include SetupCopy

  MADE = "home/.cache/ringspun/ruby"

  def test_a_ruby_is_built_beside_the_system
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_equal ["libssl-dev libyaml-dev"], installed
    assert_match(%r{\A#{in_copy(MADE)}/3\.3\.8-2-\h{12}/bin/ruby\z}, chosen)
    assert_includes calls, "apt-get source ruby3.3=3.3.8-2"
    assert_match(/--prefix=#{File.dirname(chosen, 2)} .*--disable-yjit$/, calls.grep(/^configure/).first)
    assert_equal ["patch +++ b/io.c"], calls.grep(/^patch/)
    assert_equal ["lock", File.basename(chosen[%r{.*(?=/bin/ruby)}])], Dir.children(in_copy(MADE)).sort.reverse
  end

  def test_it_is_built_once_for_all_clones
    run_setup
    FileUtils.rm_rf(in_copy("tmp"))
    before = calls.size
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_empty calls.drop(before).grep(/apt-get|configure/)
  end

  # As in a container that has the cache of another system, or after an autoremove.
  def test_one_whose_libraries_are_gone_has_them_installed_and_is_not_built_again
    run_setup
    made = chosen.delete_prefix("#{@root}/")
    program(made, "case \"$*\" in *-rpsych*) [ -e ROOT/headers/libyaml-dev ] || exit 1 ;; esac\n#{File.read(chosen)}")
    FileUtils.rm_rf([in_copy("tmp"), in_copy("headers/libyaml-dev")])
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_equal ["libssl-dev libyaml-dev", "libyaml-dev"], installed
    assert_equal 1, calls.grep(/^configure/).size
    assert_equal in_copy(made), chosen
  end

  def test_two_set_ups_at_once_build_one
    File.mkfifo(in_copy("gate"))
    program("built", "cat ROOT/gate")
    logs = Array.new(2) { |number| in_copy("log#{number}") }
    pids = logs.map { |log| spawn(environment({}), in_copy("bin/setup"), in: File::NULL, %i[out err] => log, unsetenv_others: true) }
    sleep 0.01 until logs.any? { |log| File.read(log).include?("waiting for another bin/setup in this clone") }
    File.write(in_copy("gate"), "")
    assert(pids.map { |pid| Process.wait2(pid).last.success? }.all?, logs.map { |log| File.read(log) }.join)
    assert_equal 1, calls.grep(/^configure/).size
  end

  def test_who_asks_for_yjit_has_a_ruby_with_it_from_then_on
    2.times { assert_predicate run_setup("--yjit").last, :success? }
    assert_match(/--enable-yjit$/, calls.grep(/^configure/).join("\n"))
    run_setup
    assert_equal 1, calls.grep(/^configure/).size
    assert_match(%r{-yjit/bin/ruby\z}, chosen)
    assert_includes installed.first, "rustc"
  end

  def test_the_matrix_builds_its_second_ruby_as_well_and_leaves_the_first
    _, err, status = run_setup("--matrix", HOSTTYPE: "aarch64")
    assert_predicate status, :success?, err
    assert_match(%r{/3\.3\.8-2-\h+/bin/ruby\z}, chosen)
    assert_match(%r{/3\.4\.11-1-\h+/bin/ruby\z}, chosen("ruby-matrix"))
  end

  def test_an_archive_that_has_lost_the_newest_source_gives_the_one_before
    File.write(in_copy("source"), <<~SH + SetupCopy::SOURCE.gsub("ROOT", @root))
      case "$*" in *=3.3.8-2) echo "E: 404" >&2 && exit 100 ;; esac
    SH
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_match(%r{/3\.3\.8-1-}, chosen)
    assert_match(/^The mirror has lost ruby3\.3 3\.3\.8-2 which its list names, so it is an older one\.$/, err)
  end

  def test_a_ruby_that_does_not_build_leaves_one_sentence_and_nothing_else
    program("built", "echo cannot >&2; exit 1")
    _, err, status = run_setup
    assert_equal 1, status.exitstatus
    log = in_copy("tmp/setup/build-ruby.log")
    assert_equal "setup: Ruby does not build; #{log} says why.", err.lines.last.chomp
    assert_match(/cannot/, File.read(log))
    assert_equal %w[lock], Dir.children(in_copy(MADE))
  end

  def test_a_ruby_without_one_of_its_libraries_is_none
    program("built", ": >no-openssl")
    _, err, status = run_setup
    assert_equal 1, status.exitstatus
    assert_match(/^setup: Ruby was built without openssl; \S+ says why\.$/, err)
    assert_equal %w[lock], Dir.children(in_copy(MADE))
  end

  def test_without_the_system_it_says_what_to_type_and_builds_when_that_is_there
    FileUtils.mkdir_p(in_copy("apt"))
    File.write(in_copy("apt/sources.list"), "deb http://deb.debian.org/debian bookworm main\n")
    _, err, status = run_setup("--no-system")
    assert_equal [1, []], [status.exitstatus, calls]
    assert_match(/^  apt-get install --no-install-recommends libssl-dev libyaml-dev$/, err)
    %w[libssl-dev libyaml-dev].each { |name| File.write(in_copy("headers/#{name}"), "") }
    _, err, status = run_setup("--no-system")
    assert_predicate status, :success?, err
    assert_empty installed
  end

  def test_servers_that_only_debian_13_has_are_unpacked_with_their_libraries
    matrix_on_debian12
    2.times do
      _, err, status = run_setup("--matrix", HOSTTYPE: "aarch64")
      assert_predicate status, :success?, err + File.read(in_copy("tmp/setup/servers.log"))
    end
    assert_equal %w[libc6 pgbouncer postgresql-17 valkey-server], calls.grep(/^dpkg -x/).map { |call| call[/-x (.*)_1_/, 1] }
    assert_equal ["postgresql-15"], installed
    out, = Open3.capture2(in_copy("tmp/setup/servers/usr/lib/postgresql/17/bin/initdb"), "--version")
    assert_equal "run as initdb: #{File.realpath(in_copy("tmp/setup/servers"))}/programs/initdb\n", out
  end

  def test_servers_that_do_not_run_are_not_left
    matrix_on_debian12
    program("loader", "exit 1")
    _, err, status = run_setup("--matrix", HOSTTYPE: "aarch64")
    assert_equal 1, status.exitstatus
    assert_match(/^setup: the unpacked servers do not run; \S+ says why\.$/, err)
    assert_equal %w[lock], Dir.children(in_copy("var/servers"))
  end

  # By night, see rakelib/setup.rake.
  def test_the_run_in_a_bare_debian_says_where_it_is_left_out
    out, err, status = run_bin("support/bare_debian.sh")
    assert_equal ["", "left out: a bare bookworm, which wants root and the program debootstrap\n"], [out, err]
    assert_predicate status, :success?
  end

  private

  def matrix_on_debian12
    fake_ruby("path/ruby")
    fake_ruby("path/ruby3.4", "3.4.1")
    FileUtils.mkdir_p(in_copy("apt"))
    File.write(in_copy("apt/sources.list"), "deb http://deb.debian.org/debian bookworm main\n")
  end
end
