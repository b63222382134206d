# shellcheck shell=bash disable=SC2154  # run sets them
# docs/self-test.md: head.md, then the list of faults.

row() { printf '| %s |\n' "$(IFS='|' && printf '%s' "$*" | sed 's/|/ | /g')"; }

code() { printf '`%s` ' "$@" | sed 's/ $//'; }

# How many of the weakened runs fail, as --power --keep left it.
power_table() {
  local group percent fail of
  row "what is slower" "at 95 %" "at 90 %" "at 85 %" "at 80 %"
  row --- ---: ---: ---: ---:
  for group in one all; do
    local -a cells=("$([[ $group == one ]] && echo "one pair of ten" || echo "all pairs")")
    for percent in 0.95 0.9 0.85 0.8; do
      read -r fail of < <(awk -F '\t' -v g="$group" -v p="$percent" '$1 == g && $2 == p { print $3, $4 }' "$here/healthy/power.tsv")
      cells+=("$fail of $of")
    done
    row "${cells[@]}"
  done
}

table() {
  local i named
  sed '/^POWER$/,$d' "$here/head.md"
  power_table
  sed '1,/^POWER$/d' "$here/head.md"
  row fault "good run" verdict "named check" "flips beside it"
  row --- --- --- --- ---
  for i in "${!ids[@]}"; do
    read -ra named <<<"${checks[i]}"
    row "${titles[i]}" "${bases[i]}" "${words[i]}" "$(code "${named[0]}")" "$( ((${#named[@]} < 2)) || code "${named[@]:1}")"
  done
}
