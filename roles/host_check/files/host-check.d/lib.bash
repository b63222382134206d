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
# Tools that did not answer in time are not asked again: a driver that is stuck holds dozens of commands.
declare -A HUNG=()

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

# text_of FILE: what it holds without zero bytes, in TEXT; false where it cannot be read or is too long. By the shell itself, as a
# process for each of hundreds of files would take most of the time; what seems empty is read again, since reading may have failed.
text_of() {
  TEXT=
  [ -f "$1" ] || return 1
  if ! { IFS= read -r -N $((MOST_BYTES + 1)) TEXT <"$1"; } 2>/dev/null && [ -z "$TEXT" ]; then
    cat "$1" &>/dev/null || return 1
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

# answer COMMAND...: its output in OUT, its exit code in STATUS. Even SIGKILL does not end what waits in the kernel, for a card
# or a driver that is stuck, so this wait has an end of its own: of a pipe that the command holds.
answer() {
  local fd how=0
  STATUS=0 OUT=''
  exec {fd}< <(exec timeout --kill-after=2 "$COMMAND_SECONDS" "$@" 3>&1 >"$SCRATCH/out" 2>"$SCRATCH/err" </dev/null)
  read -r -t $((COMMAND_SECONDS + 3)) -u "$fd" || how=$?
  exec {fd}<&-
  if ((how > 128)); then
    STATUS=137
  else
    wait "$!" || STATUS=$?
    if text_of "$SCRATCH/out"; then OUT=$TEXT; else STATUS=null; fi
  fi
}

# ask NAME COMMAND...: what it says. The name of a command that bash runs is its $0.
ask() {
  local name=$1 STATUS=null OUT='' err='' argv='' word tool=$2
  shift
  ! is_kept command "$name" || return 0
  for word in "$@"; do
    json "$word"
    argv+="${argv:+, }$JSON"
  done
  [ "$tool" != bash ] || tool=${4-$3}
  if [ -n "${HUNG["$tool"]-}" ]; then
    STATUS=124 err="it hung before, and was not asked again"
  elif command -v "$1" >/dev/null; then
    answer "$@"
    text_of "$SCRATCH/err" || true
    err=$TEXT
    case $STATUS in
      124 | 137) HUNG["$tool"]=1 ;;
      null) err="the answer is longer than $MOST_BYTES bytes, and was not kept" ;;
    esac
  fi
  json "$name"
  COMMANDS+="${COMMANDS:+, }$JSON: {\"argv\": [$argv], \"exit\": $STATUS, "
  pair stdout "$OUT"
  COMMANDS+="$PAIR, "
  pair stderr "$err"
  COMMANDS+="$PAIR}"
}
