#!/usr/bin/env bash
# Runs bin/setup and a test file in a bare Debian, made for this by debootstrap, with an empty cache; then says what that has done to
# the packages of the system: none may be removed or upgraded, and none may come from another suite. For root. `rake test:bare_debian`
#
# usage: bin/support/bare_debian.sh [bookworm | trixie]

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/bin/support/debian.sh"

suite=${1:-bookworm}
if ! command -v debootstrap >/dev/null || (($(id -u) != 0)); then
  say "left out: a bare $suite, which wants root and the program debootstrap"
  exit
fi

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

chmod 755 "$system"
debootstrap --variant=minbase "$suite" "$system" "$(debian_mirror)" >"$root/tmp/debootstrap.log" 2>&1 ||
  die "debootstrap failed; $root/tmp/debootstrap.log says why."
mount -t proc proc "$system/proc"
mount --rbind /dev "$system/dev"
mount --make-rslave "$system/dev"
mount --rbind /sys "$system/sys"
mount --make-rslave "$system/sys"
cp /etc/resolv.conf "$system/etc/"
cp /etc/apt/apt.conf.d/99* "$system/etc/apt/apt.conf.d/" 2>/dev/null || true # how this machine reaches its registry

# A certificate that this machine's registry has may be one of its own.
settings=()
if [[ -e /etc/ssl/certs/ca-certificates.crt ]]; then
  cp /etc/ssl/certs/ca-certificates.crt "$system/root/certificates.crt"
  settings=(SSL_CERT_FILE=/root/certificates.crt)
fi
mkdir "$system/root/ringspun"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf -) | tar -xf - -C "$system/root/ringspun"

inside apt-get -qq update
packages >"$system/before"
began=$SECONDS
inside /root/ringspun/bin/setup --no-servers
say "bare $suite: set-up took $((SECONDS - began)) s"
inside sh -c 'cd /root/ringspun && bin/test runtime/test/sync/queue_test.rb'
packages >"$system/after"

gone=$(comm -23 "$system/before" "$system/after")
[[ -z $gone ]] || die "bare $suite: removed or upgraded: ${gone//$'\n'/, }"
foreign=$(inside apt-cache policy $(comm -13 "$system/before" "$system/after" | cut -d ' ' -f 1) |
  awk '/^[^ ]/ { name = $1 } /\*\*\*/ { getline; if ($0 !~ /http/) print name }')
[[ -z $foreign ]] || die "bare $suite: from another suite: ${foreign//$'\n'/ }"
say "bare $suite: $(comm -13 "$system/before" "$system/after" | wc -l) packages new, none removed or upgraded, none from another suite"
