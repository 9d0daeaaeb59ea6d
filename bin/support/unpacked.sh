# Sourced by bin/setup: servers that only a later Debian has, without an installation. They are unpacked from its packages, with
# their libraries down to the C library, and each program is a script that calls the loader of that tree.

# Servers run as another user where tests run as root, whose home is closed to others.
servers_cache=${RINGSPUN_SERVERS_CACHE:-$(if (($(id -u) == 0)); then echo /var/cache/ringspun; else echo "$cache"; fi)}/servers

unpacked_packages=(postgresql-17 pgbouncer valkey-server)

# unpacked: the newest tree that is here.
unpacked() { compgen -G "$servers_cache/*/done" | sort -V | tail -n 1 | sed 's|/done$||' | grep .; }

# has_unpacked PATH: whether there is one with that program.
has_unpacked() {
  local tree
  tree=$(unpacked) && [[ -x $tree/$1 ]]
}

# For test/support/servers.rb.
note_unpacked() {
  local tree
  if tree=$(unpacked); then ln -sfn "$tree" "$state/servers"; else rm -f "$state/servers"; fi
}

# Two clones that want the same at the same time get it once.
unpack_servers() {
  mkdir -p "$servers_cache"
  (
    wait_for_lock "$servers_cache/lock" "another bin/setup, which unpacks servers"
    ! unpacked >/dev/null || exit 0
    rm -rf "$servers_cache"/unpacking.* # of calls that were killed
    folder=$(mktemp -d "$servers_cache/unpacking.XXXXXX")
    trap 'rm -rf "$folder"' EXIT
    chmod 755 "$folder"
    say "Unpacking ${unpacked_packages[*]} of Debian 13 into $servers_cache"
    download_servers || die "the servers cannot be fetched; $state/servers.log says why."
    target="$servers_cache/$(cd "$folder/packages" && sha256sum -- *.deb | sha256sum | cut -c 1-12)"
    unpack_packages
    chmod 755 "$folder/tree"
    rm -rf "$target"
    mv "$folder/tree" "$target"
    # By absolute paths, so they come last, and the mark after them.
    wrap_programs
    check_programs || { rm -rf "$target" && die "the unpacked servers do not run; $state/servers.log says why."; }
    touch "$target/done"
  )
}

# What these depend on where nothing is installed. The files of packages that only set a system up are of no use here.
download_servers() {
  mkdir -p "$folder"/{lists/partial,packages/partial}
  chmod -R 755 "$folder"
  : >"$folder/status"
  printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s trixie main\n' "$(debian_mirror)" >"$folder/sources"
  local options=(-o Dir::Etc::SourceList="$folder/sources" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$folder/lists"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Dir::State::status="$folder/status"
    -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null)
  (
    apt-get "${options[@]}" -qq update &&
      needed=$(apt-get "${options[@]}" -s install --no-install-recommends "${unpacked_packages[@]}" | sed -n 's/^Inst \([^ ]*\).*/\1/p' |
        grep -E '^(lib|zlib|postgresql-.*[0-9]$|pgbouncer|valkey)' | grep -vE -- '-perl$|^libperl|^libllvm|^libz3') &&
      cd "$folder/packages" && apt-get "${options[@]}" -qq download $needed
  ) >"$state/servers.log" 2>&1
}

# Without the compiler of PostgreSQL, whose library is larger than all others together. The server does without.
unpack_packages() {
  local package
  mkdir "$folder/tree"
  for package in "$folder"/packages/*.deb; do dpkg -x "$package" "$folder/tree"; done
  rm -rf "$folder"/tree/usr/lib/postgresql/*/lib/{llvmjit*,bitcode} "$folder"/tree/usr/share/{doc,man,locale}
}

# A program of PostgreSQL finds its files and its fellows by the folder of the name that it was called by, so the script has the
# program's place and name.
wrap_programs() {
  local program loader libraries
  loader=$(compgen -G "$target/usr/lib/*-linux-*/ld-linux-*.so.*" | head -n 1)
  libraries=$(dirname "$loader")
  mkdir "$target/programs"
  for program in "$target"/usr/lib/postgresql/*/bin/* "$target"/usr/sbin/pgbouncer "$target"/usr/bin/valkey-*; do
    [[ -x $program && $(head -c 4 "$program") == $'\x7fELF' ]] || continue
    cp -L "$program" "$target/programs/"
    rm "$program"
    cat >"$program" <<SCRIPT
#!/bin/sh
exec "$loader" --argv0 "\$0" --library-path "$libraries" "$target/programs/$(basename "$program")" "\$@"
SCRIPT
    chmod 755 "$program"
  done
}

check_programs() {
  local program
  for program in usr/lib/postgresql/17/bin/postgres usr/lib/postgresql/17/bin/initdb usr/sbin/pgbouncer usr/bin/valkey-server; do
    "$target/$program" --version >>"$state/servers.log" 2>&1 || return
  done
}
