# Sourced by bin/setup and bin/test: the servers that tests start for themselves, on sockets in a temporary folder.

# Debian keeps PostgreSQL's own programs off PATH, here. The tests have a folder of their own.
postgresql_folder=${RINGSPUN_POSTGRESQL:-/usr/lib/postgresql}

# As Debian's package names.
missing_servers() {
  command -v redis-server >/dev/null || command -v valkey-server >/dev/null || printf 'redis-server\n'
  command -v initdb >/dev/null || compgen -G "$postgresql_folder/*/bin/initdb" >/dev/null || printf 'postgresql\n'
}

absolute() { if [[ $1 == /* ]]; then printf '%s' "$1"; else printf '%s/%s' "$PWD" "$1"; fi; }

# need_servers ARGUMENT...: whether one of these test files starts a server. Such a file requires support/servers, itself or by
# what it requires of this tree. This reads the lines that say `require`, because there may be no Ruby yet that could.
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
