# Sourced by bin/setup: installs packages that the system lacks, all by Debian's names. Debian and its derivatives get them by
# apt; for other systems it prints the line to type.

source "$root/bin/support/debian.sh"

# Says what this system is; the tests of bin/setup have others: https://man7.org/linux/man-pages/man5/os-release.5.html
os_release=${RINGSPUN_OS_RELEASE:-/etc/os-release}

# Installs or builds what bin/setup has found missing, or ends the script.
provide() {
  local installer name built=()
  installer=$(package_installer)
  [[ $installer != apt || -n $no_system ]] || debian_prepare
  local of_rubies=()
  for name in "${missing_rubies[@]}"; do
    if [[ $name == ruby-yjit && ${#built[@]} != 0 ]]; then
      continue # for that one has YJIT
    elif builds_ruby "$name"; then
      built+=("$name")
      missing+=($(missing_build_tools))
      # Much of it is for one processor: configure, and the largest files at the end.
      add_step 600 "build a Ruby for this clone and others into $built_folder; the system keeps what it has"
    else
      [[ -z $(wants_yjit "$name") ]] || refuse_yjit
      refuse_ruby "$name"
      of_rubies+=(${packages[$name]})
    fi
  done
  missing=("${of_rubies[@]}" "${missing[@]}")
  remove_doubles
  [[ -z $to_unpack ]] || add_step 30 "unpack ${unpacked_packages[*]} of Debian 13 into $servers_cache; none is installed"
  add_gem_steps
  if ((${#missing[@]} == 0)); then
    say_steps
  elif [[ $installer == apt && -z $no_system ]]; then
    debian_install "${missing[@]}"
  else
    die "missing: ${missing[*]}."$'\n'"$(what_to_type "$installer" "${missing[@]}")"
  fi
  for name in "${built[@]}"; do build_ruby "$name"; done
  [[ -z $to_unpack ]] || unpack_servers
}

# Where none can be built. No package of a distribution is sure to have it.
refuse_yjit() {
  die "no Ruby${matrix:+ 3.4} here has YJIT. Install one by rbenv, asdf or mise while a compiler of Rust is there: bin/setup finds it."
}

# Two parts may want the same package.
remove_doubles() {
  local package all=("${missing[@]}")
  missing=()
  for package in "${all[@]}"; do [[ " ${missing[*]} " == *" $package "* ]] || missing+=("$package"); done
}

# What keeps objects of C between runs, where common.sh knows how to use it.
missing_cache() { [[ $(package_installer) != apt ]] || command -v ccache >/dev/null || printf 'ccache\n'; }

# The program that installs packages here, by the first of ID and ID_LIKE that is known.
package_installer() {
  local id
  for id in $(. "$os_release" 2>/dev/null && printf '%s %s' "${ID:-}" "${ID_LIKE:-}"); do
    case $id in
      debian | ubuntu) echo apt && return ;;
      fedora | rhel | centos) echo dnf && return ;;
      arch) echo pacman && return ;;
      alpine) echo apk && return ;;
    esac
  done
}

# what_to_type INSTALLER PACKAGE...
what_to_type() {
  local installer=$1 package name names=() command=()
  shift
  for package in "$@"; do
    for name in $(name_for "$installer" "$package"); do
      [[ " ${names[*]-} " == *" $name "* ]] || names+=("$name")
    done
  done
  case $installer in
    apt) command=(apt-get install --no-install-recommends) ;;
    dnf) command=(dnf install) ;;
    pacman) command=(pacman -S --needed) ;;
    apk) command=(apk add) ;;
  esac

  if ((${#command[@]} == 0)); then
    echo "These are Debian's names. Install what your system calls them, and run bin/setup again."
  elif ((${#names[@]})); then
    (($(id -u) == 0)) || command=(sudo "${command[@]}")
    printf "Type this, and run bin/setup again:\n  %s\n" "${command[*]} ${names[*]}"
  fi
  [[ " $* " != *" ruby "* ]] ||
    echo "Should that Ruby be older than 3.3, or come without Bundler, install one by rbenv, asdf or mise: bin/setup finds it."
  [[ " $* " != *" ruby3.4 "* ]] || echo "Install a Ruby 3.4 by rbenv, asdf or mise: bin/setup finds it."
}

# The version of Red Hat's systems; a large number for Fedora, which counts otherwise, and where none is named.
red_hat_version() { (. "$os_release" && [[ ${ID:-} != fedora && ${VERSION_ID:-} =~ ^[0-9] ]] && printf '%s' "${VERSION_ID%%.*}") || printf '99'; }

# name_for INSTALLER PACKAGE: its name there; nothing if it is a part of another package, or not packaged.
name_for() {
  case "$1 $2" in
    *\ ruby3.4*) ;;
    apt\ *) printf '%s' "$2" ;;
    dnf\ ruby-dev) printf 'ruby-devel rubygem-bundler redhat-rpm-config' ;; # its Ruby builds with flags from the last
    dnf\ g++) printf 'gcc-c++' ;;
    dnf\ libc6-dev) printf 'glibc-devel' ;;
    dnf\ postgresql) printf 'postgresql-server' ;;
    pacman\ ruby-dev) printf 'ruby-bundler' ;; # the headers are in its ruby
    pacman\ g++) printf 'gcc' ;;
    pacman\ libc6-dev) printf 'glibc' ;;
    pacman\ gcc-aarch64-linux-gnu) printf 'aarch64-linux-gnu-gcc' ;;
    pacman\ libc6-dev-arm64-cross) printf 'aarch64-linux-gnu-glibc' ;;
    apk\ ruby-dev) printf 'ruby-dev ruby-bundler' ;;
    apk\ libc6-dev) printf 'musl-dev linux-headers' ;;
    dnf\ redis-server) if [[ $(red_hat_version) -lt 10 ]]; then printf 'redis'; else printf 'valkey'; fi ;;
    *\ redis-server) printf 'valkey' ;;
    *) printf '%s' "$2" ;;
  esac
}
