# Sourced by bin/setup: the source of mruby, in which the tests and the bench build our gem. Debian's packages of mruby cannot take
# in a gem.

# MRUBY_SRC may name another one.
has_mruby_source() { [[ -e ${MRUBY_SRC:-$root/tmp/mruby/source}/include/mruby/version.h ]]; }

# For bin/test.
note_mruby() {
  if has_mruby_source || fetch_mruby; then touch "$state/mruby"; else rm -f "$state/mruby"; fi
}

# From Debian 13, whichever of the two this is. Nothing is installed.
fetch_mruby() {
  [[ $(package_installer) == apt ]] || return
  has_suite bookworm || has_suite trixie || return
  say "Fetching the source of mruby from Debian 13 into tmp/mruby"
  local folder
  folder=$(mktemp -d)
  temporary+=("$folder")
  mkdir -p "$root/tmp/mruby"
  debian_source "$folder" trixie mruby 2>"$folder/errors" ||
    { cat "$folder/errors" >&2 && die "the source of mruby cannot be fetched. MRUBY_SRC may name one that is here."; }
  debian_say_lost "$folder" mruby
  tar -xzf "$folder"/mruby_*.orig.tar.gz -C "$root/tmp/mruby"
  mv "$root"/tmp/mruby/mruby-* "$root/tmp/mruby/source"
}
