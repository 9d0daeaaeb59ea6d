#!/usr/bin/env bash
# Types README's commands in a bare Debian, made for this by debootstrap, with an empty cache and without a terminal: bin/setup, the
# bench of one table, a test file. Then says what that has done to the packages of the system: none may be removed or upgraded, and
# none may come from another suite. For root. `rake test:bare_debian`
#
# usage: bin/support/bare_debian.sh [bookworm | trixie] [--short]
#
#   --short  bin/setup and the test file alone, with the bare system, the Ruby and the gems that the last long run on this machine
#            has left in ${XDG_CACHE_HOME:-~/.cache}/ringspun/bare: what has changed since is made again, and nothing else. Left
#            out where there was no long run, and where apt reaches no mirror

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/bin/support/debian.sh"

suite=bookworm short=
for argument in "$@"; do
  case $argument in
    bookworm | trixie) suite=$argument ;;
    --short) short=yes ;;
    *) die "unknown argument $argument; see the top of bin/support/bare_debian.sh." ;;
  esac
done

leave_out() {
  say "left out: a bare $suite, $1"
  exit
}

command -v debootstrap >/dev/null && (($(id -u) == 0)) || leave_out "which wants root and the program debootstrap"
# What is mounted in a namespace of its own goes with its last process, however that ends.
if [[ -z ${RINGSPUN_BARE:-} ]]; then
  unshare --mount true 2>/dev/null || leave_out "for this system does not let anything be mounted"
  RINGSPUN_BARE=yes exec unshare --mount --propagation private "$0" "$@"
fi
kept="$cache/bare/$suite"
[[ -z $short || -e $kept/made.tar.gz ]] || leave_out "for no long run has left one here: bin/bundle exec rake test:bare_debian SUITE=$suite"

mkdir -p "$root/tmp"
system=$(mktemp -d "$root/tmp/bare-$suite.XXXXXX")
leave() {
  local place
  for place in dev proc sys; do ! mountpoint -q "$system/$place" || umount -R "$system/$place"; done
  rm -rf --one-file-system "$system" # should something be mounted still, that is left
}
trap leave EXIT

inside() { chroot "$system" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" "$@" </dev/null; }
packages() { inside dpkg-query -W -f '${Package} ${Version}\n' | sort; }

# typed COMMAND: as a reader of README types it.
typed() {
  TIMEFORMAT="bare $suite: $1: %R s, %U s + %S s of a processor"
  time inside sh -c "cd /root/ringspun && $1"
}

# A bare system, and what a reader of README has put there.
make_system() {
  chmod 755 "$system"
  if [[ -n $short ]]; then
    tar -xf "$kept/system.tar.gz" -C "$system"
    tar -xf "$kept/made.tar.gz" -C "$system"
  else
    debootstrap --variant=minbase "$suite" "$system" "$(debian_mirror)" >"$root/tmp/debootstrap.log" 2>&1 ||
      die "debootstrap failed; $root/tmp/debootstrap.log says why."
    mkdir -p "$kept"
    pack system .
  fi
  mount -t proc proc "$system/proc"
  mount --rbind /dev "$system/dev"
  mount --rbind /sys "$system/sys"
  cp /etc/resolv.conf "$system/etc/"
  cp /etc/apt/apt.conf.d/99* "$system/etc/apt/apt.conf.d/" 2>/dev/null || true # how this machine reaches its registry

  # A certificate that this machine's registry has may be one of its own.
  settings=()
  if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
    cp /etc/ssl/certs/ca-certificates.crt "$system/root/certificates.crt"
    settings=(SSL_CERT_FILE=/root/certificates.crt)
  fi
  mkdir -p "$system/root/ringspun"
  (cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf -) |
    tar -xf - -C "$system/root/ringspun"
}

# pack NAME FILE...: keeps these of the system for --short.
pack() {
  tar -cf - -C "$system" "${@:2}" | gzip -1 >"$kept/$1.$$" # apart, for a run may end at any time, and another one may read
  mv "$kept/$1.$$" "$kept/$1.tar.gz"
}

rubies() { ls "$system/root/.cache/ringspun/ruby" 2>/dev/null || true; }

# What takes long to make or to fetch.
keep() {
  local ruby="root/.cache/ringspun/ruby"
  rm -f "$system/var/cache/apt/archives/lock"
  pack made $([[ ! -e $system/$ruby ]] || echo "$ruby") root/ringspun/vendor/bundle var/cache/apt/archives
}

check_packages() {
  packages >"$system/after"
  local gone foreign
  gone=$(comm -23 "$system/before" "$system/after")
  [[ -z $gone ]] || die "bare $suite: removed or upgraded: ${gone//$'\n'/, }"
  foreign=$(inside apt-cache policy $(comm -13 "$system/before" "$system/after" | cut -d ' ' -f 1) |
    awk '/^[^ ]/ { name = $1 } /\*\*\*/ { getline; if ($0 !~ /http/) print name }')
  [[ -z $foreign ]] || die "bare $suite: from another suite: ${foreign//$'\n'/ }"
  say "bare $suite: $(comm -13 "$system/before" "$system/after" | wc -l) packages new, none removed or upgraded, none from another suite"
}

make_system
inside apt-get -qq update || { [[ -n $short ]] && leave_out "for apt reaches no mirror"; } || die "apt reaches no mirror; see above."
[[ -z $short ]] || inside apt-get -qq -y dist-upgrade >/dev/null # what that suite has had since
packages >"$system/before"
before=$(rubies)
typed "bin/setup --no-servers"
[[ -n $short && $before == "$(rubies)" ]] || keep
[[ -n $short ]] || typed "bin/bench --quick --only switch"
typed "bin/test runtime/test/sync/queue_test.rb"
check_packages
