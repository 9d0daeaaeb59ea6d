# Sourced by bin/setup: which Rubies are on this machine, and which of them can build the extension.

# Prints "version<TAB>path" when the Ruby is usable. Headers and Bundler are parts that distributions package apart.
describe_ruby='
  require "rbconfig"
  config = RbConfig::CONFIG
  exit 1 unless (RUBY_VERSION.split(".").map(&:to_i) <=> [3, 3]) >= 0 && RUBY_ENGINE == "ruby"
  exit 1 unless File.exist?(File.join(config["rubyhdrdir"], "ruby.h"))
  exit 1 if Gem::Specification.find_all_by_name("bundler").empty?
  print RUBY_VERSION, "\t", RbConfig.ruby
'

# `ruby` first, because it is what the user chose by PATH, rbenv or mise; then ruby3.3, ruby3.4 and so on by version.
ruby_candidates() {
  if [[ -n ${RINGSPUN_RUBY:-} ]]; then
    printf '%s\n' "$RINGSPUN_RUBY"
  else
    printf 'ruby\n'
  fi
  compgen -c ruby | grep -E '^ruby-?[0-9.]+$' | sort -uV
}

# find_ruby [SERIES]: the first usable Ruby, of that series (3.4) if one is given, as "version<TAB>path".
find_ruby() {
  local candidate found
  while read -r candidate; do
    found=$("$candidate" -e "$describe_ruby" 2>/dev/null) || continue
    [[ $found == "${1:-}"* ]] && printf '%s\n' "$found" && return
  done < <(ruby_candidates)
  return 1
}

check_wanted_ruby() {
  [[ -z ${RINGSPUN_RUBY:-} ]] || "$RINGSPUN_RUBY" -e "$describe_ruby" >/dev/null 2>&1 ||
    die "RINGSPUN_RUBY=$RINGSPUN_RUBY is not a Ruby 3.3 or later with its headers and Bundler."
}

# What a build needs beside Ruby, as Debian's package names.
missing_tools() {
  command -v gcc >/dev/null || printf 'gcc\n'
  command -v g++ >/dev/null || printf 'g++\n' # for the gem eventmachine, a peer in the bench
  command -v make >/dev/null || printf 'make\n'
  printf '#include <stdio.h>\n' | gcc -E - >/dev/null 2>&1 || printf 'libc6-dev\n'
  # A Debian without the recommended packages has none, and the gem registry then cannot be trusted.
  [[ ! -e /etc/debian_version || -e /etc/ssl/certs/ca-certificates.crt ]] || printf 'ca-certificates\n'
}
