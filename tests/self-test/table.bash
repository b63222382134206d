# shellcheck shell=bash disable=SC2154  # run sets them
# docs/self-test.md: head.md, then the list of faults.

row() { printf '| %s |\n' "$(IFS='|' && printf '%s' "$*" | sed 's/|/ | /g')"; }

code() { printf '`%s` ' "$@" | sed 's/ $//'; }

table() {
  local i named
  cat "$here/head.md"
  row fault "good run" verdict "named check" "flips beside it"
  row --- --- --- --- ---
  for i in "${!ids[@]}"; do
    read -ra named <<<"${checks[i]}"
    row "${titles[i]}" "${bases[i]}" "${words[i]}" "$(code "${named[0]}")" "$( ((${#named[@]} < 2)) || code "${named[@]:1}")"
  done
}
