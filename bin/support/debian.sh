# Sourced by bin/setup when something is missing on Debian. One apt transaction, shown before it happens.
#
# Debian 12 has no Ruby 3.3, but Debian 13's installs there. apt then needs a second suite, and a suite that stays in
# a system's source list changes what every later `apt upgrade` does. So the source list, the pin and the package
# lists of this transaction live in a temporary directory, and the system's own are only read.

# debian_install PACKAGE...: plain package names. Which suite they come from is found out here.
debian_install() {
  [[ $(. /etc/os-release && echo "$ID") == debian ]] || die "missing: $*. These are Debian's names; install what your" \
    "system calls them (for ruby, any Ruby 3.3 or later with its headers and Bundler) and run this again."

  debian_prepare
  debian_choose_suite "$@"
  debian_leave_services "$@"
  say "apt would do this:"
  "${apt_get[@]}" -s -V install "${from[@]}" "$@" |
    sed -nE '/^(Inst|Conf|Remv) /d; /^The following (NEW|packages will be)/,$p' >&2 ||
    die "apt finds no way to install $*; see above."
  debian_agree
  debian_as_root env DEBIAN_FRONTEND=noninteractive "${apt_get[@]}" -y -o Dpkg::Options::=--force-confdef \
    -o Dpkg::Options::=--force-confold "${services[@]}" install "${from[@]}" "$@" 9>&-
  rm -rf "$apt_dir"
}

# Debian starts what it installs as a service, now and at every boot. The tests start servers of their own, and nobody has
# asked for another. A policy (see invoke-rc.d(8)) that the system has already stays as it is.
debian_leave_services() {
  services=()
  [[ " $* " == *" redis-server "* || " $* " == *" postgresql "* ]] || return 0

  cat >"$apt_dir/policy-rc.d" <<'POLICY'
#!/bin/sh
case "$*" in *redis-server* | *postgresql*) exit 101 ;; esac
POLICY
  local policy=/usr/sbin/policy-rc.d units=
  [[ " $* " != *" redis-server "* ]] || units+=" redis-server.service"
  [[ " $* " != *" postgresql "* ]] || units+=" postgresql.service"
  services=(-o DPkg::Pre-Invoke::="test -e $policy || install -m 755 $apt_dir/policy-rc.d $policy"
    -o DPkg::Post-Invoke::="! cmp -s $apt_dir/policy-rc.d $policy || rm $policy"
    -o DPkg::Post-Invoke::="! command -v systemctl >/dev/null || systemctl --quiet disable$units || true")
}

debian_prepare() {
  apt_dir=$(mktemp -d)
  trap 'rm -rf "$apt_dir"' EXIT
  mkdir -p "$apt_dir"/{lists/partial,sources.list.d}
  chmod -R 755 "$apt_dir" # apt downloads as a user of its own, who must be able to come in
  cp /etc/apt/sources.list.d/* "$apt_dir/sources.list.d/" 2>/dev/null || true
  cat /etc/apt/preferences >"$apt_dir/preferences" 2>/dev/null || true

  apt_options=(-o Dir::Etc::SourceParts="$apt_dir/sources.list.d" -o Dir::Etc::Preferences="$apt_dir/preferences"
    -o Dir::State::Lists="$apt_dir/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  apt_get=(apt-get --no-install-recommends "${apt_options[@]}")
  from=() # the suite to prefer, as an option of apt-get
  debian_update
}

debian_update() {
  "${apt_get[@]}" -qq update || die "apt-get update failed; see above."
}

debian_choose_suite() {
  local matrix=
  [[ " $* " == *" ruby3.4-dev "* ]] && matrix=yes

  # For the matrix too: what experimental builds on, its libc above all, is in Debian 13 and not in 12.
  if [[ -n $matrix || " $* " == *" ruby-dev "* ]] && ! debian_has_ruby; then
    debian_add_suite trixie n=trixie 100
    from=(-t trixie)
  fi
  if [[ -n $matrix ]]; then
    # Release files of this suite are often past their date, and apt would refuse them.
    debian_add_suite experimental a=experimental 1 "Check-Valid-Until: no"
    from=(-t experimental)
  fi
}

# Whether the system's own suites carry a Ruby 3.3. Asks apt and not /etc/os-release, which says 13 on a Debian 12
# that took some packages from there.
debian_has_ruby() {
  local candidate
  candidate=$(apt-cache "${apt_options[@]}" policy ruby | sed -n 's/^ *Candidate: //p')
  dpkg --compare-versions "${candidate:-0}" ge 1:3.3
}

# debian_add_suite SUITE PIN PRIORITY [LINE]
debian_add_suite() {
  apt-cache "${apt_options[@]}" policy | grep -qE 'n=(bookworm|trixie)' ||
    die "no Ruby 3.3 or later with its headers, and only Debian 12 and 13 can take one from suite $1."
  cat >"$apt_dir/sources.list.d/ringspun-$1.sources" <<SOURCE
Types: deb
URIs: $(debian_mirror)
Suites: $1
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
${4:-}
SOURCE
  printf '\nPackage: *\nPin: release %s\nPin-Priority: %s\n' "$2" "$3" >>"$apt_dir/preferences"
  debian_update
}

# The mirror that the system itself uses.
debian_mirror() {
  local mirror
  mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' |
    grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1)
  printf '%s\n' "${mirror:-http://deb.debian.org/debian}"
}

debian_agree() {
  ((${#services[@]} == 0)) || say "The servers are for tests, which start them when they need them. No service is started."
  if ((${#from[@]})); then
    say "These come from Debian's suite ${from[1]}. Your source list stays as it is, so apt will not update them" \
      "until you add that suite or upgrade the system."
  fi
  [[ -n $yes || -n ${CI:-} ]] && return
  [[ -t 0 ]] || die "nobody is here to agree: run bin/setup in a terminal, or bin/setup --yes."
  local answer
  read -rp "Go on? [y/N] " answer
  [[ $answer == [yY]* ]] || die "nothing was changed."
}

debian_as_root() {
  if (($(id -u) == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    trap - EXIT # the command below needs the lists
    die "this needs root, and there is no sudo. As root, run this, and then bin/setup again:"$'\n'"  $(printf '%q ' "$@")"
  fi
}
