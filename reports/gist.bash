# What a report is made of, in one pass each over the two large files of a run, for those who source this: prepare, export, figures.
# They set rooms, and work, a folder for what is temporary.
# shellcheck shell=bash disable=SC2154

# Bytes from which records are passed in parts, side by side, and a plan comes in pieces: where that begins to be quicker.
gist_part_bytes=${PERCH_REPORT_PART_BYTES:-6000000}

gist_part() { # AFTER <RECORDS
  jq -nrc -L "$rooms/jq" --argjson after "$1" -f "$rooms/jq/gist.jq"
}

# gist_bytes FILE FROM TO. head ends early, and tail dies of that, which is no fault.
gist_bytes() { { tail -c "+$(($2 + 1))" -- "$1" || :; } 2>/dev/null | head -c "$(($3 - $2))"; }

# gist RECORDS: jq/gist.jq's documents of all records, on standard output, once all have been read without a fault. What is
# printed is the same whatever the parts.
gist() {
  local bytes parts=1 i from=0 to after=null failed=0
  local -a pids=()
  bytes=$(stat -Lc %s -- "$1") || return 1
  ((bytes <= gist_part_bytes)) || parts=$(($(nproc) > 2 ? $(nproc) : 2))
  for ((i = 1; i <= parts; i++)); do
    to=$((bytes * i / parts))
    ((to > from)) || continue
    # to the end of the line in which this lies
    ((to == bytes)) || to=$((to + $({ tail -c "+$((to + 1))" -- "$1" || :; } 2>/dev/null | head -n 1 | wc -c)))
    gist_part "$after" < <(gist_bytes "$1" "$from" "$to") >"$work/gist.$(printf %04d "$i")" &
    pids+=("$!")
    # a last line longer than this is read whole
    ((to == bytes)) || after=$(gist_bytes "$1" "$((to > 1000000 ? to - 1000000 : 0))" "$to" | tail -n 1 | jq -c .flow 2>/dev/null) ||
      after=$(gist_bytes "$1" "$from" "$to" | tail -n 1 | jq -c .flow) || return 1
    from=$to
  done
  for i in "${pids[@]}"; do wait "$i" || failed=1; done
  ((!failed)) || return 1
  if ((bytes)); then cat -- "$work"/gist.????; else gist_part null </dev/null; fi
}

# plan_pieces PLAN: as documents that jq/plan_digest.jq reads one by one. In a plan of one line, as the planner writes it, the
# text that parts the rounds can stand nowhere else, as every quote within a string is escaped.
plan_pieces() {
  if (($(stat -Lc %s "$1") <= gist_part_bytes)) || (($(head -c 200 -- "$1" | wc -l))); then
    cat -- "$1"
    return
  fi
  LC_ALL=C awk '
    BEGIN { RS = "[{]\"flows\":[[]" }
    NR == 1 && /"rounds":\[$/ { print $0 "]}"; next }
    # otherwise as it is
    NR == 1 || whole { printf "%s%s", (whole++ ? "{\"flows\":[" : ""), $0; next }
    # the last one goes on with the rest of the plan
    sub(/\]},$/, "") { print "{\"flows\":[" $0 "]}"; next }
    { at = match($0, /\]}\]}[ \n]*$/) ? RSTART : index($0, "]}],\""); print "{\"flows\":[" substr($0, 1, at - 1) "]}{\"rounds\":[" substr($0, at + 2) }' "$1"
}
