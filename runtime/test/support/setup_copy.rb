# frozen_string_literal: true

require "fileutils"
require "open3"
require "pty"
require "tmpdir"

# The scripts of bin/ in a copy of the tree, on a system of our own: a PATH with what they use of the real one, and programs that
# write down what they are asked for in `calls` instead of doing it.
module SetupCopy
  ROOT = File.expand_path("../../..", __dir__)
  NEEDED = %w[bin Gemfile Gemfile.lock runtime/ringspun.gemspec jobs/ringspun-jobs.gemspec postgres/ringspun-postgres.gemspec
              http/ringspun-http.gemspec http/ext
              runtime/lib/ringspun/version.rb engine runtime/ext postgres/ext rakelib/compile.rake
              jobs/test/rails/8.1 jobs/test/rails/8.0 jobs/test/rails/7.2
              http/test/frameworks bench/peers/http].freeze

  # What the scripts use of every system.
  TOOLS = %w[bash sh env basename cat chmod cmp cp cut dirname find flock grep gzip head install ln mkdir mktemp mv nproc
             realpath rm sed sha256sum sort stat tail tar touch tr].freeze
  COMPILERS = %w[gcc g++ make].freeze
  HEADERS = %w[include/libxml2/libxml/xmlversion.h include/libxslt/xslt.h include/sqlite3.h include/zlib.h].freeze
  SERVERS = %w[redis-server initdb nginx chromium pkg-config xz patch].freeze
  PROXIES = %w[haproxy varnishd apache2].freeze
  CROSS = %w[aarch64-linux-gnu-gcc qemu-aarch64].freeze
  APT = %w[apt-get apt-cache dpkg sudo deb-systemd-helper update-rc.d].freeze

  # Answers what bin/setup asks of a Ruby, and does what Bundler and rake leave behind. One with `yjit` in its path has YJIT.
  FAKE_RUBY = <<~'SH'
    #!/bin/sh
    case "$*" in
      *YJIT*) case $0 in *yjit*) printf true ;; esac; exit ;;
      *print\ RbConfig*) printf 'gcc' && exit ;;
      *rbconfig*) printf 'VERSION\tPATH' && exit ;;
      *install*) mkdir -p "ROOT/vendor/bundle" ;;
      *rake\ compile*)
        for library in runtime/lib/ringspun/SERIES/native.so postgres/lib/ringspun/SERIES/postgres_native.so \
          http/lib/ringspun/SERIES/http_native.so; do
          mkdir -p "ROOT/${library%/*}" && touch "ROOT/$library"
        done
        ;;
    esac
    while [ $# -gt 0 ] && [ "$1" != -- ]; do first=${first:-$1} && shift; done
    [ $# -gt 0 ] && shift || set -- "${first##*/}"
    echo "NAME$*" >>ROOT/calls
  SH

  FAKES = {
    # Has what it installs on PATH afterwards, and runs what is to disable services; the other hooks are about the real /usr/sbin.
    "apt-get" => <<~'SH',
      for word in "$@"; do last=$word; done
      case " $* " in
        *" update "*) echo "apt-get update" >>ROOT/calls && exit ;;
        *" source "*)
          echo "apt-get source ${*##* }" >>ROOT/calls
          [ ! -e ROOT/no-source ] || { echo "E: Unable to find a source package" >&2 && exit 100; }
          . ROOT/source; exit
          ;;
        *" download "*) . ROOT/download; exit ;;
        *" -s install "*) echo "apt-get -s ${*##* install }" >>ROOT/calls && . ROOT/plan; exit ;;
      esac
      echo "apt-get install ${*##* install }" >>ROOT/calls
      for word in ${*##* install }; do
        case $word in lib*-dev) : >"ROOT/headers/$word" ;; esac
        case $word in postgresql-*) mkdir -p "ROOT/postgresql/${word#*-}/bin" && : >"ROOT/postgresql/${word#*-}/bin/initdb" ;; esac
        for file in "ROOT/packages/$word" "ROOT/packages/$word"/*; do [ ! -f "$file" ] || cp "$file" ROOT/path/; done
      done
      for word in "$@"; do
        case $word in DPkg::Post-Invoke::=sh*/disable) eval "${word#*=}" ;; esac
      done
    SH
    "id" => "echo 0", # root, whoever runs the tests
    "apt-cache" => <<~'SH',
      case "$*" in
        *showsrc*ruby3.3) printf 'Version: 3.3.8-1\nVersion: 3.3.8-2\n' ;;
        *showsrc*ruby3.4) printf 'Version: 3.4.11-1\n' ;;
        *showsrc*) printf 'Version: 3.3.0-1\n' ;;
        *) printf '  Candidate: 1:3.1\n  release n=bookworm\n' ;;
      esac
    SH
    # Has the headers of what was installed.
    "gcc" => <<~'SH',
      [ "$*" = "-E -" ] || exit 0
      while read -r line; do
        case $line in
          *openssl/ssl.h*) [ -e ROOT/headers/libssl-dev ] || exit 1 ;;
          *yaml.h*) [ -e ROOT/headers/libyaml-dev ] || exit 1 ;;
        esac
      done
    SH
    # Builds a fake Ruby in the source of a fake Ruby, which has its version and where it is to be.
    "make" => <<~'SH',
      [ -e version ] || exit 0
      [ "$1" = install ] || { echo make >>ROOT/calls && . ROOT/built; exit; }
      to=${2#DESTDIR=}$(cat prefix)
      mkdir -p "$to/bin" "$to/lib/ruby/3.3.0/x"
      cp "ROOT/packages/$(cat version)" "$to/bin/ruby"
      for library in openssl psych zlib fiddle; do [ -e "no-$library" ] || : >"$to/lib/ruby/3.3.0/x/$library.so"; done
    SH
    # Unpacks programs that only the fake loader can run. 1:3.1 is not enough.
    "dpkg" => <<~'SH',
      [ "$1" = -x ] || exit 1
      echo "dpkg -x ${2##*/}" >>ROOT/calls
      program() { mkdir -p "${1%/*}" && printf '\177ELF' >"$1" && chmod 755 "$1"; }
      case ${2##*/} in
        libc6_*) mkdir -p "$3/usr/lib/x-linux-gnu" && cp ROOT/loader "$3/usr/lib/x-linux-gnu/ld-linux-x.so.2" ;;
        postgresql-17_*) for name in initdb postgres; do program "$3/usr/lib/postgresql/17/bin/$name"; done ;;
        pgbouncer_*) program "$3/usr/sbin/pgbouncer" ;;
        valkey-server_*) program "$3/usr/bin/valkey-server" ;;
      esac
    SH
    "sudo" => "case $* in -n*|-v) exit ;; esac; echo sudo >>ROOT/calls; exec \"$@\"",
    "deb-systemd-helper" => 'echo "deb-systemd-helper $DPKG_MAINTSCRIPT_PACKAGE $*" >>ROOT/calls',
    "update-rc.d" => 'echo "update-rc.d $*" >>ROOT/calls'
  }.freeze

  # The sources that the fake apt-get has.
  SOURCE = <<~'SH'
    package=${word%=*} version=${word#*=}
    case $package in
      mruby)
        mkdir -p mruby-3.3.0/include/mruby && : >mruby-3.3.0/include/mruby/version.h
        tar -czf mruby_3.3.0.orig.tar.gz mruby-3.3.0
        ;;
      *)
        mkdir -p "ruby-${version%-*}" debian/patches
        echo "$package" | sed 's/3\.3//' >"ruby-${version%-*}/version"
        cp ROOT/configure "ruby-${version%-*}/configure"
        printf 'fix.patch\nm4.patch\n' >debian/patches/series
        printf '+++ b/io.c\n' >debian/patches/fix.patch
        printf '+++ b/configure.ac\n' >debian/patches/m4.patch
        : >"${package}_$version.dsc"
        tar -czf "${package}_${version%-*}.orig.tar.xz" "ruby-${version%-*}" && tar -czf "${package}_$version.debian.tar.xz" debian
        rm -r "ruby-${version%-*}" debian
        ;;
    esac
  SH

  CONFIGURE = <<~'SH'
    echo "configure $*" >>ROOT/calls
    for word in "$@"; do case $word in --prefix=*) echo "${word#*=}" >prefix ;; esac; done
  SH

  SIMULATED = <<~TEXT
    Inst redis-tools (7.0 Debian:12/stable [amd64])
    Inst libc6 [2.36-9] (2.41-12 Debian:13/stable [amd64]) []
    Remv libdb5.3 [5.3.28] [libpam-modules:amd64 ]
    Inst redis-server (7.0 Debian:12/stable [amd64])
    Conf libc6 (2.41-12 Debian:13/stable [amd64])
  TEXT

  def setup
    super
    @root = Dir.mktmpdir
    NEEDED.each do |name|
      FileUtils.mkdir_p(File.dirname(in_copy(name)))
      FileUtils.cp_r(File.join(ROOT, name), in_copy(name))
    end
    %w[path packages home headers].each { |folder| FileUtils.mkdir_p(in_copy(folder)) }
    HEADERS.each do |name|
      FileUtils.mkdir_p(File.dirname(in_copy(name)))
      FileUtils.touch(in_copy(name))
    end
    link_tools
    [*COMPILERS, *SERVERS, *PROXIES, *CROSS, *APT, "id", "ccache"].each do |name|
      program("path/#{name}", FAKES.fetch(name, "exit 0"))
    end
    (COMPILERS + ["redis-server"]).each { |name| program("packages/#{name}", FAKES.fetch(name, "exit 0")) }
    program("path/patch", 'echo "patch $(cat)" >>ROOT/calls')
    program("configure", CONFIGURE)
    program("source", SOURCE)
    program("download", %q(names="${*##* download }"; for word in $names; do : >"${word}_1_all.deb"; done))
    program("loader", 'echo "run as ${2##*/}: $5"')
    program("built", "exit 0")
    { "gcc-aarch64-linux-gnu" => "aarch64-linux-gnu-gcc", "qemu-user" => "qemu-aarch64" }.each do |name, contents|
      program("packages/#{name}/#{contents}", "exit 0")
    end
    program("packages/pgbouncer", "echo PgBouncer 1.24.1")
    %w[haproxy/haproxy varnish/varnishd apache2/apache2].each { |name| program("packages/#{name}", "exit 0") }
    program("packages/ccache/ccache", "exit 0")
    fake_ruby("packages/ruby")
    fake_ruby("packages/ruby3.4", "3.4.1")
    plan <<~'SH'
      case "$*" in
        *valkey*) for name in libc6 perl libjson-perl libllvm19 postgresql-17 pgbouncer valkey-server; do echo "Inst $name (1 Debian)"; done ;;
        *) cat ROOT/simulated ;;
      esac
    SH
    File.write(in_copy("simulated"), SIMULATED)
    on "ID=debian"
  end

  def teardown
    FileUtils.remove_entry(@root)
    super
  end

  private

  def in_copy(name) = File.join(@root, name)
  def files = Dir.glob("**/*", File::FNM_DOTMATCH, base: @root).sort
  def calls = File.exist?(in_copy("calls")) ? File.readlines(in_copy("calls"), chomp: true) : []
  def installed = calls.filter_map { |call| call[/\Aapt-get install (.*)/, 1] }
  def on(system) = File.write(in_copy("os-release"), "#{system}\n")
  def chosen(name = "ruby") = File.read(in_copy("tmp/setup/#{name}")).chomp
  def remove(*programs) = programs.each { |name| FileUtils.rm_f(in_copy("path/#{name}")) }

  def link_tools
    folders = ENV.fetch("PATH").split(":")
    TOOLS.each do |name|
      found = folders.map { |folder| File.join(folder, name) }.find { |path| File.executable?(path) }
      FileUtils.ln_s(found, in_copy("path/#{name}")) if found
    end
  end

  # In the place of what is there, which may be a link to the system's own program.
  def program(name, script)
    FileUtils.mkdir_p(File.dirname(in_copy(name)))
    FileUtils.rm_f(in_copy(name))
    File.write(in_copy(name), "#!/bin/sh\n#{script.gsub("ROOT", @root)}\n", perm: 0o755)
  end

  # What the fake apt-get does when it is asked what it would do.
  def plan(script) = program("plan", script)

  # @param path [String] what it says it is, where it is a shim for another
  # @param name [String] with which its calls begin, where several are told apart
  def fake_ruby(place, version = RUBY_VERSION, path: "$0", name: "")
    program(place, FAKE_RUBY.sub("VERSION\\tPATH'", "%s\\t%s' '#{version}' \"#{path}\"")
                            .gsub("SERIES", version[/\d+\.\d+/]).sub("NAME", name))
  end

  # Of the environment nothing comes along. From elsewhere, as it may be.
  def environment(env)
    { "PATH" => in_copy("path"), "HOME" => in_copy("home"), "RINGSPUN_OS_RELEASE" => in_copy("os-release"),
      "RINGSPUN_POSTGRESQL" => in_copy("postgresql"), "RINGSPUN_SBIN" => in_copy("sbin"), "RINGSPUN_APT" => in_copy("apt"),
      "RINGSPUN_CCACHE" => in_copy("ccache"), "RINGSPUN_DPKG" => in_copy("dpkg"),
      "RINGSPUN_LOCKS" => in_copy("locks"), "RINGSPUN_SERVERS_CACHE" => in_copy("var"), "RINGSPUN_INCLUDE" => in_copy("include"),
      **env.transform_keys(&:to_s) }
  end

  def run_bin(name, *arguments, **env)
    Open3.capture3(environment(env), in_copy("bin/#{name}"), *arguments, chdir: "/", unsetenv_others: true, stdin_data: "")
  end

  def run_setup(*, **) = run_bin("setup", *, **)

  # What a person sees who answers that, and whether it went well.
  def run_at_terminal(answer, *arguments, **env)
    output, input, pid = PTY.spawn(environment(env), in_copy("bin/setup"), *arguments, unsetenv_others: true)
    input.puts(answer)
    seen = +""
    begin
      loop { seen << output.readpartial(4096) }
    rescue EOFError, Errno::EIO # the terminal of a process that has ended
      [seen.tr("\r", ""), Process.wait2(pid).last.success?]
    end
  ensure
    [output, input].each { |io| io&.close }
  end
end
