# Transfers of the records, by test, size and batch: of all pairs of devices together (kind sum) and of each (kind transfer).
# Bandwidth is in GB/s, 10^9 bytes a second, as other benchmarks of transfers print it.
import "ceiling" as ceiling;
import "common" as c;
import "comparison" as comparison;

def sep: "\t";

def is_transfer: .kind == "transfer" or .kind == "sum";

# ---- while the records pass (passing.jq) -----------------------------------------------------------------------------

# The last one is not shown in tables.
def columns: ["peak_gbyte_s", "gbyte_s", "min", "mean", "p50", "p99", "transfers_per_s", "ceiling_gbyte_s"];

def gbyte_s: if c::is_finite then . / 8 else null end;

def figures:
  [ (.bandwidth.peak_gbit_s | gbyte_s), (.bandwidth.gbit_s | gbyte_s),
    (.latency_us | .min, .mean, .p50, .p99), .bandwidth.messages_per_s,
    (ceiling::of_record | gbyte_s) ];

def about:
  .params
  | { queue_pairs, threads, devices, consecutive, session, stride_bytes, chunk_bytes, cross_rail, memory, verify };

def pair_name: if .kind == "sum" then "sum" else .transfer.pair // 0 | tostring end;

# As passing.jq's rows; behind the definition the flow, both devices, the figures, and what other programs are told besides.
def row:
  [ (["transfer", .test, (.params | .size_bytes, .batch | tostring), pair_name] | join(sep)), .client.host, .server.host, .definition,
    .flow, .client.device, .server.device ] + figures + [(.latency_us | .count, .max, .p90, .p95, .p99_9, .p99_99), .bandwidth.gbit_s, .transfer.pair];

# ---- rows -> what was measured --------------------------------------------------------------------------------------

# [{parts: [kind, test, size, batch, pair], flow, devices, value}]; of what stands twice for one flow, the last
def entries:
  map({parts: (.[0] | split(sep)), flow: .[4], devices: .[5:7], value: .[7:7 + (columns | length)]})
  | reduce .[] as $e ({}; .[$e.parts + [$e.flow] | join(sep)] = $e) | [.[]];

# Median over host pairs and repeats; the least of all least times.
def merged:
  . as $rows
  | [ range(0; columns | length) as $i | columns[$i] as $name
      | { key: $name,
          value: ($rows | map(.[$i])
                  | if $name == "min" then map(select(. != null)) | min else comparison::median end) } ]
  | from_entries;

# Of one size and batch: {size_bytes, batch, records, sum, pairs: [{pair, ...}]}. Where nobody measured a sum, the only
# pair is all there is.
def point:
  (.[0].parts[2] | tonumber) as $size | (.[0].parts[3] | c::attempt(tonumber; null)) as $batch
  | (group_by(.parts[4]) | map({name: .[0].parts[4], records: length, figures: (map(.value) | merged)})) as $groups
  | ([$groups[] | select(.name != "sum") | {pair: (.name | tonumber)} + .figures] | sort_by(.pair)) as $pairs
  | first($groups[] | select(.name == "sum").figures) // (if ($pairs | length) == 1 then $pairs[0] else null end)
  | { size_bytes: $size, batch: $batch, records: ($groups | map(.records) | max), sum: ., $pairs };

# Entries -> {test: {sizes: points, devices: {pair: [initiator, target], null where hosts differ}}}
def by_test:
  (map(select(.parts[4] != "sum")) | group_by(.parts[1])
     | map({ key: .[0].parts[1],
             value: (group_by(.parts[4])
                     | map({key: .[0].parts[4], value: (map(.devices) | unique | if length == 1 then .[0] else null end)})
                     | from_entries) })
     | from_entries) as $devices
  | group_by(.parts[1])
  | map({ key: .[0].parts[1],
          value: { sizes: (group_by(.parts[2:4]) | map(point) | sort_by(.size_bytes, .batch)),
                   devices: ($devices[.[0].parts[1]] // {}) } })
  | from_entries;
