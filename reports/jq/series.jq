# What the tests' tables show: every figure by test and size, from the rows of passing.jq.
import "common" as c;
import "comparison" as comparison;
import "transfer_rows" as transfer_rows;

def sep: "\t";

def latency_columns: ["count", "min", "mean", "stddev", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max"];
def bandwidth_columns:
  ["gbit_s", "min_interval_gbit_s", "peak_gbit_s", "messages_per_s", "client_s_per_gb", "server_s_per_gb", "retransmissions",
   "messages", "ceiling_gbit_s"];
def columns: if . == "latency" then latency_columns else bandwidth_columns end;

# Before a row's figures stand its place, client, server and definition.
def figures_at: 4;

# Rows -> {test: [{size: text, rows, pairs}]}, in the order of sizes as text; pairs: where a test was repeated, the rows of each
# pair of hosts. $repeated: {test: true}. Transfers have a table of their own.
def places($repeated):
  [.[] | select(.[0] | startswith("transfer" + sep) | not)]
  | group_by(.[0])
  | map((.[0][0] | split(sep)) as $place | {test: $place[1], size: $place[2], rows: .}
        | .pairs = (if $repeated[.test] then .rows | group_by(.[1] + sep + .[2]) else null end))
  | group_by(.test) | map({key: .[0].test, value: .}) | from_entries;
def transfers: [.[] | select(.[0] | startswith("transfer" + sep))] | transfer_rows::entries;

# The median stands for repeats and pairs; extremes are those of all of them, and so is the count of samples.
def column_value($name):
  if $name == "min" or $name == "min_interval_gbit_s" then map(select(. != null)) | min
  elif $name == "max" or $name == "peak_gbit_s" then map(select(. != null)) | max
  elif $name == "count" or $name == "messages" then map(select(. != null)) | add
  else comparison::median
  end;

# The worst pair and repeat, for what must hold for each of them; null where one of them does not tell it. Input: rows.
def whole(worst): if any(.[]; . == null) then null else worst end;
def worst($columns):
  ($columns | [index("p50"), index("p99"), index("gbit_s"), index("ceiling_gbit_s")] | map(if . == null then null else . + figures_at end))
    as [$p50, $p99, $rate, $ceiling]
  | if $p50 != null then {p50: (map(.[$p50]) | whole(max)), p99: (map(.[$p99]) | whole(max))}
    else {of_ceiling: (map(if .[$rate] == null or .[$ceiling] == null then null else 100 * .[$rate] / .[$ceiling] end) | whole(min))} end;

def summarise($columns):
  . as $rows
  | [range(0; $columns | length) as $i | {key: $columns[$i], value: ([$rows[][figures_at + $i] | if . == null then null else . + 0 end] | column_value($columns[$i]))}]
  | from_entries + {worst: ($rows | worst($columns))};

# -> {test: {about, sizes: [{size_bytes, records, columns...}]}}; of transfers, sizes are transfer_rows' points.
def by_test($state; $places; $transfers):
  ($places
   | with_entries($state["about" + sep + .key] as $about
       | .value = { about: $about,
                    sizes: (.value | map({size_bytes: (.size | c::attempt(tonumber; null)), records: (.rows | length)} + (.rows | summarise($about.kind | columns)))
                            | sort_by(.size_bytes // -1)) }))
  + ($transfers | transfer_rows::by_test | with_entries(.value.about = $state["about" + sep + .key]));
