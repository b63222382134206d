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
# Tools and devices that did not answer in time are not asked again: a driver that is stuck holds dozens of commands.
declare -A HUNG=()
# The process that reads the files of drivers, and the pipes to it and from it.
READER='' TO='' FROM=''

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

# text_now FILE: what it holds without zero bytes, in TEXT; false where it cannot be read or is too long. By the shell itself, as a
# process for each of hundreds of files would take most of the time; what seems empty is read again, since reading may have failed.
text_now() {
  TEXT=
  [ -f "$1" ] || return 1
  if ! { IFS= read -r -N $((MOST_BYTES + 1)) TEXT <"$1"; } 2>/dev/null && [ -z "$TEXT" ]; then
    cat "$1" &>/dev/null || return 1
  fi
  TEXT=${TEXT%"${TEXT##*[!$'\n']}"} # as $(...) does
  ((${#TEXT} <= MOST_BYTES))
}

# read_files: the reader. Of each name, after its length, the text after its length; -1 where there is none.
read_files() {
  local length name TEXT
  while read -r -N 4 length; do
    IFS= read -r -N $((length)) name
    if text_now "$name"; then printf '%7d%s' ${#TEXT} "$TEXT"; else printf '%7d' -1; fi
  done
}

# A driver answers these reads, and one that is stuck never does: nothing ends a process that waits for it in the kernel.
readonly OF_DRIVERS='^/sys/(class/[^/]+|bus/pci/devices|kernel/(config|debug)/[^/]+)/[^/]+'

# text_of FILE: as text_now. A file of a driver is read by the reader, which is left behind where it does not answer; the device
# is not read again, and a command "read FILE" says so.
text_of() {
  local length device
  if [[ ! $1 =~ $OF_DRIVERS ]]; then
    text_now "$1"
    return
  fi
  device=${BASH_REMATCH[0]} TEXT=
  if [ ! -f "$1" ] || [ -n "${HUNG["$device"]-}" ]; then return 1; fi
  if [ -z "$READER" ]; then
    exec {FROM}<> <(:) # a pipe, which both ends hold
    # it must hold no file of the script's own, or the script would not end for who waits for these
    exec {TO}> >(exec 1>&"$FROM" 2>/dev/null && read_files)
    READER=$!
  fi
  printf '%4d%s' ${#1} "$1" >&"$TO"
  if read -r -N 7 -t "$COMMAND_SECONDS" -u "$FROM" length; then
    ((length >= 0)) || return 1
    ((length == 0)) || IFS= read -r -N $((length)) -u "$FROM" TEXT
    return 0
  fi
  HUNG["$device"]=1
  kill "$READER" 2>/dev/null || true
  exec {FROM}<&- {TO}>&-
  READER=''
  told "read $1" 137 "read" "$1"
  return 1
}

# line FILE: its first line, in LINE
line() {
  LINE=''
  if [[ $1 =~ $OF_DRIVERS ]]; then
    text_of "$1" && read -r LINE <<<"$TEXT"
  else
    read -r LINE 2>/dev/null <"$1" || [ -n "$LINE" ]
  fi
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

# told NAME EXIT COMMAND...: among the commands, with OUT and ERR
told() {
  local word argv='' JSON PAIR
  for word in "${@:3}"; do
    json "$word"
    argv+="${argv:+, }$JSON"
  done
  json "$1"
  COMMANDS+="${COMMANDS:+, }$JSON: {\"argv\": [$argv], \"exit\": $2, "
  pair stdout "${OUT-}"
  COMMANDS+="$PAIR, "
  pair stderr "${ERR-}"
  COMMANDS+="$PAIR}"
}

# ask NAME COMMAND...: what it says. The name of a command that bash runs is its $0.
ask() {
  local name=$1 STATUS=null OUT='' ERR='' tool=$2
  shift
  ! is_kept command "$name" || return 0
  [ "$tool" != bash ] || tool=${4-$3}
  if [ -n "${HUNG["$tool"]-}" ]; then
    STATUS=124 ERR="it hung before, and was not asked again"
  elif command -v "$1" >/dev/null; then
    answer "$@"
    text_of "$SCRATCH/err" || true
    ERR=$TEXT
    case $STATUS in
      124 | 137) HUNG["$tool"]=1 ;;
      null) ERR="the answer is longer than $MOST_BYTES bytes, and was not kept" ;;
    esac
  fi
  told "$name" "$STATUS" "$@"
}
