# One pass over the records for the report: every figure that is shown, kept by test and size. The state is flat and
# each update one setpath, for the reason given in tally.jq.
import "common" as c;
import "ceiling" as ceiling;
import "comparison" as comparison;
import "figures" as figures;
import "anomaly_rows" as anomaly_rows;
import "interval_view" as interval_view;
import "path_view" as path_view;
import "transfer_rows" as transfer_rows;

def sep: "\t";

def latency_columns: ["count", "min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"];
def bandwidth_columns:
  ["gbit_s", "min_interval_gbit_s", "peak_gbit_s", "messages_per_s", "client_s_per_gb", "server_s_per_gb", "retransmissions",
   "messages", "ceiling_gbit_s"];

# Whole messages of the measured time.
def messages: .params.size_bytes as $size | if .bandwidth.bytes == null or ($size // 0) <= 0 then null else .bandwidth.bytes / $size | round end;

def figures:
  . as $r
  | if .latency_us != null then [$r.latency_us[latency_columns[]]]
    elif .bandwidth != null then
      [ .bandwidth.gbit_s, .bandwidth.min_interval_gbit_s, .bandwidth.peak_gbit_s, .bandwidth.messages_per_s,
        .cpu.client_s_per_gb, .cpu.server_s_per_gb, comparison::retransmissions, messages, ceiling::of_record ]
    else null
    end;

def about:
  { kind: (if transfer_rows::is_transfer then "transfer" else .kind end),
    definition, completion_level, completion: .params.completion, backend, provider, op, tool: .tool.name,
    version: .tool.version, bidirectional: .params.bidirectional, layer: .link.layer, mtu_bytes: .link.mtu_bytes,
    rate_gbit_s: .link.rate_gbit_s, histogram_unit: .histogram.unit, initial_rtt_us: .tcp.initial_rtt_us,
    window_bytes: .tcp.window_bytes, peak_definition: .bandwidth.peak_definition, connection, scope,
    asked: (.params | {queue_pairs, outstanding, iterations, duration_s, inline_bytes, memory, verify, traffic_class, sl, gid_index, gap_us}) }
  + if transfer_rows::is_transfer then {transfer: transfer_rows::about} else {} end;

# Where a flow's packets were counted by its RDMA devices, the whole flow's: every record of it carries the same.
def packets: select(.packets != null) | [(["packets", .test, .flow] | join(sep)), .packets];

# What a test is, and what figures of two runs must have in common (figures.jq): of its first record, as all of a test are asked
# alike. Made only then: it takes longer than all else.
def first_ones: . as $record | ("about", "terms") as $what | [$what + sep + .test, $record, "first"];

# What a flow said of its ends and their link: what ceilings are computed from.
def ends:
  .link as $link
  | (.client, .server) | select(.device != null)
  | [(["end", .host, .device, ($link.layer // "-"), ($link.rate_gbit_s // "-" | tostring), ($link.mtu_bytes // "-" | tostring)] | join(sep)), true];

def updates:
  ends, path_view::updates, anomaly_rows::updates, interval_view::updates, packets,
  if .status != "ok" then empty
  elif transfer_rows::is_transfer then first_ones, transfer_rows::updates
  else first_ones,
       [(["row", .test, (.params.size_bytes | tostring), .flow] | join(sep)), figures]
  end;

# An update may carry a rank as its third: of all that have its key, the one of the least rank stays. Of "first" ones the first.
def collect(records):
  reduce (records | updates) as $u ({};
    .[$u[0]] as $old
    | if $u[2] == null then setpath([$u[0]]; $u[1])
      elif $u[2] == "first" then
        if $old != null then .
        elif $u[0] | startswith("about") then setpath([$u[0]]; $u[1] | about)
        else setpath([$u[0]]; $u[1] | figures::terms) end
      elif $old == null then setpath([$u[0]]; $u[1] + {rank: $u[2]})
      elif $u[2] < $old.rank then setpath([$u[0]]; $u[1] + {rank: $u[2]})
      else . end);

# The median stands for repeats and pairs; extremes are those of all of them, and so is the count of samples.
def column_value($name):
  if $name == "min" or $name == "min_interval_gbit_s" then map(select(. != null)) | min
  elif $name == "max" or $name == "peak_gbit_s" then map(select(. != null)) | max
  elif $name == "count" or $name == "messages" then map(select(. != null)) | add
  else comparison::median
  end;

# The worst pair and repeat, for what must hold for each of them; null where one of them does not tell it.
def whole(worst): if any(.[]; . == null) then null else worst end;
def worst($columns):
  ($columns | [index("p50"), index("p99"), index("gbit_s"), index("ceiling_gbit_s")]) as [$p50, $p99, $rate, $ceiling]
  | if $p50 != null then {p50: (map(.[$p50]) | whole(max)), p99: (map(.[$p99]) | whole(max))}
    else {of_ceiling: (map(if .[$rate] == null or .[$ceiling] == null then null else 100 * .[$rate] / .[$ceiling] end) | whole(min))} end;

def summarise($columns):
  . as $rows
  | [range(0; $columns | length) as $i | {key: $columns[$i], value: ($rows | map(.[$i]) | column_value($columns[$i]))}]
  | from_entries + {worst: ($rows | worst($columns))};

def columns: if . == "latency" then latency_columns else bandwidth_columns end;

# State -> {test: [{parts, value}]}, parts: of the key, ["row", test, size, flow]
def rows:
  [to_entries[] | select(.key | startswith("row" + sep)) | {parts: (.key | split(sep)), value}]
  | group_by(.parts[1]) | map({key: .[0].parts[1], value: .}) | from_entries;

# State -> {test: {about, sizes: [{size_bytes, records, columns...}]}}; of transfers, sizes are transfer_rows' points.
# $rows: what rows made of it.
def by_test($rows):
  . as $state
  | [$rows[]]
  | map( .[0].parts[1] as $test
         | $state["about" + sep + $test] as $about
         | { key: $test,
             value: { about: $about,
                      sizes: (group_by(.parts[2] | c::attempt(tonumber; -1))
                              | map({size_bytes: (.[0].parts[2] | c::attempt(tonumber; null)), records: length}
                                    + (map(.value) | summarise($about.kind | columns)))) } })
  | from_entries
  | . + ($state | transfer_rows::by_test | with_entries(.value.about = $state["about" + sep + .key]));
def by_test: rows as $rows | by_test($rows);
