# The run -> {junit, prom}, two texts. Input (-n): the records, one by one; $verdict: --slurpfile; $head: --slurpfile of the
# plan's {created, suite, limits}, each null where the plan cannot be read. One pass, with the flat state of tally.jq.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "counters" as counters;
import "junit" as junit;
import "format" as _;
import "digits" as _;
import "common" as _;
import "words" as _;
import "prom" as prom;

def sep: "\t";

def figures:
  (if .latency_us != null then .latency_us | {count, mean, max, p50, p90, p95, p99, p99_9, p99_99} else {} end)
  + (if .bandwidth != null then {gbit_s: .bandwidth.gbit_s} else {} end);

# Transfers have a batch, and a pair of devices or their sum, which is never mixed with its parts.
def size_labels:
  {test, size_bytes: .params.size_bytes}
  + if .kind == "transfer" then {batch: .params.batch} elif .kind == "sum" then {batch: .params.batch, pair: "sum"} else {} end;
def group_labels:
  size_labels + {client: .client.host, server: .server.host, definition}
  + if .kind == "transfer" then {pair: .transfer.pair} else {} end;

# Counters are the flow's, and stand on each of its records: a flow counts once for each.
def moved:
  .flow as $flow | . as $r
  | ("client", "server") as $role | $r[$role].host as $host
  | .counters[$role] // {} | keys_unsorted[] as $k | .[$k]
  | if type == "object" then
      keys_unsorted[] as $counter | select(.[$counter] != null and .[$counter] > 0 and ($counter | counters::is_trouble))
      | {device: $k, $counter, value: .[$counter]}
    else select(. != null and . > 0 and ($k | counters::is_trouble)) | {device: null, counter: $k, value: .} end
  | [(["moved", $host, .device // "", .counter] | join(sep)), "moved", {flow: $flow, labels: {host: $host, device, counter}, value}];

# Updates [key, kind, data]; each kind has its way of folding data in. Keys are joined, not encoded: only names that the schemas
# bound go into those that every record has.
def metrics: ["p50", "p99", "gbit_s"];

def updates:
  (select(.elapsed_s != null) | ["time" + sep + .test, "time", [.started, .elapsed_s]]),
  moved,
  ( select(.status == "ok") | figures as $figures
    | ([.test, .params.size_bytes, .params.batch, .kind == "sum"] | map(tostring) | join(sep)) as $size
    | [(["group", $size, .client.host, .server.host, .definition, (.transfer.pair | tostring)] | join(sep)), "group", {labels: group_labels, rows: $figures}],
      ["size" + sep + $size, "size", {labels: size_labels, values: ($figures | [.[metrics[]]])}] );

# Of one metric's [min, sum, count, max]. Null of a record makes it null for good: the other records alone would flatter.
def folded_figure($x): if . == null or $x == null then null else [([.[0], $x] | min), .[1] + $x, .[2] + 1, ([.[3], $x] | max)] end;

# of old value, or null
def folded($kind; $data):
  if $kind == "time" then
    if . == null then {first: $data[0], last: $data, sum: $data[1]}
    else {first: ([.first, $data[0]] | map(select(. != null)) | min), last: ([.last, $data] | max), sum: (.sum + $data[1])} end
  elif $kind == "moved" then
    if . == null then $data elif .flow == $data.flow then . else $data + {value: (.value + $data.value)} end
  elif $kind == "size" then
    if . == null then $data + {values: [$data.values[] | if . == null then null else [., ., 1, .] end]}
    else {labels, values: [range(0; 3) as $i | .values[$i] | folded_figure($data.values[$i])]} end
  elif . == null then $data + {rows: [$data.rows]}
  else {labels, rows: (.rows + [$data.rows])}
  end;

# As in tally.jq: the brackets make jq finish with the old value before the state is touched, which is then changed in place.
def apply($u): .[$u[0]] as $old | [$old | folded($u[1]; $u[2])] as $new | setpath([$u[0]]; $new[0]);

# Groups are counted, and above their cap no more of them are kept.
def fold($u):
  if $u[1] != "group" or has($u[0]) then apply($u)
  elif .groups < prom::most_groups then (.groups + 1) as $n | setpath(["groups"]; $n) | apply($u)
  else setpath(["over"]; true) end;

def of_kind($kind): to_entries[] | select(.key | startswith($kind + sep)) | .value;
# "2026-11-21T08:04:12.350Z" -> seconds
def instant: if . == null then null else (sub("\\.[0-9]+Z$"; "Z") | fromdateiso8601) + (capture("(?<f>\\.[0-9]+)Z$").f // "0" | "0" + . | tonumber) end;

$verdict[0] as $verdict
| ($head[0] // {}) as $head
| (reduce (inputs | updates) as $u ({groups: 0}; fold($u))) as $state
| [$state | of_kind("time") | select(.first != null)] as $run
| ($run | map(.first) | min | instant) as $began
| ($run | map(.last) | max | if . == null then null else (.[0] | instant) + .[1] end) as $ended
| {times: ($state | with_entries(select(.key | startswith("time" + sep)) | {key: .key[5:], value: .value.sum}))} as $times
| $head + $times
| .seconds = ([.times[]] | add)
| . as $about
| { junit: ($verdict | junit::document($about)),
    prom: ($verdict | prom::document($about
      + { began: $began, ended: $ended,
          groups: (if $state.over then null else [$state | of_kind("group")] end),
          sizes: [range(0; 3) as $i | $state | of_kind("size") | {metric: metrics[$i], labels, value: .values[$i]} | select(.value != null)],
          moved: [$state | of_kind("moved")] })) }
