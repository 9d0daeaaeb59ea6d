# Sourced by the scripts of bin/: what a command needs beside Ruby and the gems.

# What bin/setup makes ready, unless it is told by --needs to leave some out.
all_needs="redis postgresql nginx browser rails eventmachine"

# What only bin/bench and --peers ask for.
other_needs="web-peers"

absolute() { if [[ $1 == /* ]]; then printf '%s' "$1"; else printf '%s/%s' "$PWD" "$1"; fi; }

# needs_of FILE...: what these files of Ruby need, on a line. A file that starts a server requires support/servers, itself or by
# another file of this tree; the first folder with a file of that name counts, as for Ruby. This reads the `require` lines itself,
# because there may be no Ruby yet.
needs_of() {
  local level=() next file line folder name
  local -A seen=() found=()
  for file in "$@"; do [[ $file != *.rb ]] || level+=("$(absolute "$file")"); done

  while ((${#level[@]})); do
    next=()
    ! grep -qsE '"eventmachine"' "${level[@]}" || found[eventmachine]=yes
    while read -r line; do
      [[ $line =~ ^([^:]+)/[^:]+:.*\"([^\"]+)\"$ ]] || continue
      folder=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]}
      case $name in
        bench/redis_server) found[redis]=yes && continue ;;
        bench/postgres_server) found[postgresql]=yes && continue ;;
        bench/http/contenders) found[nginx]=yes found[web-peers]=yes && continue ;;
        *support/servers) found[redis]=yes found[postgresql]=yes ;;
        *support/browser) found[browser]=yes ;;
        *support/proxies) found[nginx]=yes ;;
        *support/rails_app) found[rails]=yes ;;
      esac
      for folder in "$folder" "$root"/{runtime/test,jobs/test,postgres/test,http/test,bench/test,bench/lib}; do
        file="$folder/$name.rb"
        [[ -f $file ]] || continue
        [[ -n ${seen[$file]:-} ]] || next+=("$file")
        seen[$file]=yes
        break
      done
    done < <(grep -HoE '\brequire(_relative)?\b[^"]*"[^"]+"' "${level[@]}")
    level=("${next[@]}")
  done
  for name in $all_needs $other_needs; do [[ -z ${found[$name]:-} ]] || printf '%s ' "$name"; done
}

# tables_of ARGUMENT...: the files of the tables that bin/bench would run.
tables_of() {
  local only= all= name names
  while (($#)); do
    case $1 in
      --only) only=${2:-} && shift ;;
      --only=*) only=${1#*=} ;;
      --all | --scaling) all=yes ;;
    esac
    (($# == 0)) || shift
  done
  [[ -n $only || -n $all ]] || only=$(cut -f 1 "$root/bench/main_rows.tsv" | tr '\n' ,)
  IFS=, read -ra names <<<"$only" # and not by splitting a word, in which a glob would be of files here
  for name in "${names[@]}"; do compgen -G "$root/bench/tables/$name.rb" || true; done
  [[ -n $only ]] || printf '%s\n' "$root"/bench/tables/*.rb
}
