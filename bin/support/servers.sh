# Sourced by bin/setup: the servers that tests and the bench start for themselves, on sockets in a temporary folder, and the browser.

# Debian has PostgreSQL's programs here, and not on PATH. The tests of bin/setup have another folder.
postgresql_folder=${RINGSPUN_POSTGRESQL:-/usr/lib/postgresql}

# By Debian's package names. The browser is for the tests of the web pages of the jobs.
missing_servers() {
  ! needs redis || command -v redis-server >/dev/null || command -v valkey-server >/dev/null || printf 'redis-server\n'
  ! needs postgresql || command -v initdb >/dev/null || compgen -G "$postgresql_folder/*/bin/initdb" >/dev/null ||
    printf 'postgresql\n'
  ! needs nginx || has_in_sbin nginx || printf 'nginx\n'
  ! needs browser || command -v chromium >/dev/null || command -v chromium-browser >/dev/null || printf 'chromium\n'
}

# Debian has PgBouncer here, which is not on every user's PATH.
sbin=${RINGSPUN_SBIN:-/usr/sbin}

has_in_sbin() { PATH=$PATH:$sbin command -v "$1" >/dev/null; }

# missing_proxies: those behind which the tests of HTTP run by night, beside nginx.
missing_proxies() {
  needs nginx && [[ ${RINGSPUN_NIGHTLY:-} == 1 ]] || return 0
  has_in_sbin haproxy || printf 'haproxy\n'
  has_in_sbin varnishd || printf 'varnish\n'
  has_in_sbin apache2 || has_in_sbin httpd || printf 'apache2\n'
}

# The folder with apt's sources.
apt_folder=${RINGSPUN_APT:-/etc/apt}

# missing_matrix_servers: the other servers for tests of Postgres. Debian 12 has PostgreSQL 15, and Debian 13 has 17. Other systems
# have one version, and do without the others.
missing_matrix_servers() {
  if has_suite bookworm; then
    has_postgresql 15 || printf 'postgresql-15\n'
    [[ -z $upgrade_system ]] || missing_newer_servers
  elif has_suite trixie; then
    missing_newer_servers
  fi
}

missing_newer_servers() {
  has_postgresql 17 || printf 'postgresql-17\n'
  has_pgbouncer || printf 'pgbouncer\n'
}

# unpacks_servers: whether a Debian 12 lacks what only Debian 13 has.
unpacks_servers() {
  [[ -z $upgrade_system && $(package_installer) == apt ]] && has_suite bookworm && [[ -n $(missing_newer_servers) ]]
}

# Reads apt's sources, for package lists may not have been fetched, and os-release says 13 on a Debian 12 that has some packages
# from there.
has_suite() {
  grep -qsE "^[^#]*[[:space:]]$1([[:space:]]|\$)" "$apt_folder"/sources.list "$apt_folder"/sources.list.d/*
}

# has_postgresql MAJOR
has_postgresql() {
  [[ -e $postgresql_folder/$1/bin/initdb || $(initdb --version 2>/dev/null) == *" $1."* ]] ||
    has_unpacked "usr/lib/postgresql/$1/bin/initdb"
}

# From 1.21 on, which has prepared statements in transaction mode: https://www.pgbouncer.org/changelog.html
has_pgbouncer() {
  ! has_unpacked usr/sbin/pgbouncer || return 0
  local version
  version=$(PATH=$PATH:$sbin pgbouncer --version 2>/dev/null | sed -n 's/^PgBouncer //p')
  [[ -n $version && $(printf '%s\n' 1.21 "$version" | sort -V | head -n 1) == 1.21 ]]
}
