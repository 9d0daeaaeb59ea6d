# frozen_string_literal: true

require "test_helper"
require "digest"
require "support/setup_copy"

# rubies: one
# inputs: bin, Gemfile, Gemfile.lock, runtime/test/support/setup_copy.rb

# bin/setup on systems that lack something.
class SetupSystemTest < Minitest::Test
  include AnyBackend
  include SetupCopy

  SAID = <<~TEXT
    Missing: redis-server. apt will
      remove 1:
        libdb5.3
      upgrade 1:
        libc6 (2.36-9 => 2.41-12)
      install 2:
        redis-tools (7.0)
        redis-server (7.0)
  TEXT

  ALL = "ruby ruby-dev gcc g++ make libc6-dev redis-server"

  def setup
    super
    fake_ruby("path/ruby")
  end

  def test_without_a_terminal_it_says_what_apt_will_do_and_goes_on
    remove "redis-server"
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_operator err, :start_with?, SAID
    refute_includes err, "Go on?"
    assert_equal ["redis-server"], installed
  end

  BUILD_TOOLS = "libssl-dev libyaml-dev"

  def test_all_that_is_missing_is_one_transaction
    remove "ruby", *COMPILERS, "redis-server"
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_equal ["gcc g++ make libc6-dev redis-server #{BUILD_TOOLS} zlib1g-dev libffi-dev"], installed
    assert_equal 1, err.scan("Missing:").size
    assert_match(/is ready.$/, err)
  end

  def test_the_system_is_upgraded_where_that_is_asked_for
    remove "ruby", *COMPILERS, "redis-server"
    _, err, status = run_setup("--upgrade-system")
    assert_predicate status, :success?, err
    assert_equal ["-t trixie #{ALL}"], installed
    assert_match(/Debian's trixie as well/, err)
    assert_equal in_copy("path/ruby"), chosen
  end

  def test_so_is_all_that_is_missing_for_the_matrix
    remove "ruby", "redis-server"
    _, err, status = run_setup("--matrix", "--upgrade-system")
    assert_predicate status, :success?, err
    assert_equal ["-t trixie ruby ruby-dev ruby3.4 ruby3.4-dev redis-server"], installed
    assert_match(/Debian's trixie experimental as well/, err)
    assert_equal in_copy("path/ruby3.4"), chosen("ruby-matrix")
  end

  CROSS_TOOLS = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"

  def test_the_matrix_wants_what_tests_the_engine_on_another_processor
    remove(*CROSS)
    run_setup
    refute_path_exists in_copy("tmp/setup/cross")
    fake_ruby("path/ruby3.4", "3.4.1")
    _, err, status = run_setup("--matrix", HOSTTYPE: "x86_64")
    assert_predicate status, :success?, err
    assert_equal [CROSS_TOOLS], installed
    assert_path_exists in_copy("tmp/setup/cross")
  end

  def test_the_matrix_wants_what_keeps_objects_where_it_is_used
    remove "ccache"
    run_setup
    fake_ruby("path/ruby3.4", "3.4.1")
    _, err, status = run_setup("--matrix")
    assert_predicate status, :success?, err
    assert_equal %w[ccache], installed
  end

  def test_the_matrix_wants_the_other_proxies_by_night
    fake_ruby("path/ruby3.4", "3.4.1")
    remove(*PROXIES)
    run_setup("--matrix")
    assert_empty installed
    _, err, status = run_setup("--matrix", RINGSPUN_NIGHTLY: "1")
    assert_predicate status, :success?, err
    assert_equal ["haproxy varnish apache2"], installed
  end

  # Of the bench, each with gems of its own.
  def test_a_peer_that_cannot_be_installed_is_named_and_left_out
    fake_ruby("path/real", path: in_copy("path/ruby"))
    program("path/ruby", <<~'SH')
      case "$BUNDLE_GEMFILE $*" in
        *iodine*install*) echo "An error occurred while installing iodine (0.7.58), and Bundler cannot continue." && exit 1 ;;
      esac
      exec ROOT/path/real "$@"
    SH
    _, err, status = run_setup("--needs=web-peers")
    assert_predicate status, :success?, err
    assert_match(/^iodine is left out: setup: the gem iodine 0.7.58 cannot be installed;/, err)
    assert_equal 6, err.scan("a peer of the bench").size
    _, err, = run_setup("--needs=web-peers")
    assert_equal ["Installing iodine, a peer of the bench"], err.scan(/Installing \w+, a peer of the bench/)
  end

  def test_the_matrix_does_without_where_the_system_has_no_such_packages_or_is_that_processor
    fake_ruby("path/ruby3.4", "3.4.1")
    { "ID=fedora" => "x86_64", "ID=alpine" => "x86_64", "ID=debian" => "aarch64" }.each do |system, processor|
      run_setup("--matrix", HOSTTYPE: "x86_64")
      assert_path_exists in_copy("tmp/setup/cross"), system
      remove(*CROSS)
      on system
      _, err, status = run_setup("--matrix", HOSTTYPE: processor)
      assert_predicate status, :success?, err
      refute_path_exists in_copy("tmp/setup/cross"), system
      CROSS.each { |name| program("path/#{name}", "exit 0") }
      on "ID=debian"
    end
    assert_empty installed
  end

  def test_the_matrix_wants_both_versions_of_postgresql_and_a_pgbouncer_on_debian_12
    fake_ruby("path/ruby3.4", "3.4.1")
    on_debian "bookworm bookworm-updates"
    run_setup
    assert_empty installed
    2.times do
      _, err, status = run_setup("--matrix")
      assert_predicate status, :success?, err
    end
    assert_equal ["postgresql-15"], installed
    run_setup("--matrix", "--no-servers")
    assert_equal 1, installed.size
  end

  def test_debian_13_has_one_version_of_postgresql_and_both_of_its_own
    fake_ruby("path/ruby3.4", "3.4.1")
    on_debian "trixie"
    2.times { assert_predicate run_setup("--matrix").last, :success? }
    assert_equal ["postgresql-17 pgbouncer"], installed
  end

  def test_the_matrix_fetches_the_source_of_mruby_once
    fake_ruby("path/ruby3.4", "3.4.1")
    on_debian "trixie"
    2.times { assert_predicate run_setup("--matrix").last, :success? }
    assert_equal ["apt-get source mruby=3.3.0-1"], calls.grep(/ source /)
    %w[tmp/setup/mruby tmp/mruby/source/include/mruby/version.h].each { |name| assert_path_exists in_copy(name) }
  end

  def test_a_source_of_mruby_that_is_named_is_taken
    fake_ruby("path/ruby3.4", "3.4.1")
    FileUtils.mkdir_p(in_copy("mine/include/mruby"))
    File.write(in_copy("mine/include/mruby/version.h"), "")
    run_setup("--matrix", MRUBY_SRC: in_copy("mine"))
    assert_path_exists in_copy("tmp/setup/mruby")
    run_setup("--matrix", MRUBY_SRC: in_copy("gone"))
    refute_path_exists in_copy("tmp/setup/mruby")
    assert_empty calls.grep(/ source /)
  end

  def test_a_source_of_mruby_that_cannot_be_fetched_ends_it
    fake_ruby("path/ruby3.4", "3.4.1")
    on_debian "trixie"
    File.write(in_copy("no-source"), "")
    _, err, status = run_setup("--matrix")
    assert_equal 1, status.exitstatus
    assert_match(/E: Unable to find a source package\nsetup: the source of mruby cannot be fetched\. MRUBY_SRC may name/, err)
  end

  def test_the_matrix_does_without_where_these_are_not_to_be_had
    fake_ruby("path/ruby3.4", "3.4.1")
    ["ID=fedora", "ID=alpine", "ID=ubuntu\nID_LIKE=debian"].each do |system|
      on system
      on_debian "noble", file: "sources.list.d/own.list",
                         text: "deb https://example.org cloud-bookworm main\n# deb x trixie main\n"
      _, err, status = run_setup("--matrix")
      assert_predicate status, :success?, err
    end
    assert_empty installed
  end

  # Who has a PostgreSQL may have it as a service.
  def test_a_second_postgresql_makes_no_database_and_leaves_the_service_of_the_first
    fake_ruby("path/ruby3.4", "3.4.1")
    on_debian "bookworm", file: "sources.list", text: "deb http://deb.debian.org/debian bookworm main\n"
    program("path/apt-get", <<~SH + SetupCopy::FAKES.fetch("apt-get"))
      case "$*" in *" -y "*) echo "$*" >ROOT/apt-options ;; esac
    SH
    run_setup("--matrix")
    assert_includes File.read(in_copy("apt-options")), "createcluster.d/ringspun-setup.conf"
    refute_includes calls, "update-rc.d postgresql disable"
  end

  def test_an_older_pgbouncer_is_missing_and_its_service_left_as_it_is
    fake_ruby("path/ruby3.4", "3.4.1")
    on_debian "trixie"
    program("sbin/pgbouncer", "echo PgBouncer 1.18.0")
    run_setup("--matrix")
    assert_equal ["postgresql-17 pgbouncer"], installed
    refute_includes calls, "update-rc.d pgbouncer disable"
  end

  # As a system has that installs its updates just after it was started.
  def test_it_says_that_it_waits_for_another_apt
    FileUtils.mkdir_p(in_copy("dpkg"))
    File.write(in_copy("dpkg/lock-frontend"), "")
    File.write(in_copy("locks"), "1: POSIX  ADVISORY  WRITE 7 fe:00:#{File.stat(in_copy("dpkg/lock-frontend")).ino} 0 EOF\n")
    remove "redis-server"
    assert_match(/^waiting for another apt$/, run_setup[1])
    File.write(in_copy("locks"), "")
    remove "redis-server"
    refute_match(/waiting/, run_setup[1])
  end

  def test_it_says_before_it_begins_what_it_will_do_and_how_long_that_takes
    _, err, status = run_setup
    assert_predicate status, :success?, err
    gems = "install the gems for Ruby #{RUBY_VERSION} into"
    assert_match(/\Abin.setup will\n  #{gems} .*\n  build the extensions.*\nThat takes about \d+ /, err)
    assert_equal "Ruby #{RUBY_VERSION} (#{in_copy("path/ruby")}) is ready.\n", run_setup[1]
  end

  def test_a_gem_that_does_not_build_is_one_sentence_with_the_path_of_the_log
    script = File.read(in_copy("path/ruby"))
    failing = 'case "$*" in *install*) printf "pages\nAn error occurred while installing racc (1.8.1)\n" >&2; exit 5 ;; esac'
    File.write(in_copy("path/ruby"), script.sub("\n") { "\n#{failing}\n" })
    _, err, status = run_setup
    log = in_copy("tmp/setup/gems.log")
    assert_equal ["setup: the gem racc 1.8.1 cannot be installed; #{log} says why.\n", 1], [err.lines.last, status.exitstatus]
    refute_match(/pages/, err)
    assert_match(/pages/, File.read(log))
  end

  def test_a_compiler_that_does_not_run_is_found_before_anything_is_built
    program("path/gcc", '[ "$1" = -E ]')
    _, err, status = run_setup
    assert_equal 1, status.exitstatus
    assert_match(/^setup: the compiler of #{in_copy("path/ruby")}, `gcc`, cannot build a line of C\./, err)
    assert_empty calls
  end

  def test_only_what_is_needed_is_installed
    remove "redis-server", "chromium", "pkg-config", "g++"
    _, err, status = run_setup("--needs=redis")
    assert_predicate status, :success?, err
    assert_equal %w[redis-server], installed
    refute_match(/set --local with/, calls.join("\n"))
    run_setup("--needs=eventmachine")
    assert_equal %w[redis-server g++], installed
    assert_includes calls, "config set --local with eventmachine"
    remove "g++" # these gems stay, and are built again for another Ruby
    fake_ruby("path/ruby", "3.4.1")
    run_setup("--no-servers")
    assert_equal %w[redis-server g++ g++], installed
    _, err, status = run_setup("--needs=redes")
    assert_equal 1, status.exitstatus
    assert_equal "setup: --needs has no redes, but redis, postgresql, nginx, browser, rails, eventmachine, web-peers.\n", err
  end

  # A user who has said no to a compiler of C++ is not asked for it by the next call, which has no use for it.
  def test_what_was_refused_is_not_needed_from_then_on
    remove "g++"
    fake_ruby("path/ruby")
    refute run_at_terminal("n", "--needs=eventmachine").last
    _, err, status = run_setup("--no-servers")
    assert_predicate status, :success?, err
    assert_empty installed
    refute_match(/set --local with/, calls.join("\n"))
  end

  # Bundler's own settings have it from when it was told to, before it has failed.
  def test_what_could_not_be_built_is_not_needed_from_then_on
    FileUtils.mkdir_p(in_copy(".bundle"))
    File.write(in_copy(".bundle/config"), "---\nBUNDLE_WITH: \"eventmachine\"\n")
    _, err, status = run_setup("--no-servers")
    assert_predicate status, :success?, err
    assert_includes calls, "config unset --local with"
  end

  def test_who_is_root_is_told_that_apt_has_failed
    remove "redis-server"
    program("path/apt-get", <<~'SH')
      case " $* " in
        *" -s install "*) cat ROOT/simulated ;;
        *" install "*) echo 'E: half' >&2 && exit 100 ;;
      esac
    SH
    _, err, status = run_setup
    assert_equal ["E: half\nsetup: apt failed; see above.\n", 1], [err.lines.last(2).join, status.exitstatus]
  end

  def test_at_a_terminal_it_asks_once_and_before_anything_else
    remove "ruby", *COMPILERS, "redis-server"
    seen, success = run_at_terminal("n")
    assert_equal [1, false], [seen.scan("Go on?").size, success], seen
    assert_match(/upgrade 1:.*Go on\? \[y.N\].*nothing was changed/m, seen)
    assert_empty calls.grep_v(/update$|^apt-get -s/)

    seen, success = run_at_terminal("y")
    assert_equal [1, true], [seen.scan("Go on?").size, success], seen
    assert_equal 1, installed.size
  end

  def test_yes_and_ci_are_answers
    [[["--yes"], {}], [[], { CI: "true" }]].each do |arguments, env|
      remove "redis-server"
      seen, success = run_at_terminal("n", *arguments, **env)
      assert_equal [0, true], [seen.scan("Go on?").size, success], seen
    end
    assert_equal %w[redis-server redis-server], installed
  end

  def test_no_system_says_what_to_type_and_leaves_the_system_alone
    remove "redis-server", "g++"
    _, err, status = run_setup("--no-system", "--yes")
    assert_equal [<<~TEXT, 1], [err, status.exitstatus]
      setup: missing: g++ redis-server.
      Type this, and run bin/setup again:
        apt-get install --no-install-recommends g++ redis-server
    TEXT
    assert_empty calls
  end

  def test_no_system_does_the_rest_where_nothing_is_missing
    _, err, status = run_setup("--no-system")
    assert_predicate status, :success?, err
    assert_path_exists in_copy("vendor/bundle")
  end

  # Also where no systemctl is, as in a container: the packages enable their services by other means.
  def test_services_are_left_disabled
    remove "redis-server"
    run_setup
    assert_equal ["apt-get install redis-server", "deb-systemd-helper redis-server disable redis-server.service",
                  "update-rc.d redis-server disable"], calls[calls.index("apt-get install redis-server"), 3]

    program("path/systemctl", 'echo "systemctl $*" >>ROOT/calls')
    remove "redis-server"
    run_setup
    assert_includes calls, "systemctl disable redis-server.service"
  end

  def test_a_temporary_folder_with_a_blank_in_its_name
    FileUtils.mkdir_p(in_copy("a folder"))
    remove "redis-server"
    _, err, status = run_setup(TMPDIR: in_copy("a folder"))
    assert_predicate status, :success?, err
    assert_includes calls, "update-rc.d redis-server disable"
    assert_empty Dir.children(in_copy("a folder"))
  end

  # Its package makes a database unless it is told not to; its programs are not on PATH afterwards.
  def test_postgresql_is_installed_without_a_database_and_disabled
    remove "initdb"
    program("packages/postgresql", "exit 0")
    program("path/apt-get", <<~SH + SetupCopy::FAKES.fetch("apt-get"))
      case "$*" in
        *" install postgresql") echo "$*" >ROOT/apt-options && mkdir -p ROOT/postgresql/15/bin && touch ROOT/postgresql/15/bin/initdb ;;
      esac
    SH
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_equal ["postgresql"], installed
    assert_includes File.read(in_copy("apt-options")), "createcluster.d/ringspun-setup.conf"
    assert_includes calls, "deb-systemd-helper postgresql disable postgresql.service"
    assert_equal "Ruby #{RUBY_VERSION} (#{in_copy("path/ruby")}) is ready.\n", run_setup[1]
  end

  def test_postgresqls_server_has_another_name_in_fedora
    on "ID=fedora"
    remove "initdb"
    assert_match(/^  dnf install postgresql-server$/, run_setup[1])
  end

  # Red Hat has Valkey from 10 on.
  def test_an_older_red_hat_has_redis
    on %(ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4")
    remove "redis-server"
    assert_match(/^  dnf install redis$/, run_setup[1])
  end

  def test_what_apt_cannot_do_is_not_begun
    remove "redis-server"
    plan "echo 'E: held packages' >&2; exit 100"
    _, err, status = run_setup
    assert_equal ["E: held packages\nsetup: apt finds no way to install redis-server; see above.\n", 1], [err, status.exitstatus]
    assert_empty installed
  end

  # PostgreSQL wants `locales`, and that the libc that it was built with.
  def test_what_the_system_does_not_allow_after_an_earlier_setup_comes_from_the_suite_of_that_one
    remove "redis-server"
    plan 'case " $* " in *" -t trixie "*) cat ROOT/simulated ;; *) echo "E: unmet dependencies" >&2; exit 100 ;; esac'
    program("path/ldd", "echo 'ldd (Debian GLIBC 2.36-9+deb12u13) 2.36'")
    _, err, status = run_setup
    assert_equal [1, []], [status.exitstatus, installed], err
    program("path/ldd", "echo 'ldd (Debian GLIBC 2.41-12) 2.41'")
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_operator err, :start_with?, SAID
    assert_equal ["-t trixie redis-server"], installed
  end

  # A fake takes the place of a link, and never writes to what the link names.
  def test_the_systems_own_programs_are_left_as_they_are
    real = File.realpath(in_copy("path/cat"))
    before = Digest::SHA256.file(real).hexdigest
    program("path/cat", "exit 1")
    assert_equal before, Digest::SHA256.file(real).hexdigest
  end

  def test_who_is_not_root_gets_a_line_to_type_with_sudo
    program("path/id", "echo 1000")
    remove "redis-server"
    assert_match(/^  sudo apt-get install --no-install-recommends redis-server$/, run_setup("--no-system")[1])
  end

  def test_who_is_not_root_and_may_not_become_root_gets_the_command
    remove "redis-server"
    program("path/id", "echo 1000")
    _, err, status = run_setup
    assert_predicate status, :success?, err
    assert_includes calls, "sudo"

    remove "redis-server"
    program("path/sudo", "exit 1")
    _, err, status = run_setup
    assert_match(/^setup: sudo could not do it. As root, run this.*apt-get .* install redis-server/m, err)
    assert_equal 1, status.exitstatus
  end

  DNF = "dnf install ruby ruby-devel rubygem-bundler redhat-rpm-config gcc gcc-c++ make glibc-devel valkey"
  PACMAN = "pacman -S --needed ruby ruby-bundler gcc make glibc valkey"
  TYPED = {
    "ID=fedora" => DNF,
    %(ID="rocky"\nID_LIKE="rhel centos fedora") => DNF,
    "ID=arch" => PACMAN,
    "ID=manjaro\nID_LIKE=arch" => PACMAN,
    "ID=alpine" => "apk add ruby ruby-dev ruby-bundler gcc g++ make musl-dev linux-headers valkey"
  }.freeze

  TYPED.each do |system, line|
    define_method("test_for_#{system[/ID="?(\w+)/, 1]}_it_prints_the_line_to_type_and_stops") do
      on system
      remove "ruby", *COMPILERS, "redis-server"
      _, err, status = run_setup
      assert_equal [<<~TEXT, 1], [err, status.exitstatus]
        setup: missing: #{ALL}.
        Type this, and run bin/setup again:
          #{line}
        Should that Ruby be older than 3.3, or come without Bundler, install one by rbenv, asdf or mise: bin/setup finds it.
      TEXT
      assert_empty calls
    end
  end

  def test_the_line_has_only_what_is_missing
    on "ID=fedora"
    remove "redis-server"
    assert_match(/^  dnf install valkey$/, run_setup[1])
    assert_empty calls
  end

  def test_arch_has_other_names_for_what_tests_the_engine_on_another_processor
    on "ID=arch"
    remove(*CROSS)
    fake_ruby("path/ruby3.4", "3.4.1")
    assert_match(/^  (sudo )?pacman -S --needed aarch64-linux-gnu-gcc aarch64-linux-gnu-glibc qemu-user$/,
                 run_setup("--matrix", HOSTTYPE: "x86_64")[1])
  end

  def test_no_distribution_but_debian_has_a_second_ruby_by_name
    on "ID=arch"
    _, err, = run_setup("--matrix")
    assert_equal "setup: missing: ruby3.4 ruby3.4-dev.\nInstall a Ruby 3.4 by rbenv, asdf or mise: bin/setup finds it.\n", err
  end

  def test_ubuntu_and_others_made_from_debian_have_apt
    ["ID=ubuntu\nID_LIKE=debian", %(ID=linuxmint\nID_LIKE="ubuntu debian"), "ID=devuan\nID_LIKE=debian"].each do |system|
      on system
      remove "redis-server"
      _, err, status = run_setup
      assert_predicate status, :success?, err
    end
    assert_equal %w[redis-server] * 3, installed
  end

  # Debian 13's Ruby is made for Debian.
  def test_ubuntu_gets_no_ruby_from_debian
    on "ID=ubuntu\nID_LIKE=debian"
    program("path/apt-cache", "printf '  Candidate: 1:3.2\\n  release n=noble\\n'")
    remove "ruby"
    _, err, status = run_setup
    assert_equal [<<~TEXT.tr("\n", " ").strip, 1], [err.chomp, status.exitstatus]
      setup: no Ruby that fits, from 3.3 on and with its headers, and only Debian 12 and 13 can take one from another Debian.
      Install one by rbenv, asdf or mise: bin/setup finds it.
    TEXT
    assert_empty installed
  end

  def test_an_unknown_system_gets_the_names_of_debian
    remove "ruby", "redis-server"
    ["ID=gentoo", "", nil].each do |text|
      text ? on(text) : File.delete(in_copy("os-release"))
      _, err, status = run_setup
      assert_equal 1, status.exitstatus
      assert_match(/\Asetup: missing: ruby ruby-dev redis-server\.\nThese are Debian.s names\. Install what your system/, err)
    end
    assert_empty calls
  end

  def test_a_valkey_is_a_redis
    remove "redis-server"
    program("path/valkey-server", "exit 0")
    assert_predicate run_setup.last, :success?
    assert_empty installed
  end

  def test_without_servers_none_is_wanted
    remove "redis-server"
    _, err, status = run_setup("--no-servers")
    assert_predicate status, :success?, err
    assert_empty installed
  end

  private

  # In one of apt's two forms.
  def on_debian(suites, file: "sources.list.d/debian.sources", text: "Types: deb\nSuites: #{suites}\n")
    FileUtils.mkdir_p(in_copy("apt/sources.list.d"))
    File.write(in_copy("apt/#{file}"), text)
  end
end
