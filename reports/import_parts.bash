# shellcheck shell=bash disable=SC2154  # rooms, work: whoever sources this has set them
# For reports/import and reports/judge: files -> documents, one for each output that a tool printed. A handful of processes,
# however many files and outputs there are.

import_jq() { jq -L "$rooms/jq" "$@"; }

# readable_files FILE...: their names to $work/list; the others are named. 1 where there are such.
readable_files() {
  local file why status=0
  : >"$work/list"
  for file; do
    why=
    if [[ $file == *[$'\t\n']* ]]; then
      why='its name holds a tab or a line break; rename it'
    elif [[ ! -f $file || ! -r $file ]]; then
      why='no such file, or not readable; give the file of an output'
    elif [[ ! -s $file ]]; then
      why='it is empty; give the whole output of the client'
    elif [[ -n ${seen_files[$file]-} ]]; then
      why='it is given twice; give it once'
    fi
    if [[ -z $why ]]; then
      printf '%s\n' "$file" >>"$work/list"
      seen_files[$file]=1
    else
      printf 'import: %s:1: %s\n' "$file" "$why" >&2
      status=1
    fi
  done
  return "$status"
}
declare -A seen_files=()

# cut_outputs LIST: what import_outputs.awk finds in these files, to $work/cut; files without any output are named: 1.
cut_outputs() {
  mkdir "$work/cut"
  # Markdown has fences of code; -a, as outputs may hold any byte
  tr '\n' '\0' <"$1" | { LC_ALL=C xargs -0 grep -alE '^ {0,3}(```|~~~)' -- || true; } >"$work/docs"
  LC_ALL=C awk -v list="$1" -v docs="$work/docs" -v out="$work/cut" -f "$rooms/import_outputs.awk"
  LC_ALL=C awk -F '\t' '$2 == 0 { printf "import: %s:1: it is of no known tool; give the output of perftest, iperf, iperf3 -J, a cxi tool, MORI-IO or perch\n", $1 }' \
    "$work/cut/files" >"$work/unknown"
  import_jq -nR '[inputs | split("\t") | select(.[2] != "" and .[2] != "x") | {key: .[0], value: (.[2] | tonumber)}] | from_entries' \
    "$work/cut/files" >"$work/rates.json"
  cat "$work/unknown" >&2
  [[ ! -s $work/unknown ]]
}

# The documents of all outputs, in the order of the files. One program a tool, side by side: each is small and begins fast. 1 where
# a reader did not come to its end: fewer documents would look like fewer outputs.
documents() {
  local tool tools=() sorted status=0
  local -A readers=()
  for tool in perftest iperf iperf3 cxi mori perch; do
    [[ -s $work/cut/$tool ]] || continue
    tools+=("$tool")
    import_jq -nRc -f "$rooms/jq/import_$tool.jq" <"$work/cut/$tool" >"$work/cut/$tool.json" &
    readers[$tool]=$!
  done
  for tool in "${tools[@]}"; do
    wait "${readers[$tool]}" && continue
    printf 'import: reading the outputs of %s ended in the middle, so some of them are missing; see the message above, and import again\n' "$tool" >&2
    status=1
  done
  if ((${#tools[@]} == 1)); then
    cat "$work/cut/${tools[0]}.json"
  elif ((${#tools[@]} > 1)); then
    # each begins {"number":N, and each file is in order by itself
    sorted=("${tools[@]/#/$work/cut/}")
    LC_ALL=C sort -m -t : -k 2,2n "${sorted[@]/%/.json}" || status=1
  fi
  return "$status"
}
