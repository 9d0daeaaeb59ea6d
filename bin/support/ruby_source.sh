# Sourced by bin/setup: a Ruby beside the system, for a Debian 12, which has none from 3.3 on. Debian 13's packages would install
# there, and bring its libc, systemd and openssl with them: after that the system is neither of the two. So the Ruby is built from
# the source package of a later Debian, whose tarball is upstream's own and signed by Debian, with the libraries of this one.
#
# It lies in the cache, for all clones. Its folder has a name for all that it was made of: the version with that of Debian's patches,
# how it was configured, and the compiler.

built_folder="$cache/ruby"

# By name, as in tmp/setup: the source package and the suite.
declare -A source_of=([ruby]="ruby3.3 trixie" [ruby-matrix]="ruby3.4 experimental" [ruby-yjit]="ruby3.4 experimental")

# Without documentation, which takes as long as the rest, and without what needs one more library.
configure_options=(--disable-install-doc --without-gmp)

# What it is built with, beside what each C program needs. Of a system that shares the cache, or was cleared, they may be missing;
# where they are installed it need not be built again.
built_libraries=(openssl psych zlib fiddle)

# built_with: the part of the name that says how and by what it was built.
built_with() {
  { printf '%s\n' "${configure_options[@]}" && { gcc --version && gcc -dumpmachine; } 2>/dev/null; } | sha256sum | cut -c 1-12
}

# built_rubies: those that are here, the newest of each series first. Who has asked for one with YJIT has that before others.
built_rubies() {
  [[ -d $built_folder ]] || return 0
  local made series
  made=$(built_with)
  for series in 3.3 3.4; do
    compgen -G "$built_folder/$series.*-$made-yjit/bin/ruby" | sort -Vr || true
    [[ -n ${yjit:-} ]] || compgen -G "$built_folder/$series.*-$made/bin/ruby" | sort -Vr || true
  done
}

# missing_build_tools: as Debian's package names.
missing_build_tools() {
  printf '#include <%s>\n' openssl/ssl.h | gcc -E - >/dev/null 2>&1 || printf 'libssl-dev\n'
  printf '#include <%s>\n' yaml.h | gcc -E - >/dev/null 2>&1 || printf 'libyaml-dev\n'
  printf '#include <%s>\n' zlib.h | gcc -E - >/dev/null 2>&1 || printf 'zlib1g-dev\n'
  printf '#include <%s>\n' ffi.h | gcc -E - >/dev/null 2>&1 || printf 'libffi-dev\n'
  command -v xz >/dev/null || printf 'xz-utils\n'
  command -v patch >/dev/null || printf 'patch\n'
  [[ -z $yjit ]] || command -v rustc >/dev/null || printf 'rustc\n'
}

# builds_ruby NAME: whether that one is to be built, and not installed.
builds_ruby() {
  [[ -n ${source_of[$1]:-} && -z $upgrade_system && $(package_installer) == apt ]] || return 1
  if [[ -n $no_system ]]; then # apt's lists may be old, or none
    has_suite bookworm || { [[ $1 != ruby ]] && has_suite trixie; }
  elif [[ $1 == ruby ]]; then
    debian_lacks ruby 1:3.3 ruby && debian_is_debian
  else
    debian_is_debian
  fi
}

# refuse_ruby NAME: ends the script where a Debian of somebody else has no such Ruby.
refuse_ruby() {
  [[ $(package_installer) == apt && -z $no_system ]] || return 0
  if [[ $1 != ruby ]] || debian_lacks ruby 1:3.3 ruby; then debian_is_debian || debian_refuse; fi
}

# build_ruby NAME. Two clones that want the same at the same time get it once.
build_ruby() {
  [[ $built_folder != *[[:space:]]* ]] || die "no Ruby can be built in $built_folder, for its name has a blank. Set XDG_CACHE_HOME."
  mkdir -p "$built_folder"
  (
    wait_for_lock "$built_folder/lock" "another bin/setup, which builds a Ruby"
    ! find_named "$1" >/dev/null || exit 0
    rm -rf "$built_folder"/building.* # of calls that were killed
    folder=$(mktemp -d "$built_folder/building.XXXXXX")
    trap 'rm -rf "$folder"' EXIT
    fetch_ruby "$1"
    compile_ruby "$1"
  )
}

yjit_option() { if [[ -n $yjit ]]; then echo --enable-yjit; else echo --disable-yjit; fi; }

# fetch_ruby NAME: into `folder`.
fetch_ruby() {
  local package suite
  read -r package suite <<<"${source_of[$1]}"
  say "Fetching the source of $package from Debian's $suite"
  debian_source "$folder" "$suite" "$package" 2>"$folder/errors" ||
    { cat "$folder/errors" >&2 && die "the source of $package cannot be fetched; see above. RINGSPUN_RUBY may name a Ruby that is here."; }
  debian_say_lost "$folder" "$package"
  tar -xf "$folder/$package"_*.orig.tar.xz -C "$folder"
  tar -xf "$folder/$package"_*.debian.tar.xz -C "$folder"
  mv "$folder"/ruby-*/ "$folder/source"
}

# compile_ruby NAME
compile_ruby() {
  local log="$state/build-$1.log" version target
  version=$(basename "$(compgen -G "$folder/*.dsc")" .dsc)
  target="$built_folder/${version#*_}-$(built_with)${yjit:+-yjit}"
  say "Building Ruby ${version#*_} into $target"
  (
    cd "$folder/source" && patch_ruby && ./configure --prefix="$target" "${configure_options[@]}" "$(yjit_option)" &&
      make && make install DESTDIR="$folder/installed"
  ) >"$log" 2>&1 8>&- || die "Ruby does not build; $log says why."
  local library
  for library in "${built_libraries[@]}"; do # which its build leaves out where a header is missing, without a word
    compgen -G "$folder/installed$target/lib/ruby/*/*/$library.so" >/dev/null ||
      die "Ruby was built without $library; $log says why."
  done
  mv "$folder/installed$target" "$target"
}

# Debian's patches, for fixes of security are among them. Those of configure's own source would need autoconf, and are for
# other processors.
patch_ruby() {
  local name
  while read -r name; do
    ! grep -qE '^\+\+\+ .*(configure\.ac|\.m4)' "$folder/debian/patches/$name" || continue
    patch -p1 --no-backup-if-mismatch <"$folder/debian/patches/$name" || return
  done <"$folder/debian/patches/series"
}
