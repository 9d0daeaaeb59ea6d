# Sourced by bin/setup: what a call will do that takes a while, said before it begins.

steps=() # "seconds of a processor<TAB>what"

# add_step SECONDS WHAT
add_step() { steps+=("$1"$'\t'"$2"); }

# Said once. The seconds are of a processor of 2024, and a download is in none of them.
say_steps() {
  ((${#steps[@]})) || return 0
  local step seconds=0
  say "bin/setup will"
  for step in "${steps[@]}"; do
    say "  ${step#*$'\t'}"
    seconds=$((seconds + ${step%%$'\t'*}))
  done
  say "That takes about $(duration $((seconds / $(nproc) + 10))), and what the downloads take."
  steps=()
}

# duration SECONDS
duration() { if (($1 < 90)); then printf '%s s' "$1"; else printf '%s minutes' $((($1 + 59) / 60)); fi; }

# wait_for_lock FILE WHO: takes the lock on descriptor 8 and keeps it until this shell ends. Says whom it waits for.
wait_for_lock() {
  exec 8>"$1"
  flock -n 8 && return
  say "waiting for $2"
  flock 8
}
