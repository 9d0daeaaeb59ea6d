# Sourced by every script of bin/. Sets `root`, a clean environment, and the few verbs that all of them use.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
state="$root/tmp/setup"

# A caller inside another project's `bundle exec`, or with options of its own in RUBYOPT, must not decide which gems
# we load. What says how to reach the registry (mirrors, certificates, proxies) stays.
unset RUBYOPT RUBYLIB BUNDLER_SETUP BUNDLER_VERSION BUNDLE_APP_CONFIG BUNDLE_BIN_PATH BUNDLE_PATH BUNDLE_PATH__SYSTEM \
  BUNDLE_WITHOUT BUNDLE_WITH BUNDLE_ONLY BUNDLE_FROZEN BUNDLE_DEPLOYMENT BUNDLE_LOCKFILE BUNDLE_SYSTEM_BINDIR
export BUNDLE_GEMFILE="$root/Gemfile"

say() { printf '%s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# usage SCRIPT: the comment at the top of a script is its help, so that the two cannot differ.
usage() { sed -n '2,/^$/ s/^# \{0,1\}//p' "$1"; }

# bundler RUBY ARGUMENT...: Bundler under that very Ruby. A `bundle` on PATH belongs to whichever Ruby installed it.
bundler() {
  local ruby=$1
  shift
  "$ruby" -e 'gem "bundler"; load Gem.bin_path("bundler", "bundle")' -- "$@"
}

# for_setup ARGUMENT...: those at the front that are meant for bin/setup go to `setup`, the others to `rest`.
for_setup() {
  setup=(--quiet)
  while [[ ${1:-} == --no-system || ${1:-} == --yes ]]; do
    setup+=("$1")
    shift
  done
  rest=("$@")
}

# chosen_ruby NAME: what bin/setup wrote down (`ruby` or `ruby-matrix`).
chosen_ruby() { cat "$state/$1"; }
