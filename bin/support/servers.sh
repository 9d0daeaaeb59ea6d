# Sourced by bin/setup and bin/test: the servers that tests start for themselves, on sockets in a temporary folder,
# and the browser.

# Debian has PostgreSQL's programs here, and not on PATH. The tests of bin/setup have another folder.
postgresql_folder=${RINGSPUN_POSTGRESQL:-/usr/lib/postgresql}

# By Debian's package names. The browser is for the tests of the web pages of the jobs.
missing_servers() {
  command -v redis-server >/dev/null || command -v valkey-server >/dev/null || printf 'redis-server\n'
  command -v initdb >/dev/null || compgen -G "$postgresql_folder/*/bin/initdb" >/dev/null || printf 'postgresql\n'
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || printf 'chromium\n'
}

# Debian has PgBouncer here, which is not on every user's PATH.
sbin=${RINGSPUN_SBIN:-/usr/sbin}

# The folder with apt's sources.
apt_folder=${RINGSPUN_APT:-/etc/apt}

# missing_matrix_servers: the other servers for tests of Postgres. PostgreSQL 15 is in Debian 12, and 17 in Debian 13, from which
# Debian 12 can install it. Other systems have one version, and do without the others.
missing_matrix_servers() {
  local twelve=
  ! has_suite bookworm || twelve=yes
  [[ -n $twelve ]] || has_suite trixie || return 0
  [[ -z $twelve ]] || has_postgresql 15 || printf 'postgresql-15\n'
  has_postgresql 17 || printf 'postgresql-17\n'
  has_pgbouncer || printf 'pgbouncer\n'
}

# Reads apt's sources, for package lists may not have been fetched, and os-release says 13 on a Debian 12 that has some packages
# from there.
has_suite() {
  grep -qsE "^[^#]*[[:space:]]$1([[:space:]]|\$)" "$apt_folder"/sources.list "$apt_folder"/sources.list.d/*
}

# has_postgresql MAJOR
has_postgresql() {
  [[ -e $postgresql_folder/$1/bin/initdb || $(initdb --version 2>/dev/null) == *" $1."* ]]
}

# From 1.21 on, which has prepared statements in transaction mode: https://www.pgbouncer.org/changelog.html
has_pgbouncer() {
  local version
  version=$(PATH=$PATH:$sbin pgbouncer --version 2>/dev/null | sed -n 's/^PgBouncer //p')
  [[ -n $version && $(printf '%s\n' 1.21 "$version" | sort -V | head -n 1) == 1.21 ]]
}

absolute() { if [[ $1 == /* ]]; then printf '%s' "$1"; else printf '%s/%s' "$PWD" "$1"; fi; }

# need_servers ARGUMENT...: whether one of these test files starts a server. Such a file requires support/servers, itself or by
# another file of this tree; the first folder with a file of that name counts, as for Ruby. This reads the `require` lines itself,
# because there may be no Ruby yet.
need_servers() {
  local level=() next file line folder
  local -A seen=()
  for file in "$@"; do [[ $file != *.rb ]] || level+=("$(absolute "$file")"); done

  while ((${#level[@]})); do
    next=()
    while read -r line; do
      [[ $line =~ ^([^:]+)/[^:]+:.*\"([^\"]+)\"$ ]] || continue
      [[ ${BASH_REMATCH[2]} != *support/servers ]] || return 0
      for folder in "${BASH_REMATCH[1]}" "$root"/{runtime/test,jobs/test,postgres/test,bench/test,bench/lib}; do
        file="$folder/${BASH_REMATCH[2]}.rb"
        [[ -f $file ]] || continue
        [[ -n ${seen[$file]:-} ]] || next+=("$file")
        seen[$file]=yes
        break
      done
    done < <(grep -HoE '\brequire(_relative)?\b[^"]*"[^"]+"' "${level[@]}")
    level=("${next[@]}")
  done
  return 1
}
