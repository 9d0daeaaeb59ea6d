# Sourced by bin/setup when something is missing on Debian. One apt transaction, shown before it happens.
#
# What only another suite has is not installed, for a system that is half of one Debian and half of the next is neither: see
# ruby_source.sh and unpacked.sh for what is done instead. `--upgrade-system` does install it, and so does a system whose libc is
# from there already. A suite that stays in a system's source list changes what every later `apt upgrade` does. So the source list,
# the pin and the package lists of this transaction live in a temporary directory, and the system's own are only read.

# debian_install PACKAGE...: names without a suite, which is chosen here.
debian_install() {
  [[ -z $upgrade_system ]] || debian_choose_suite "$@"
  debian_leave_services "$@"
  debian_simulate "$@"
  debian_say_plan "$@"
  say_steps
  debian_agree
  debian_wait
  debian_as_root env DEBIAN_FRONTEND=noninteractive "${apt_get[@]}" -y -o Dpkg::Options::=--force-confdef \
    -o Dpkg::Options::=--force-confold "${services[@]}" install "${from[@]}" "$@" 8>&- >&2
}

# Sets `simulated` to what apt would do. A Debian 12 may have its libc from Debian 13, perhaps by an earlier setup; then some
# packages can only come from there too.
debian_simulate() {
  simulated=$("${apt_get[@]}" -s install "${from[@]}" "$@" 2>&1) && return
  if ((${#from[@]} == 0)) && debian_is_upgraded; then
    debian_add_suite trixie n=trixie 100
    from=(-t trixie)
    simulated=$("${apt_get[@]}" -s install "${from[@]}" "$@" 2>&1) && return
  fi
  say "$simulated"
  die "apt finds no way to install $*; see above."
}

# Whether this is a Debian 12 with the libc of Debian 13.
debian_is_upgraded() {
  [[ $(apt-cache "${apt_options[@]}" policy) == *n=bookworm* ]] && ldd --version 2>/dev/null | head -n 1 | grep -qE ' 2\.4[0-9]$'
}

# Says so where another apt works now: a system that has just started may be installing its own updates. apt itself then waits for
# the lock without a word.
debian_wait() { ! debian_is_busy || say "waiting for another apt"; }

# apt's lock is one of fcntl, which `flock` does not see. https://man7.org/linux/man-pages/man5/proc_locks.5.html
debian_is_busy() {
  local lock
  lock=$(stat -c %i "$dpkg_folder/lock-frontend" 2>/dev/null) || return
  grep -qs "POSIX .*:$lock " "$locks"
}

# The folder with dpkg's locks, and the kernel's list of locks. The tests of bin/setup have others.
dpkg_folder=${RINGSPUN_DPKG:-/var/lib/dpkg}
locks=${RINGSPUN_LOCKS:-/proc/locks}

# Prints the transaction, removals first, then upgrades, then new packages.
debian_say_plan() {
  local line removed=() upgraded=() new=()
  while read -r line; do
    if [[ $line =~ ^(Remv|Purg)\ ([^ ]+) ]]; then
      removed+=("${BASH_REMATCH[2]}")
    elif [[ $line =~ ^Inst\ ([^ ]+)\ \[([^ ]+)\]\ \(([^ ]+) ]]; then
      upgraded+=("${BASH_REMATCH[1]} (${BASH_REMATCH[2]} => ${BASH_REMATCH[3]})")
    elif [[ $line =~ ^Inst\ ([^ ]+)\ \(([^ ]+) ]]; then
      new+=("${BASH_REMATCH[1]} (${BASH_REMATCH[2]})")
    fi
  done <<<"$simulated"
  say "Missing: $*. apt will"
  debian_say_packages remove "${removed[@]}"
  debian_say_packages upgrade "${upgraded[@]}"
  debian_say_packages install "${new[@]}"
}

# debian_say_packages VERB PACKAGE...
debian_say_packages() {
  (($# > 1)) || return 0
  say "  $1 $(($# - 1)):"
  shift
  printf '    %s\n' "$@" >&2
}

# Debian starts a server that it installs as a service, now and at every boot. The tests start their own, so it must not. A policy
# that the system has already stays as it is (https://manpages.debian.org/invoke-rc.d). Packages enable their services even where
# no systemd runs, by deb-systemd-helper and update-rc.d, so these disable them.
#
# A service that was there before is left alone: then `postgresql-17` is missing, and not `postgresql`.
debian_leave_services() {
  services=()
  debian_leave_no_database "$@"
  local service disabled=
  for service in redis-server postgresql pgbouncer nginx haproxy varnish apache2; do
    [[ " $* " != *" $service "* ]] || debian_has_service "$service" || disabled+=" $service"
  done
  [[ -n $disabled ]] || return 0

  cat >"$apt_dir/policy-rc.d" <<POLICY
#!/bin/sh
for service in$disabled; do
  case "\$*" in *\$service*) exit 101 ;; esac
done
POLICY
  cat >"$apt_dir/disable" <<DISABLE
for service in$disabled; do
  DPKG_MAINTSCRIPT_PACKAGE=\$service deb-systemd-helper disable \$service.service
  update-rc.d \$service disable
  ! command -v systemctl || systemctl disable \$service.service
done >/dev/null 2>&1
true
DISABLE
  local policy=/usr/sbin/policy-rc.d
  services+=(-o DPkg::Pre-Invoke::="test -e $policy || install -m 755 $apt_dir_quoted/policy-rc.d $policy"
    -o DPkg::Post-Invoke::="! cmp -s $apt_dir_quoted/policy-rc.d $policy || rm $policy"
    -o DPkg::Post-Invoke::="sh $apt_dir_quoted/disable")
}

# An older PgBouncer counts as missing, and may be in use.
debian_has_service() { [[ $1 == pgbouncer ]] && has_in_sbin pgbouncer; }

# PostgreSQL's packages make a database, unless they are told not to.
debian_leave_no_database() {
  [[ " $*" == *" postgresql"* ]] || return 0
  local no_database=/etc/postgresql-common/createcluster.d/ringspun-setup.conf
  printf 'create_main_cluster = false\n' >"$apt_dir/no-database"
  services+=(-o DPkg::Pre-Invoke::="install -D -m 644 $apt_dir_quoted/no-database $no_database"
    -o DPkg::Post-Invoke::="rm -f $no_database")
}

# Once for a call of bin/setup.
debian_prepare() {
  [[ -z ${apt_dir:-} ]] || return 0
  apt_dir=$(mktemp -d)
  apt_dir_quoted=$(printf '%q' "$apt_dir") # for commands that apt gives to a shell
  temporary+=("$apt_dir")
  mkdir -p "$apt_dir"/{lists/partial,sources.list.d}
  chmod -R 755 "$apt_dir" # apt downloads as a user of its own, which needs access
  cp /etc/apt/sources.list.d/* "$apt_dir/sources.list.d/" 2>/dev/null || true
  cat /etc/apt/preferences >"$apt_dir/preferences" 2>/dev/null || true

  apt_options=(-o Dir::Etc::SourceParts="$apt_dir/sources.list.d" -o Dir::Etc::Preferences="$apt_dir/preferences"
    -o Dir::State::Lists="$apt_dir/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  apt_get=(apt-get --no-install-recommends -o DPkg::Lock::Timeout=1800 "${apt_options[@]}")
  from=() # the suite to prefer, as an option of apt-get
  suites=() # what was added to the system's own
  debian_update
}

# debian_source FOLDER SUITE PACKAGE: fetches a source package into that folder, and installs nothing. An archive may have lost
# what its list still names as the newest; then it is the one before, and the file `lost` has the versions that were newer.
debian_source() {
  local folder=$1 suite=$2 package=$3 version
  mkdir -p "$folder/lists/partial"
  chmod -R 755 "$folder" # apt downloads as a user of its own
  # Lists of experimental have often expired, and apt would refuse them.
  printf 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg%s] %s %s main\n' \
    "$([[ $suite != experimental ]] || printf ' check-valid-until=no')" "$(debian_mirror)" "$suite" >"$folder/sources"
  local options=(-qq -o Dir::Etc::SourceList="$folder/sources" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$folder/lists"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  (
    cd "$folder" && apt-get "${options[@]}" update >&2 || exit
    for version in $(apt-cache "${options[@]}" showsrc "$package" | sed -n 's/^Version: //p' | sort -rV); do
      apt-get "${options[@]}" source --download-only "$package=$version" >&2 && exit
      printf '%s\n' "$version" >>lost
    done
    exit 1
  )
}

# debian_say_lost FOLDER PACKAGE: after debian_source.
debian_say_lost() {
  [[ ! -e $1/lost ]] || say "The mirror has lost $2 $(tr '\n' ' ' <"$1/lost")which its list names, so it is an older one."
}

debian_update() {
  "${apt_get[@]}" -qq update || die "apt-get update failed; see above."
}

# For --upgrade-system.
debian_choose_suite() {
  local matrix=
  [[ " $* " != *" ruby3.4 "* ]] || matrix=ruby

  # For the matrix too: packages of experimental depend on those of Debian 13, above all on its libc.
  if debian_lacks ruby 1:3.3 $matrix "$@" || debian_lacks postgresql-17 17 "$@" || debian_lacks pgbouncer 1.21 "$@"; then
    debian_add_suite trixie n=trixie 100
    from=(-t trixie)
  fi
  # By its priority only packages that no other suite has come from here. Its Release files have often expired, and apt would
  # refuse them.
  [[ -z $matrix ]] || debian_add_suite experimental a=experimental 1 "Check-Valid-Until: no"
}

# debian_lacks PACKAGE VERSION WANTED...: whether the package is wanted, and the system's own suites have none as new. Asks apt
# and not /etc/os-release, which says 13 on a Debian 12 that has some packages from there.
debian_lacks() {
  [[ " ${*:3} " == *" $1 "* ]] || return 1
  local candidate
  candidate=$(LC_ALL=C apt-cache "${apt_options[@]}" policy "$1" | sed -n 's/^ *Candidate: \([0-9]\)/\1/p')
  ! dpkg --compare-versions "${candidate:-0}" ge "$2"
}

debian_is_debian() { [[ $(apt-cache "${apt_options[@]}" policy) =~ n=(bookworm|trixie) ]]; }

debian_refuse() {
  die "no Ruby that fits, from 3.3 on and with its headers, and only Debian 12 and 13 can take one from another Debian." \
    "Install one by rbenv, asdf or mise: bin/setup finds it."
}

# debian_add_suite SUITE PIN PRIORITY [LINE]
debian_add_suite() {
  debian_is_debian || debian_refuse
  cat >"$apt_dir/sources.list.d/ringspun-$1.sources" <<SOURCE
Types: deb
URIs: $(debian_mirror)
Suites: $1
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
${4:-}
SOURCE
  printf '\nPackage: *\nPin: release %s\nPin-Priority: %s\n' "$2" "$3" >>"$apt_dir/preferences"
  suites+=("$1")
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
  if ((${#suites[@]})); then
    say "For this, apt looks into Debian's ${suites[*]} as well. Your source list stays as it is, so apt will not update what" \
      "comes from there until you add that suite or upgrade the system."
  fi
  case ${CI:-} in "" | 0 | false | no) [[ -z $yes ]] || return 0 ;; *) return 0 ;; esac
  [[ -t 0 && -t 2 ]] || return 0 # nobody could answer, or nobody sees the question
  local answer
  read -rp "Go on? [y/N] " answer
  [[ $answer == [yY]* ]] || die "nothing was changed."
}

debian_as_root() {
  if (($(id -u) == 0)); then
    "$@" || die "apt failed; see above."
  elif command -v sudo >/dev/null; then
    debian_may_sudo || debian_say_command "sudo could not do it" "$@"
    sudo "$@" || die "apt failed; see above."
  else
    debian_say_command "this needs root, and there is no sudo" "$@"
  fi
}

debian_may_sudo() { if [[ -t 0 ]]; then sudo -v; else sudo -n true; fi; }

debian_say_command() {
  local why=$1
  shift
  trap - EXIT # the command below needs the lists
  die "$why. As root, run this, and then bin/setup again:"$'\n'"  $(printf '%q ' "$@")"
}
