# One pass over the records for the report: every figure that is shown, kept by test and size. The state is flat and
# each update one setpath, for the reason given in tally.jq.
import "common" as c;
import "comparison" as comparison;
import "path_view" as path_view;
import "transfer_view" as transfer_view;

def sep: "\t";

def latency_columns: ["count", "min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"];
def bandwidth_columns:
  ["gbit_s", "min_interval_gbit_s", "peak_gbit_s", "messages_per_s", "client_s_per_gb", "server_s_per_gb", "retransmissions"];

def figures:
  . as $r
  | if .latency_us != null then [$r.latency_us[latency_columns[]]]
    elif .bandwidth != null then
      [ .bandwidth.gbit_s, .bandwidth.min_interval_gbit_s, .bandwidth.peak_gbit_s, .bandwidth.messages_per_s,
        .cpu.client_s_per_gb, .cpu.server_s_per_gb, comparison::retransmissions ]
    else null
    end;

def about:
  { kind: (if transfer_view::is_transfer then "transfer" else .kind end),
    definition, completion_level, completion: .params.completion, backend, provider, op, tool: .tool.name,
    version: .tool.version, bidirectional: .params.bidirectional, layer: .link.layer, mtu_bytes: .link.mtu_bytes,
    rate_gbit_s: .link.rate_gbit_s, histogram_unit: .histogram.unit, initial_rtt_us: .tcp.initial_rtt_us,
    window_bytes: .tcp.window_bytes }
  + if transfer_view::is_transfer then {transfer: transfer_view::about} else {} end;

def updates:
  path_view::updates,
  if .status != "ok" then empty
  elif transfer_view::is_transfer then ["about" + sep + .test, about], transfer_view::updates
  else ["about" + sep + .test, about],
       [(["row", .test, (.params.size_bytes | tostring), .flow] | join(sep)), figures]
  end;

def collect(records): reduce (records | updates) as $u ({}; setpath([$u[0]]; $u[1]));

# The median stands for repeats and pairs; minimum, maximum and the count of samples are those of all of them.
def column_value($name):
  if $name == "min" then map(select(. != null)) | min
  elif $name == "max" then map(select(. != null)) | max
  elif $name == "count" then map(select(. != null)) | add
  else comparison::median
  end;

def summarise($columns):
  . as $rows
  | [range(0; $columns | length) as $i | {key: $columns[$i], value: ($rows | map(.[$i]) | column_value($columns[$i]))}]
  | from_entries;

def columns: if . == "latency" then latency_columns else bandwidth_columns end;

# State -> {test: {about, sizes: [{size_bytes, records, columns...}]}}; of transfers, sizes are transfer_view's points.
def by_test:
  . as $state
  | [to_entries[] | select(.key | startswith("row" + sep)) | {parts: (.key | split(sep)), value}]
  | group_by(.parts[1])
  | map( .[0].parts[1] as $test
         | $state["about" + sep + $test] as $about
         | { key: $test,
             value: { about: $about,
                      sizes: (group_by(.parts[2] | c::attempt(tonumber; -1))
                              | map({size_bytes: (.[0].parts[2] | c::attempt(tonumber; null)), records: length}
                                    + (map(.value) | summarise($about.kind | columns)))) } })
  | from_entries
  | . + ($state | transfer_view::by_test | with_entries(.value.about = $state["about" + sep + .key]));
