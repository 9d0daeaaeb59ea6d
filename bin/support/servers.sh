# Sourced by bin/setup and bin/test: the servers that tests start for themselves, on sockets in a temporary folder.

# As Debian's package names. Debian keeps PostgreSQL's own programs off PATH.
missing_servers() {
  command -v redis-server >/dev/null || command -v valkey-server >/dev/null || printf 'redis-server\n'
  command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || printf 'postgresql\n'
}

# need_servers ARGUMENT...: whether one of these test files starts a server. Such a file requires support/servers, itself or by
# what it requires of this tree. This reads the lines that say `require`, because there may be no Ruby yet that could.
need_servers() {
  local level=() next file line folder
  local -A seen=()
  for file in "$@"; do [[ $file != *.rb ]] || level+=("$(realpath -m -- "$file")"); done

  while ((${#level[@]})); do
    next=()
    while read -r line; do
      [[ $line =~ ^([^:]+)/[^:]+:.*\"([^\"]+)\"$ ]] || continue
      [[ ${BASH_REMATCH[2]} != *support/servers ]] || return 0
      for folder in "${BASH_REMATCH[1]}" "$root"/{runtime/test,jobs/test,bench/test,bench/lib}; do
        file="$folder/${BASH_REMATCH[2]}.rb"
        [[ -z ${seen[$file]:-} && -f $file ]] || continue
        seen[$file]=yes
        next+=("$file")
      done
    done < <(grep -HoE '\brequire(_relative)?\b[^"]*"[^"]+"' "${level[@]}")
    level=("${next[@]}")
  done
  return 1
}
