# shellcheck shell=bash disable=SC2034  # bundle and verify, which source this, use what is not used here
# For bundle and verify: what a bundle is made like. Both must do this alike, for verify packs again what it unpacked.

# Names that may stand in a bundle: those of plans, hosts and flows, and nothing that climbs, hides or surprises.
readonly PATH_PATTERN='^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$'

# Of a host's files what is configuration: without what another moment would read otherwise.
# Each jq has its own spelling of a number that it only reads; what is calculated has one.
readonly CONFIGURATION='del(.idle, .collected, .later, .commands) | (.. | numbers) |= . + 0'

# describe ROOT COMMIT JQ: bundle.json of the run in ROOT, packed by that commit ("": unknown) with that jq
describe() {
  local file
  for file in "$1"/raw/*/environment.json "$1"/raw/*/host_check.json; do
    [[ ! -f $file ]] || printf '%s\t%s\n' "${file#"$1"/}" "$(jq -Sc "$CONFIGURATION" "$file" 2>/dev/null | sha256sum | cut -c -64)"
  done | jq -nR --arg commit "$2" --arg jq "$3" --slurpfile plan "$1/plan.json" --slurpfile verdict "$1/verdict.json" \
    --slurpfile tools <(jq -c .tool "$1/records.jsonl" | LC_ALL=C sort -u) '
    { schema: "perch.bundle/1", run: $plan[0].run, created: $plan[0].created, suite: $plan[0].suite.name, limits: $plan[0].limits,
      verdict: $verdict[0].verdict, scope: $verdict[0].scope,
      versions: {perch_commit: (if $commit == "" then null else $commit end), jq: $jq, tools: $tools},
      host_configuration: ([inputs | split("\t") | {key: .[0], value: .[1]}] | from_entries) }'
}

# list_files ROOT: what the manifest names, in its order
list_files() {
  (cd -- "$1" && find . -type f ! -path ./manifest.sha256 ! -path ./manifest.sha256.sig -printf '%P\n' | LC_ALL=C sort)
}

# pack ROOT: a tar whose bytes depend on names and contents alone
pack() {
  LC_ALL=C tar --create --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --directory="$(dirname "$1")" "$(basename "$1")"
}
