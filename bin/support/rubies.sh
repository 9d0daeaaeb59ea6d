# Sourced by bin/setup: finds the Rubies on this machine that can build the extension.

# Prints "version<TAB>path" if the Ruby has headers and Bundler, which distributions package apart.
describe_ruby='
  require "rbconfig"
  config = RbConfig::CONFIG
  exit 1 unless (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 3]) >= 0 && RUBY_ENGINE == "ruby"
  exit 1 unless File.exist?(File.join(config["rubyhdrdir"], "ruby.h"))
  exit 1 if Gem::Specification.find_all_by_name("bundler").empty?
  print RUBY_VERSION, "\t", RbConfig.ruby
'

# ruby_candidates SERIES: the one that was named; then `ruby`, which the user has chosen by PATH or by a shim of rbenv, asdf or
# mise; then ruby3.3, ruby3.4 and so on by version. A shim may stand for an old Ruby, or for none, although its version manager
# has a newer one; so those of version managers come after them. Those that an earlier call has built come last.
ruby_candidates() {
  local folder
  [[ $1 != 4 || -z ${RINGSPUN_RUBY_4:-} ]] || printf '%s\n' "$RINGSPUN_RUBY_4"
  printf '%s\n' "${RINGSPUN_RUBY:-ruby}"
  compgen -c ruby | grep -E '^ruby-?[0-9.]+$' | sort -uV || true
  for folder in "${RBENV_ROOT:-${HOME:-}/.rbenv}/versions" "${ASDF_DATA_DIR:-${HOME:-}/.asdf}/installs/ruby" \
    "${MISE_DATA_DIR:-${XDG_DATA_HOME:-${HOME:-}/.local/share}/mise}/installs/ruby" "${HOME:-}/.rubies" /opt/rubies; do
    compgen -G "$folder/*/bin/ruby" | sort -V || true
  done
  built_rubies
}

# find_named NAME: the Ruby of that name, as in tmp/setup.
find_named() { find_ruby "${series[$1]}" "$(wants_yjit "$1")"; }

# wants_yjit NAME: a word when that one is to have YJIT.
wants_yjit() { [[ $1 != ruby-yjit && ($1 != ruby-matrix || -z ${yjit:-}) ]] || echo yjit; }

# has_yjit RUBY OPTION...: one that was built without YJIT takes the option with a warning.
has_yjit() { [[ $("$@" --yjit -e 'print RubyVM::YJIT.enabled?' 2>/dev/null </dev/null) == true ]]; }

# find_ruby [SERIES [YJIT]]: the first usable Ruby, of that series (3.4) if one is given, with YJIT if that is any word, as
# "version<TAB>path".
find_ruby() {
  local candidate found libraries
  while read -r candidate; do
    libraries=()
    [[ $candidate != "${built_folder:-none}"/* ]] || libraries=("${built_libraries[@]/#/-r}")
    # Without its errors, which are about versions that nobody has chosen; and without input, for a shim may read.
    found=$("$candidate" "${libraries[@]}" -e "$describe_ruby" 2>/dev/null </dev/null) || continue
    [[ $found == "${1:-}"* ]] || continue
    [[ -z ${2:-} ]] || has_yjit "$candidate" "${libraries[@]}" || continue
    printf '%s\n' "$found" && return
  done < <(ruby_candidates "${1:-}")
  return 1
}

# A Ruby that the environment names must fit: another one instead would be a surprise.
check_named_rubies() {
  check_named_ruby RINGSPUN_RUBY "" "Ruby 3.3 or later"
  [[ -z $matrix ]] || check_named_ruby RINGSPUN_RUBY_4 4 "Ruby 4"
  [[ -z $yjit || -n $matrix || -z ${RINGSPUN_RUBY:-} ]] || has_yjit "$RINGSPUN_RUBY" ||
    die "RINGSPUN_RUBY=$RINGSPUN_RUBY has no YJIT. Name one that was built with a compiler of Rust at hand, or none: \`bin/setup --yjit\` finds one, or builds it."
}

# check_named_ruby VARIABLE SERIES WHAT
check_named_ruby() {
  [[ -n ${!1:-} ]] || return 0
  [[ $("${!1}" -e "$describe_ruby" 2>/dev/null </dev/null) == "$2"?* ]] || die "$1=${!1} is not a $3 with its headers and Bundler."
}

# check_compiler RUBY: gems and the extension are built by the compiler that built that Ruby. One without it would fail gem after
# gem, each with a page of its own.
check_compiler() {
  local compiler
  compiler=$("$1" -e 'require "rbconfig"; print RbConfig::CONFIG["CC"]')
  $compiler -x c -c -o /dev/null - <<<'int one;' >/dev/null 2>&1 ||
    die "the compiler of $1, \`$compiler\`, cannot build a line of C. Install it, or name another Ruby by RINGSPUN_RUBY."
}

# What a build needs beside Ruby, by Debian's package names.
missing_tools() {
  command -v gcc >/dev/null || printf 'gcc\n'
  ! uses_eventmachine || command -v g++ >/dev/null || printf 'g++\n'
  command -v make >/dev/null || printf 'make\n'
  gcc -E - <<<'#include <stdio.h>' >/dev/null 2>&1 || printf 'libc6-dev\n'
  # A Debian without recommended packages has none, and cannot verify the gem registry.
  [[ ! -e /etc/debian_version || -e /etc/ssl/certs/ca-certificates.crt ]] || printf 'ca-certificates\n'
}
