# Sourced by every script of bin/. Sets `root`, a clean environment, and the functions that all of them use.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
state="$root/tmp/setup"

# A `bundle exec` of another project, or RUBYOPT, must not decide which gems are loaded. Settings for the registry (mirrors,
# certificates, proxies) stay.
unset RUBYOPT RUBYLIB BUNDLER_SETUP BUNDLER_VERSION BUNDLE_APP_CONFIG BUNDLE_BIN_PATH BUNDLE_PATH BUNDLE_PATH__SYSTEM \
  BUNDLE_WITHOUT BUNDLE_WITH BUNDLE_ONLY BUNDLE_FROZEN BUNDLE_DEPLOYMENT BUNDLE_LOCKFILE BUNDLE_SYSTEM_BINDIR
export BUNDLE_GEMFILE="$root/Gemfile"

# Ruby reads files in the encoding of the locale; without a locale (in a container, by cron) that is ASCII.
case ${LC_ALL:-${LC_CTYPE:-${LANG:-}}} in *[Uu][Tt][Ff]8* | *[Uu][Tt][Ff]-8*) ;; *) export LC_ALL=C.UTF-8 ;; esac

say() { printf '%s\n' "$*" >&2; }

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# What only saves time is kept between runs and shared among clones: by ccache objects of C, by the digest of sources, compiler
# and flags (https://ccache.dev/manual/latest.html), by rubocop what it has found, by Bundler gems. It may be removed at any time.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/ringspun"
ccache_folder=${RINGSPUN_CCACHE:-/usr/lib/ccache}
if [[ -d $ccache_folder ]]; then
  export PATH="$ccache_folder:$PATH" CCACHE_DIR="$cache/ccache" CCACHE_MAXSIZE=3G CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
fi

# usage SCRIPT: the comment at the top of a script is its help, so that the two cannot differ.
usage() { sed -n '2,/^$/ s/^# \{0,1\}//p' "$1"; }

# bundler RUBY ARGUMENT...: Bundler under that Ruby. A `bundle` on PATH may belong to another one. So may a program of a gem, for
# Rubies of one ABI share their gems, and its first line names the Ruby that has installed it, or asks for the `ruby` on PATH:
# that is this Ruby here, also for whatever such a program runs.
bundler() {
  local ruby=$1 folder
  shift
  folder="$state/path/${ruby//\//-}"
  [[ -e $folder/ruby ]] || { mkdir -p "$folder" && ln -sfn "$ruby" "$folder/ruby"; }
  [[ "$1" != exec ]] || ! compgen -G "$root/vendor/bundle/ruby/*/bin/${2:-}" >/dev/null || set -- exec "$ruby" -S "${@:2}"
  PATH="$folder:$PATH" "$ruby" -e 'gem "bundler"; load Gem.bin_path("bundler", "bundle")' -- "$@"
}

# for_setup ARGUMENT...: puts those for bin/setup into `setup`, and the others into `rest`.
for_setup() {
  setup=(--quiet) rest=()
  local argument
  for argument in "$@"; do
    case $argument in
      --no-system | --yes | --upgrade-system) setup+=("$argument") ;;
      *) rest+=("$argument") ;;
    esac
  done
}

# asks_for_help ARGUMENT...: which a script of bin/ can answer before there is a Ruby.
asks_for_help() { [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; }

# chosen_ruby NAME: the path that bin/setup has recorded (`ruby`, `ruby-matrix` or `ruby-4`).
chosen_ruby() { cat "$state/$1"; }
