# Sourced by bin/setup: the servers that tests start for themselves, on sockets in a temporary folder.

# As Debian's package names. Debian keeps PostgreSQL's own programs off PATH.
missing_servers() {
  command -v redis-server >/dev/null || printf 'redis-server\n'
  command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || printf 'postgresql\n'
}

require_servers() {
  local missing
  missing=$(missing_servers)
  [[ -z $missing ]] || debian_install $missing
}
