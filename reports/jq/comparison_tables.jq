# Tables of what stands beside each other: RDMA's interface and TCP, the engine and other tools.
import "figure_words" as words;
import "format" as f;
import "table" as table;

# ---- RDMA against TCP ----

# A figure that is absent has its reason: percentiles need samples, and retransmissions need the host's counter.
def shown($row):
  if .value != null then .value | words::quantity($row.unit)
  elif $row.metric == "retransmissions" then "not counted on that host"
  elif $row.kind == "latency" then "too few samples"
  else "not reported"
  end;

def comparison_row:
  . as $row
  | [ (.title | f::cell) + (if .kind == "bandwidth" then ", " + (.completion | words::waiting_words) else "" end), (.size_bytes | f::size),
      (.rdma | shown($row)), (.tcp | shown($row)), (.ratio | f::times) ];

def provider_table($rows; $provider):
  ($rows | map(select(.rdma.name == $provider))) as $mine
  | ($mine | map(select(.kind == "latency" and .completion == "busy"))) as $latency
  | ($mine | map(select(.kind == "bandwidth"))) as $bandwidth
  | ($latency | map(.size_bytes) | words::picked_sizes) as $sizes
  | ($bandwidth | map(.size_bytes) | max) as $largest
  | ([$mine[0].rdma.scope] | if .[0] == "hardware" then "" else ", \(.[0])" end) as $scope
  | { title: ("\($provider)\($scope)" | f::cell),
      columns: [table::left("Figure"), table::right("Size"), table::right("RDMA interface (\("\($provider)\($scope)" | f::cell))"), table::right("TCP (the engine's tcp backend)"),
                table::right("RDMA / TCP")],
      rows: ( [ ("p50_us", "stddev_us", "p99_minus_p50_us", "p99_us", "p99_9_us") as $metric
                | $sizes[] as $size | $latency[] | select(.metric == $metric and .size_bytes == $size) | comparison_row ]
            + [ ("gbit_s", "client_s_per_gb", "server_s_per_gb", "client_system_s_per_gb", "server_system_s_per_gb", "retransmissions") as $metric
                | $bandwidth[] | select(.metric == $metric and .size_bytes == $largest) | comparison_row ] ) };

# Shared memory comes last: it is no network.
def comparison_tables:
  .rows as $rows
  | [$rows[].rdma.name] | unique | sort_by(if . == "shm" then 1 else 0 end)
  | map(provider_table($rows; .));

# ---- the engine beside perftest ----

def agreement_words: {agree: "agree", disagree: "**disagree**"}[.state] // (.reason | f::cell);

def agreement_row:
  .unit as $unit
  | [ (if .peer then "beside \(.peer): " else "" end)
      + "\(.op) \(.kind), \(.connection // "-" | f::cell)" + (if .bidirectional then ", both ways" else "" end) + ": \(.title | f::cell)", (.size_bytes | f::size),
      (.engine | words::quantity($unit)), (.perftest | words::quantity($unit)), (.ratio | f::times), agreement_words ];

def agreement_table:
  { columns: [table::left("Figure"), table::right("Size"), table::right("perch"), table::right("the other tool"), table::right("perch / other"), table::left("They")],
    rows: (sort_by(.kind != "latency", .op, .connection, .size_bytes, .metric) | map(agreement_row) | .[:200]) };

def others_table:
  { columns: [table::left("Tool"), table::left("Definition"), table::right("Size"), table::right("Gb/s"), table::right("CPU client, s/GB"), table::right("CPU server, s/GB"),
              table::right("Retransmissions")],
    rows: [.others[] | [ (.name | f::cell), (.definition | words::definition_words | f::cell), (.size_bytes | f::size), (.gbit_s | f::figure),
                         (.client_s_per_gb | f::figure), (.server_s_per_gb | f::figure), (.retransmissions | f::whole) ]] };
