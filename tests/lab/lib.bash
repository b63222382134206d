# shellcheck shell=bash disable=SC2034  # the programs that source it use these
# What the lab's programs share: paths, words, and how a process is known. Source it first.

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
LAB_TOOLS=$TOP/tests/lab
readonly TOP LAB_TOOLS

# Several labs can run beside each other, each under its own name.
: "${PERCH_LAB:=default}"
readonly LAB_STATE=$TOP/runs/.lab/$PERCH_LAB
readonly LAB_HOSTS=(alpha beta)

# Exit codes as the engine's: usage, this machine cannot run it, the guest did not come up, internal.
readonly EXIT_USAGE=2 EXIT_HOST=3 EXIT_PEER=4 EXIT_INTERNAL=6

say() { printf 'lab: %s\n' "$*" >&2; }

fail() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# Sets REPLY to when a process started (clock ticks since boot), which tells it from a later one of the same number.
# Without a fork: the keepers ask this every second.
start_of() {
  local stat
  local -a fields
  REPLY=
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  # proc(5): the name in parentheses may hold blanks; the start is field 22, the 20th after it
  read -ra fields <<<"${stat##*) }"
  [ "${fields[0]}" != Z ] || return 1
  REPLY=${fields[19]}
}

# same_process PID START: still that one?
same_process() { [ -n "${1-}" ] && start_of "$1" && [ "$REPLY" = "${2-}" ]; }

# running FILE: is the process that FILE names ("PID START") alive?
running() {
  local pid start
  [ -e "$1" ] && read -r pid start <"$1" && same_process "$pid" "$start"
}

# Where images are kept: outside the checkout, named by the recipe they were made from.
image_cache() { echo "${XDG_CACHE_HOME:-$HOME/.cache}/perch"; }
