# shellcheck shell=bash
# What every area of host-check keeps its readings with: files, links and what commands say, raw, as parts of one JSON object.
set -euo pipefail
export LC_ALL=C

# The longest text that is kept of a file or a stream; nothing read here is near it but a firewall's rules. What is longer
# is not kept at all, since half an answer may say the contrary of the whole one.
readonly MOST_BYTES=262144
# Seconds that a command may take. cxi_stat -r watches the link for four.
readonly COMMAND_SECONDS=15

FILES='' LATER='' LINKS='' COMMANDS=''
declare -A KEPT=()

# is_kept PART NAME: whether an area has read it already. JSON with a key twice would say two things, and the judge refuses it.
is_kept() {
  [ -z "${KEPT["$1 $2"]:-}" ] || return 0
  KEPT["$1 $2"]=1
  return 1
}

# json TEXT: as a JSON string in JSON. Bytes that are no printable ASCII become a question mark.
json() {
  local text=${1:0:$MOST_BYTES}
  text=${text//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\n'/\\n}
  text=${text//$'\t'/\\t}
  JSON="\"${text//[^ -~]/?}\""
}

# pair TEXT1 TEXT2: "TEXT1": "TEXT2" in PAIR
pair() {
  json "$1"
  PAIR=$JSON
  json "$2"
  PAIR+=": $JSON"
}

# text_of FILE: what it holds, in TEXT; false where it cannot be read or is too long. By the shell itself, as a process for each
# of hundreds of files would take most of the time; only what seems empty, since reading may have failed, or holds a zero
# byte is read again.
text_of() {
  TEXT=
  [ -f "$1" ] || return 1
  if { IFS= read -r -d '' TEXT <"$1"; } 2>/dev/null || [ -z "$TEXT" ]; then
    TEXT=$({ tr -d '\0' <"$1"; } 2>/dev/null) || return 1
  fi
  TEXT=${TEXT%"${TEXT##*[!$'\n']}"} # as $(...) does
  ((${#TEXT} <= MOST_BYTES))
}

# keep FILE...: what they hold
keep() {
  local file
  for file in "$@"; do
    if ! text_of "$file" || is_kept file "$file"; then continue; fi
    pair "$file" "$TEXT"
    FILES+="${FILES:+, }$PAIR"
  done
}

# keep_later FILE...: what they hold now, for those that count
keep_later() {
  local file
  for file in "$@"; do
    if ! text_of "$file" || is_kept later "$file"; then continue; fi
    pair "$file" "$TEXT"
    LATER+="${LATER:+, }$PAIR"
  done
}

keep_link() {
  local target
  target=$(readlink "$1" 2>/dev/null) || return 0
  ! is_kept link "$1" || return 0
  pair "$1" "$target"
  LINKS+="${LINKS:+, }$PAIR"
}

# ask NAME COMMAND...: what it says
ask() {
  local name=$1 status=0 out='' err='' argv='' word
  shift
  ! is_kept command "$name" || return 0
  for word in "$@"; do
    json "$word"
    argv+="${argv:+, }$JSON"
  done
  if command -v "$1" >/dev/null; then
    out=$(timeout --kill-after=2 "$COMMAND_SECONDS" "$@" 2>"$SCRATCH" </dev/null) || status=$?
    text_of "$SCRATCH" || true
    err=$TEXT
    if ((${#out} > MOST_BYTES)); then
      status=null out='' err="the answer is longer than $MOST_BYTES bytes, and was not kept"
    fi
  else
    status=null
  fi
  json "$name"
  COMMANDS+="${COMMANDS:+, }$JSON: {\"argv\": [$argv], \"exit\": $status, "
  pair stdout "$out"
  COMMANDS+="$PAIR, "
  pair stderr "$err"
  COMMANDS+="$PAIR}"
}
