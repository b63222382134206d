# shellcheck shell=bash disable=SC2154  # run sets them
# Healthy runs, none of which may fail, and the same with rates taken away, which must: healthy/generate.jq makes them.

# generate DIR SEED [WEAK]: a run's files, laid out by one jq and one awk
generate() {
  local dir=$1 stream=$1.stream
  mkdir -p "$dir/inputs"
  jq -nr --slurpfile pool "$here/healthy/pool.json" --argjson seed "$2" --argjson weak "${3:-null}" -f "$here/healthy/generate.jq" >"$stream"
  cut -f 1 "$stream" | uniq | sed "s|^|$dir/|; s|/[^/]*\$||" | sort -u | xargs -d '\n' mkdir -p
  LC_ALL=C awk -v dir="$dir/" '{ tab = index($0, "\t"); path = dir substr($0, 1, tab - 1)
    if (path != last) { close(last); last = path } print substr($0, tab + 1) >path }' "$stream"
  rm -- "$stream"
  cp -- "$work/limits.json" "$dir/inputs/limits.json"
}

# The set roce, with what a site would ask beside it.
healthy_limits() {
  mkdir -p "$work/set" && (cd "$work/set" && limits_of roce) && jq -c -f "$here/healthy/limits.jq" "$work/set/inputs/limits.json" >"$work/limits.json"
}

# What is taken away: of one pair's writes, of all writes. The checks named are those that must say so.
readonly ONE_PAIR='^write-bandwidth/gamma/delta/'
readonly ALL_PAIRS='^(write|steady)-bandwidth/'

# judge_run NAME: made, judged, and gone; its verdict and what speaks against it remain
judge_run() {
  local name=$1 dir=$work/runs/$1 seed percent weak=null code=0
  IFS=- read -r _ seed percent <<<"$name"
  case $name in
    one-*) weak="{\"factor\": $percent, \"flows\": \"$ONE_PAIR\"}" ;;
    all-*) weak="{\"factor\": $percent, \"flows\": \"$ALL_PAIRS\"}" ;;
  esac
  mkdir -p "$work/runs"
  generate "$dir" "$seed" "$weak"
  "$top/reports/judge" "$dir" >"$dir.said" 2>&1 || code=$?
  jq -r --arg code "$code" '[.verdict + (if {PASS: "0", FAIL: "1", INCONCLUSIVE: "3"}[.verdict] == $code then "" else "?" end),
    ([.checks[] | select(.status == "fail" or .status == "inconclusive") | .id] | join(" "))] | @tsv' "$dir/verdict.json" >"$dir.word" || :
  rm -rf -- "$dir"
}

declare -A count=() against=()
# counted KIND WORD: so many runs of that kind have this verdict
counted() {
  local key=${1}_$2
  echo "${count[$key]-0}"
}
# count_run NAME: by group (what stands before the first "-", and the strength) and verdict
count_run() {
  local word=none ids='' kind
  IFS=$'\t' read -r word ids <"$work/runs/$1.word" || :
  kind=${1%%-*}-${1##*-}
  count[${kind}_$word]=$((${count[${kind}_$word]-0} + 1))
  count[${kind}_all]=$((${count[${kind}_all]-0} + 1))
  [[ $kind != healthy-1 || $word == PASS ]] || printf '# healthy run %s is %s: %s\n' "$1" "$word" "$ids"
  [[ $kind == healthy-1 ]] || against[$1]=$ids
  ((${count[${kind}_all]} % 20)) || printf '# %s: %d judged\n' "$kind" "${count[${kind}_all]}"
}

healthy_tests() { echo $((healthy > 0 ? 3 : 0)); }

# weakened NAME CHECK TEXT: that run failed, by that check
weakened() {
  local fails=false
  [[ $(counted "${1%%-*}-${1##*-}" FAIL) -eq 1 && " ${against[$1]} " == *" $2 "* ]] && fails=true
  told "$fails" "$3: flips to FAIL ($2)" "what spoke against it: ${against[$1]}"
}

healthy_runs() {
  ((healthy)) || return 0
  local -a runs
  mapfile -t runs < <(for ((seed = 1; seed <= healthy; seed++)); do echo "healthy-$seed-1"; done)
  side_by_side judge_run count_run "${runs[@]}" one-1-0.8 all-1-0.8
  local fail open pass well=false
  fail=$(counted healthy-1 FAIL) open=$(counted healthy-1 INCONCLUSIVE) pass=$(counted healthy-1 PASS)
  ((fail == 0 && pass + open == healthy)) && well=true
  told "$well" "of $healthy healthy runs $fail fail, $open are inconclusive, $pass pass"
  weakened one-1-0.8 limit/site-peers/write-bandwidth "the writes of one pair of ten at 80 %"
  weakened all-1-0.8 limit/large-message-share/write-bandwidth "all writes at 80 %"
}

# How many runs of each strength fail: shown and recorded, and no test, as there is no line between a fault and noise.
power_runs() {
  ((power)) || return 0
  local group percent seed fail
  local -a runs=()
  for group in one all; do
    for percent in 0.95 0.9 0.85 0.8; do
      for ((seed = 1001; seed <= 1000 + power; seed++)); do runs+=("$group-$seed-$percent"); done
    done
  done
  count=()
  side_by_side judge_run count_run "${runs[@]}"
  : >"$work/power.tsv"
  for group in one all; do
    for percent in 0.95 0.9 0.85 0.8; do
      fail=$(counted "$group-$percent" FAIL)
      printf '# power: %s at %s: %d of %d fail\n' "$group" "$percent" "$fail" "$power"
      printf '%s\t%s\t%d\t%d\n' "$group" "$percent" "$fail" "$power" >>"$work/power.tsv"
    done
  done
  [[ -z $keep ]] || cp -- "$work/power.tsv" "$here/healthy/power.tsv"
}
