# shellcheck shell=bash disable=SC2154  # run sets top
# How a fault is planted: each edits files of the run in whose folder it stands. Nothing but its raw files, its plan and its
# inputs is touched, and judge is the only one who looks.

# plant COMMAND... [, COMMAND...]
plant() {
  local -a words=()
  while (($#)); do
    if [[ $1 == , ]]; then
      "${words[@]}" || return
      words=()
    else
      words+=("$1")
    fi
    shift
  done
  "${words[@]}"
}

# What an edit leaves as it was is no fault: a filter that misses must not look like a check that does.
changed() {
  if [[ -e $1 ]] && cmp -s "$1" "$1.new"; then
    printf 'the edit of %s changed nothing\n' "$1"
    return 1
  fi
  mv -- "$1.new" "$1"
}

# edit FILE FILTER: jq, of a document or of each line; one line a document, as the tools write them. FILE may be a pattern.
edit() {
  local file
  # shellcheck disable=SC2086  # patterns are meant
  for file in $1; do
    jq -c . "$file" >"$file.old" && jq -c "$2" "$file" >"$file.new" && mv -- "$file.old" "$file" && changed "$file" || return
  done
}

# text FILE SCRIPT: sed -E
text() { sed -E "$2" "$1" >"$1.new" && changed "$1"; }

# swap A B: each has the other's content
swap() {
  cp -- "$1" "$1.new" && changed_by "$2" "$1" && cp -- "$1.new" "$2" && rm -- "$1.new"
}
changed_by() { ! cmp -s "$1" "$2" && cp -- "$1" "$2"; }

# of FILE OTHER: FILE has the content of OTHER, of this run, or with a leading +, of the fixtures
of() {
  local from=$2
  [[ $from != +* ]] || from=$top/tests/fixtures/${from#+}
  cp -- "$from" "$1.new" && changed "$1"
}

# says FILE TEXT: that is all it says
says() { printf '%s\n' "$2" >"$1.new" && changed "$1"; }

# cut_at FILE BYTES: what remained of a file whose disk was full; a negative number is cut from its end
cut_at() { head -c "$2" "$1" >"$1.new" && changed "$1"; }

# lines FILE N: its first ones
lines() { head -n "$2" "$1" >"$1.new" && changed "$1"; }

# append FILE FROM: what stands in FROM comes behind it
append() { cat "$1" "$2" >"$1.new" && changed "$1"; }

remove() { rm -r -- "$@"; }

# folder FILE: there is one in its place
folder() { rm -- "$1" && mkdir -- "$1"; }

# scale_table FILE FACTOR: rates of perftest's rows, whose digits stay as many
scale_table() {
  LC_ALL=C awk -v by="$2" '/^ [0-9]+ /{ $0 = sprintf(" %d %d %.2f %.2f %.6f", $1, $2, $3 * by, $4 * by, $5 * by) } { print }' "$1" >"$1.new" && changed "$1"
}

# sealed_anew: the manifest is of what lies here now
sealed_anew() { rm -- raw/manifest.sha256 && "$top/reports/seal" .; }

# become_import +FILE: what reports/import makes of a file of the fixtures, by the same limits, in the place of all that was here
become_import() {
  mv -- inputs/limits.json .limits.json && rm -r -- plan.json raw inputs
  "$top/reports/import" --run imported --limits .limits.json "$top/tests/fixtures/${1#+}" && mv -- imported/* .
}

# everywhere SCRIPT: sed -E on all raw files of the run
everywhere() { find raw plan.json -type f -exec sed -E -i "$1" {} +; }

# limits_of SET: the limits of that name, as a plan copies them
limits_of() {
  mkdir -p inputs
  "$top/.venv/bin/python" -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <"$top/reports/limits/$1.yml" >inputs/limits.json
}
