# The run -> {junit, prom}, two texts. Input (-n): what gist.jq has made of the records; $verdict: --slurpfile; $head: --slurpfile of
# the plan's {created, suite, limits}, each null where the plan cannot be read.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "junit" as junit;
import "passed" as passed;
import "soak_prom" as soak_prom;
import "prom" as prom;
import "soak_words" as _;
import "format" as _;
import "digits" as _;
import "common" as _;
import "words" as _;

def sep: "\t";

# Where the figures stand in a row of each kind (passing.jq, transfer_rows.jq).
def names: ["count", "mean", "max", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "gbit_s"];
def at:
  { latency: [4, 6, 14, 8, 9, 10, 11, 12, 13, null], bandwidth: [null, null, null, null, null, null, null, null, null, 4],
    transfer: [15, 10, 16, 11, 17, 18, 12, 19, 20, 21] };
def figures($kind): . as $row | [names, [at[$kind][] | if . == null then null else $row[.] end]] | transpose | map({key: .[0], value: .[1]}) | from_entries;

def number: if test("^[0-9.]+$") then tonumber else null end;
# Transfers have a batch, and a pair of devices or their sum, which is never mixed with its parts.
def size_labels:
  split(sep)
  | {test: .[1], size_bytes: (.[2] | number)}
  + if .[0] != "transfer" then {} elif .[4] == "sum" then {batch: (.[3] | number), pair: "sum"} else {batch: (.[3] | number)} end;
def kind: .[:index(sep)];

# Groups of a pair of hosts and a size, or null where there are more than are written.
def groups($rows):
  reduce $rows[] as $r ({n: 0, of: null};
    if .n > prom::most_groups then .
    else
      ($r[0] + sep + $r[1] + sep + $r[2] + sep + ($r[3] | tostring)) as $key | .[$key] as $old
      | if $old == null then (.n + 1) as $n | setpath(["n"]; $n) | setpath([$key]; [$r]) else setpath([$key]; $old + [$r]) end
    end)
  | if .n > prom::most_groups then null
    else
      [ del(.n, .of)[] | .[0] as $r
        | { labels: ($r[0] | size_labels + {client: $r[1], server: $r[2], definition: $r[3]} + if kind == "transfer" and $r[22] != null then {pair: $r[22]} else {} end),
            rows: map(figures($r[0] | kind)) } ]
    end;

# Of each size [min, sum, count, max] over pairs and repeats. What one record lacks all lack: the others alone would flatter.
def sizes($rows; $metric):
  (names | index($metric)) as $i
  | ($rows | group_by(.[0]) | map({key: .[0][0], value: .}) | from_entries) as $by_place
  | reduce (reduce $rows[] as $r ({}; if has($r[0]) then . else setpath([$r[0]]; true) end) | keys_unsorted[]) as $place ([];
      ($place | size_labels) as $labels
      | at[$place | kind][$i] as $column
      | [$by_place[$place][] | if $column == null then null else .[$column] end] as $values
      | ([.[].labels] | index([$labels])) as $known
      | if $known == null then . + [{$labels, $values}] else .[$known].values += $values end)
  | .[] | select(all(.values[]; . != null))
  | {$metric, labels, value: (.values | [min, add, length, max])};

# "2026-11-21T08:04:12.350Z" -> seconds
def instant: if . == null then null else (sub("\\.[0-9]+Z$"; "Z") | fromdateiso8601) + (capture("(?<f>\\.[0-9]+)Z$").f // "0" | "0" + . | tonumber) end;

$verdict[0] as $verdict
| ($head[0] // {}) as $head
| [inputs] as $all
| ($all | passed::state) as $state
| ($all | passed::rows) as $rows
| [$state | passed::entries("time") | .[].value | select(.[0] != null)] as $run
| ($run | map(.[0]) | min | instant) as $began
| ($run | map(.[1]) | max | if . == null then null else (.[0] | instant) + .[1] end) as $ended
| {times: ($state | passed::entries("time") | map({key: .key[0], value: (.value[2] / 1e6)}) | from_entries)} as $times
| $head + $times
| .seconds = ([.times[]] | add)
| . as $about
| { junit: ($verdict | junit::document($about)),
    prom: (($verdict.soak | soak_prom::families) as $soak | $verdict | prom::document($about
      + { began: $began, ended: $ended, groups: groups($rows), sizes: [sizes($rows; "p50", "p99", "gbit_s")],
          moved: [ $state | passed::entries("trouble")[]
                   | {labels: {host: .key[0], device: (.key[1] | if . == "" then null else . end), counter: .key[2]}, value: .value[0]} ] }) + $soak) }
