# shellcheck shell=bash disable=SC2154  # rooms, work: reports/import has set them
# A run of outputs that were measured elsewhere: DIR/raw/import/ (copies), DIR/plan.json, DIR/inputs/limits.json.

# YAML's last key of a name would win in silence, and a bound be another than the one that stands above it.
readonly ONE_KEY_EACH='
import json, sys, yaml
class Loader(yaml.SafeLoader):
    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                sys.exit(f"line {node.start_mark.line + 1}: the key {key} stands there twice")
        return super().construct_mapping(node, deep)
json.dump(yaml.load(open(sys.argv[1]), Loader), sys.stdout, indent=4)'

# A set of limits is YAML, which only Python reads here; judging needs none of it.
limits_json() {
  local file=$1 python
  [[ -f $file ]] || file=$rooms/limits/$1.yml
  [[ -f $file && -r $file ]] || die 2 "no set of limits $1; give a name of reports/limits without its ending, or a file"
  if [[ $file != *.yml && $file != *.yaml ]]; then
    jq . "$file" 2>"$work/error" || die 2 "$file is no JSON: $(head -n 1 "$work/error")"
    return
  fi
  for python in "${PERCH_PYTHON:-$rooms/../.venv/bin/python3}" python3; do
    if "$python" -c 'import yaml' 2>/dev/null; then
      "$python" -c "$ONE_KEY_EACH" "$file" 2>"$work/error" |
        jq . || die 2 "$file is no YAML: $(tail -n 1 "$work/error")"
      return
    fi
  done
  die 2 "$file is YAML and no python3 here reads it; install the package python3-yaml, or give the limits as JSON (inputs/limits.json of a run has them)"
}

# Copies of the listed files to $1/raw/import, each under a name of its own; writes $work/copies and the names' table.
copy_files() {
  local file name n
  local -A taken=()
  while IFS= read -r file; do
    name=${file##*/}
    name=${name//[^A-Za-z0-9._-]/-}
    name=${name#.}
    for ((n = 2; ${#taken[$name]}; n++)); do name=$n-${file##*/} && name=${name//[^A-Za-z0-9._-]/-}; done
    taken[$name]=1
    cp -- "$file" "$1/raw/import/$name" || die 6 "$file cannot be copied to $1/raw/import"
    printf '%s\n' "raw/import/$name" >>"$work/copies"
    printf '%s\t%s\n' "raw/import/$name" "$file" >>"$work/named"
  done <"$work/list"
}

# make_run DIR LIMITS RATE: 1 where an output could not be read; the run then owes it, and cannot pass.
make_run() {
  local dir=$1 limits=$2 rate=$3 parent name status=0 half
  parent=$(dirname -- "$dir")
  name=$(basename -- "$dir")
  [[ $name =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ ]] || die 2 "$name is no name of a run; use letters, digits, points, dashes and underscores"
  [[ -z $limits ]] || limits_json "$limits" >"$work/limits.json" || exit 2
  { mkdir -p -- "$parent" && half=$(mktemp -d -- "$parent/.import.XXXXXX") && half=$(cd -- "$half" && pwd); } || die 6 "$parent is not writable"
  # shellcheck disable=SC2064  # now, not later
  trap "rm -rf -- '$work' '$half'" EXIT
  chmod 755 "$half" # as a folder is made, not as mktemp makes it
  mkdir -p "$half/raw/import" "$half/inputs"
  copy_files "$half"
  [[ -z $limits ]] || cp "$work/limits.json" "$half/inputs/limits.json"

  cd -- "$half" || exit 6
  cut_outputs "$work/copies" 2>/dev/null || {
    LC_ALL=C awk -F '\t' 'NR == FNR { given[$1] = $2; next } $2 == 0 { printf "import: %s:1: it is of no known tool; leave it out, or give an output\n", given[$1] }' \
      "$work/named" "$work/cut/files" >&2
    die 1 "no run was made: all of it must be of known tools"
  }
  import_jq -nR '[inputs | split("\t")]' "$work/cut/files" >"$work/files.json"
  import_jq -nR '[inputs | split("\t") | {key: .[0], value: .[1]}] | from_entries' "$work/named" >"$work/names.json"
  limits=${limits##*/}
  limits=${limits%.*}
  documents |
    import_jq -n --arg run "$name" --arg created "$(date -u +%Y-%m-%dT%H:%M:%SZ)" --arg limits "${limits:-none}" --argjson rate "$rate" \
      --slurpfile files "$work/files.json" --slurpfile names "$work/names.json" -f "$rooms/jq/import_plan.jq" >"$work/plan.json"
  jq -r '.faults[], (.refused[] | "import: " + .)' "$work/plan.json" >&2
  jq -e '.refused == []' "$work/plan.json" >/dev/null || die 1 "no run was made"
  jq -e '.faults == []' "$work/plan.json" >/dev/null || status=1
  jq .plan "$work/plan.json" >plan.json
  cd - >/dev/null || exit 6
  # mv would move into a folder that came meanwhile
  { mv -T -n -- "$half" "$dir" && [[ ! -e $half ]]; } || die 6 "$dir exists or cannot be made"
  printf '%s\n' "$dir: $(jq '[.rounds[].flows[]] | length' "$dir/plan.json") outputs, from files: $(wc -l <"$work/copies"); judge it: reports/judge $dir"
  return "$status"
}
