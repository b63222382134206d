# shellcheck shell=bash disable=SC2154  # judge, which sources this, has set work, rooms, perch_jq and regular_only
# For judge: a soak (plan.json has `soak`). The lines of each flow's client.soak and each host's samples -> intervals.jsonl, one digest of
# each (soak_read.jq, soak_sample.jq), and from these the verdict's section and checks (soak.jq).

is_soak() { jq -e '.soak | type == "object"' "$work/plan.json" >/dev/null; }

# What a share of the flows needs of plan and hosts; the moment at which the soak began is the earliest that a host's agent or a flow of the first round tells.
soak_facts() {
  jq -r '.rounds[:1][].flows[] | "raw/\(.client)/flows/\(.id)/client.soak"' "$work/plan.json" | regular_only |
    LC_ALL=C awk '{ path = $0; if ((getline line < path) > 0 && match(line, /"started_ms":[0-9]+/)) print substr(line, RSTART + 13, RLENGTH - 13); close(path) }' |
    LC_ALL=C sort -n | sed -n 1p >"$work/soak/first"
  perch_jq -c -n --rawfile first "$work/soak/first" --slurpfile plan "$work/plan.json" --slurpfile known "$work/known.json" -f "$rooms/jq/soak_facts.jq" >"$work/soak/facts.json"
}

# soak_lines FLOWS TEXT: the lines of each flow of the list, and what is written to intervals.jsonl of them into TEXT, both line by line alike.
# A list's lines are "client.soak<TAB>client.stdout<TAB>members of each line". Lines that the disk did not take are on standard output.
soak_lines() {
  LC_ALL=C awk -F '\t' -v epoch="$(jq -r .epoch "$work/soak/facts.json")" -v text="$2" -v irregular="$work/irregular" '
    BEGIN { while ((getline path < irregular) > 0) odd[path] }
    function safe(path,  at) {
      for (at = path; at != ""; ) { if (at in odd) return 0; if (!sub("/[^/]*$", "", at)) break }
      return 1
    }
    function take(line) {
      n++
      if (substr(line, 1, 1) != "{") line = "?" line
      # the texts of histograms are nine tenths of all bytes, and stay in raw/
      if ((at = index(line, "\"histogram\":{")) && (end = index(substr(line, at), "}")))
        line = substr(line, 1, at + 11) "null" substr(line, at + end)
      print line
      if (line ~ /^[{]"schema":"perch.record\/1","kind":"(bandwidth|latency)"/) { whole = line; print "@" >text }
      else {
        # those two kinds of line say themselves who client and server are
        members = $3
        if (line ~ /"kind":"(soak|connection)"/) sub(/,"client":"[^"]*","server":"[^"]*"/, "", members)
        printf "{%s,\"line\":%d,\"soak_s\":%s,%s\n", members, n, begun, substr(line, 2) >text
      }
    }
    {
      n = 0; begun = "null"; whole = ""; differs = ""; printed = ""
      if (safe($1)) {
        while ((getline line < $1) > 0) {
          if (n == 0 && match(line, /"started_ms":[0-9]+/)) begun = sprintf("%.3f", substr(line, RSTART + 13, RLENGTH - 13) / 1000 - epoch)
          take(line)
        }
        close($1)
      }
      lines = n
      if (safe($2)) {
        while ((getline line < $2) > 0) {
          if (whole == "") take(line)
          else printed = line
        }
        close($2)
      }
      if (printed != "" && (at = index(printed, "\"histogram\":{")) && (end = index(substr(printed, at), "}")))
        printed = substr(printed, 1, at + 11) "null" substr(printed, at + end)
      print "@ " lines " " (printed != "" && printed != whole ? "differs" : "same")
      print "@" >text
    }' "$1"
}

# soak_share DIR: the digests of its flows
# shellcheck disable=SC2317  # side_by_side calls it
soak_share() {
  local facts
  facts=$(<"$work/soak/facts.json")
  case $1 in
    */flows-*)
      soak_lines "$1/list" "$1/text" |
        perch_jq -c -n -R --slurpfile flows "$1/flows.json" --slurpfile limits "$work/limits.json" --argjson facts "$facts" \
          -f "$rooms/jq/soak_read.jq" >"$1/told" &&
        # lines that cannot be used are named, and not handed on
        jq -r '.unusable // [] | .[]' "$1/told" >"$1/unusable" &&
        LC_ALL=C awk 'FILENAME == ARGV[1] { bad[$0]; next } substr($0, 1, 1) != "@" && !(FNR in bad)' "$1/unusable" "$1/text" >"$1/intervals" || return
      ;;
    *)
      soak_samples "$1" | perch_jq -r -n -R --arg host "$(<"$1/host")" --argjson facts "$facts" -f "$rooms/jq/soak_sample.jq" >"$1/text" &&
        sed 's/^#//' "$1/text" | perch_jq -c -n --arg host "$(<"$1/host")" --slurpfile limits "$work/limits.json" --argjson facts "$facts" \
          -f "$rooms/jq/soak_host.jq" >"$1/told" &&
        sed '/^#/d' "$1/text" >"$1/intervals" || return
      ;;
  esac
  rm -f "$1/text"
}

soak_samples() {
  local path
  path=$(printf 'raw/%s/samples.jsonl\n' "$(<"$1/host")" | regular_only)
  [[ -z $path || ! -r $path ]] || cat -- "$path"
}

# Shares of the flows, as many as processors, each test between two hosts whole; and one of each host.
soak_cut() {
  local host n=0 part
  perch_jq -r -n --argjson shares "$(nproc)" --slurpfile plan "$work/flows.json" -f "$rooms/jq/soak_shares.jq" | LC_ALL=C awk -F '\t' -v dir="$work/soak/parts/flows-" '
    { share = $1; sub(/^[^\t]*\t/, ""); if (!(share in made)) { made[share]; system("mkdir -p " dir share) }
      if (/^\{/) print >(dir share "/flows.raw"); else print >(dir share "/list") }'
  for part in "$work"/soak/parts/flows-*; do jq -s -c . "$part/flows.raw" >"$part/flows.json" && rm "$part/flows.raw"; done
  while read -r host; do
    n=$((n + 1))
    part=$work/soak/parts/host-$(printf '%05d' "$n")
    mkdir -p "$part"
    printf '%s\n' "$host" >"$part/host"
  done < <(jq -r '.hosts | keys_unsorted[]' "$work/plan.json")
}

# judge_soak: into $work/soak.json {soak, checks}, and $work/intervals.jsonl
judge_soak() {
  echo '{"checks":[]}' >"$work/soak.json"
  is_soak || return 0
  mkdir -p "$work/soak/parts"
  : | regular_only
  jq -c -s '{run: .[0].run, soak: .[0].soak, rounds: [.[].rounds[]]}' "$work"/parts/*/plan.json >"$work/flows.json"
  soak_facts && soak_cut && side_by_side soak_share "$work/soak/parts" || return
  cat "$work"/soak/parts/*/intervals >"$work/intervals.jsonl"
  cat "$work"/soak/parts/*/told | perch_jq -n -c --slurpfile plan "$work/plan.json" --slurpfile limits "$work/limits.json" --argjson facts "$(<"$work/soak/facts.json")" \
    -f "$rooms/jq/soak.jq" >"$work/soak.json"
}
