# shellcheck shell=bash disable=SC2154  # the scripts that source this have set work and perch_jq
# For judge and hosts: what host-check printed on all hosts is judged in one process an area, all at once.

# host_findings <READ >HOSTS: READ is what jq/hosts.jq or jq/hosts_asked.jq print: the hosts, then a line for each answer.
host_findings() {
  local area
  local -a pids=()
  cat >"$work/read.jsonl"
  head -n 1 "$work/read.jsonl" >"$work/read.json"
  tail -n +2 "$work/read.jsonl" >"$work/answers.jsonl"
  for area in machine nic qos slingshot; do
    : >"$work/area-$area.json"
    # most runs have no Slingshot, and runs of before no answers
    grep -q "^{\"areas\":\[[^]]*\"$area\"" "$work/answers.jsonl" || continue
    perch_jq -nc -f "$rooms/jq/area_$area.jq" "$work/answers.jsonl" >"$work/area-$area.json" &
    pids+=("$!")
  done
  for area in "${pids[@]}"; do wait "$area" || return; done
  cat "$work"/area-{machine,nic,qos,slingshot}.json | perch_jq -nc --slurpfile hosts "$work/read.json" -f "$rooms/jq/hosts_judged.jq"
}
