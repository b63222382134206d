# shellcheck shell=bash disable=SC2154  # the scripts that source this have set NAME and rooms
# For the programs that keep the history of runs (index, accept, recall, compare) and for bundle and verify: what they share.

die() {
  printf '%s: %s\n' "$NAME" "$2" >&2
  exit "$1"
}

perch_jq() {
  jq -L "$rooms/jq" "$@"
}

# readable FILE: regular files only: a pipe would be waited for, and a link may lead out of the run
readable() { [[ -f $1 && ! -L $1 && -r $1 ]]; }

need() {
  local tool
  for tool in "$@"; do command -v "$tool" >/dev/null || die 3 "$tool is not installed; install it and try again"; done
}

# run_folder ARGUMENT: sets dir, the folder of a judged run, absolute
run_folder() {
  local file
  dir=$1
  [[ $dir == /* ]] || dir=./$dir
  [[ -d $dir ]] || die 2 "no such run: $1; give the folder of a run, such as runs/latest"
  for file in plan.json records.jsonl verdict.json; do
    readable "$dir/$file" || die 3 "$1/$file is missing or cannot be read; run reports/judge $1 first"
  done
  dir=$(cd -- "$dir" && pwd -P)
}

sha256_of() { sha256sum -- "$1" | cut -c -64; }

# fabric_id PLAN: of what a plan knows of its fabric (jq/fabric.jq); 12 hexadecimal digits tell a site's fabrics apart
fabric_id() {
  local identity
  identity=$(perch_jq -Sc 'import "fabric" as fabric; fabric::planned_identity' "$1") || return
  printf '%s\n' "$identity" | sha256sum | cut -c -12
}

# rejudge DIR WORK: judges the run of DIR anew in WORK, where the verdict and the records then lie; DIR stays as it is, for
# only links to its raw/, its inputs/ and its plan of repeats lie in WORK. Its output is judge's; its exit code, too.
rejudge() {
  mkdir -p "$2"
  cp -- "$1/plan.json" "$2/plan.json"
  # the repeats are a part of what was judged: without them it would be another verdict
  [[ ! -e $1/plan.retry.json && ! -L $1/plan.retry.json ]] || ln -s -- "$1/plan.retry.json" "$2/plan.retry.json"
  ln -s -- "$1/raw" "$2/raw"
  ln -s -- "$1/inputs" "$2/inputs"
  "$rooms/judge" "$2"
}

# regular_or_none FILE: what will be read and replaced; a pipe would be waited for, and a link that leads nowhere would be written through
regular_or_none() {
  [[ -f $1 ]] || [[ ! -e $1 && ! -L $1 ]] || die 6 "$1 is no file; move it away, and try again"
}

# locked RUNS: from here on nobody else changes the history of RUNS, until this process ends
locked() {
  exec {lock}>"$1/.index.lock" || die 6 "$1 is not writable; the history of runs is kept there"
  flock -w 60 "$lock" || die 6 "$1/.index.lock has been held for 60 s; see who is writing there, and try again"
}

# set_line FILE RUN LINE: FILE gets LINE in place of the line of RUN, or at its end, by atomic replacement. Lines that are no
# JSON objects stay as they are, and are named; returns 1 where there are any.
set_line() {
  local fresh
  regular_or_none "$1"
  fresh=$(mktemp "$1.XXXXXX") || die 6 "$1 cannot be replaced; its folder is not writable"
  [[ -e $1 ]] || : >"$1"
  if ! perch_jq -nRr --arg run "$2" --argjson line "$3" -f "$rooms/jq/set_line.jq" "$1" >"$fresh"; then
    rm -f -- "$fresh"
    die 6 "$1 cannot be read"
  fi
  chmod 644 "$fresh"
  mv -- "$fresh" "$1"
  unreadable_lines "$1"
}

# unreadable_lines FILE: names lines that are no JSON objects of a run; returns 1 where there are any
unreadable_lines() {
  local bad
  bad=$(perch_jq -nRr '[foreach inputs as $l (0; . + 1; {at: ., $l})] | .[]
    | (.l | [try fromjson catch null] | .[0] | if type == "object" and (.run | type) == "string" then empty else 1 end) as $no | .at' "$1")
  [[ -n $bad ]] || return 0
  local number
  for number in $bad; do
    printf '%s: %s:%s: no JSON object of a run; it is left as it is\n' "$NAME" "$1" "$number" >&2
  done
  return 1
}

# index_run DIR: gives the judged run its line in index.jsonl beside it; the caller holds the lock. Returns 1 where lines of the
# index could not be read.
index_run() {
  local index id='' line plan=$1/plan.json
  index=$(dirname "$1")/index.jsonl
  regular_or_none "$index"
  # a run whose plan cannot be read has a verdict all the same, and so its line
  if jq -e 'type == "object"' "$plan" >/dev/null 2>&1; then id=$(fabric_id "$plan" 2>/dev/null) || id=; else plan=/dev/null; fi
  [[ -e $index ]] || : >"$index"
  line=$(perch_jq -nc --arg folder "$(basename "$1")" --arg id "$id" --arg digest "$(sha256_of "$1/verdict.json")" \
    --slurpfile plan "$plan" --slurpfile verdict "$1/verdict.json" --slurpfile index <(jq -cR 'fromjson? | objects' "$index") \
    -f "$rooms/jq/index.jq") || die 3 "$1/verdict.json is no verdict; run reports/judge $1 first"
  set_line "$index" "$(jq -r .run <<<"$line")" "$line"
}
