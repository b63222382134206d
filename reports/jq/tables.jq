# Tables of the report: columns with a title and a Markdown rule, rows of finished cells.
import "format" as f;
import "transfer_view" as transfer_view;

def left($title): {title: $title, rule: "---"};
def right($title): {title: $title, rule: "---:"};

def definition_words:
  { half_round_trip: "half of a round trip", completion: "from posting to local completion",
    batch_completion: "from posting the first transfer of a batch to the completion of its last",
    receiver_acknowledged: "payload until the receiver's final acknowledgement",
    initiator_completion: "payload until the initiator's last completion",
    receiver_payload: "payload that the receiver counted", sender_payload: "payload that the sender wrote" }[. // ""]
  // (. // "not stated");

def waiting_words: if . == "event" then "waiting by events" elif . == "busy" then "busy polling" else "waiting mode not stated" end;

# ---- one table a test, one row a size ----

def latency_table:
  { columns: [right("Size"), right("Samples"), right("min"), right("median"), right("mean"), right("std. dev."), right("p90"),
              right("p99"), right("p99.9"), right("p99.99"), right("max")],
    rows: [.sizes[] | [ (.size_bytes | f::size), (.count | f::whole), (.min | f::figure), (.p50 | f::figure), (.mean | f::figure),
                        (.stddev | f::figure), (.p90 | f::figure), (.p99 | f::figure), (.p99_9 | f::figure),
                        (.p99_99 | f::figure), (.max | f::figure) ]] };

def bandwidth_table:
  { columns: [right("Size"), right("Gb/s"), right("lowest interval"), right("peak"), right("messages/s"),
              right("CPU client, s/GB"), right("CPU server, s/GB"), right("retransmissions")],
    rows: [.sizes[] | [ (.size_bytes | f::size), (.gbit_s | f::figure), (.min_interval_gbit_s | f::figure),
                        (.peak_gbit_s | f::figure), (.messages_per_s | f::figure), (.client_s_per_gb | f::figure),
                        (.server_s_per_gb | f::figure), (.retransmissions | f::whole) ]] };

def test_note:
  .about as $a
  | [ (if $a.kind == "latency" then "Microseconds" else "Gigabits a second" end) + ", " + ($a.definition | definition_words),
      (if $a.tool == "perch" then ($a.completion | waiting_words) else empty end),
      (if $a.provider != null then "provider \($a.provider)" else empty end),
      (if $a.layer != null then "over \($a.layer)" else empty end),
      (if $a.initial_rtt_us != null then "initial round trip \($a.initial_rtt_us | f::figure) µs" else empty end),
      (if $a.window_bytes != null then "window \($a.window_bytes | f::whole) bytes" else empty end),
      ([.sizes[].records] | max | if . > 1 then "medians of \(.) records a size" else empty end) ]
  | join("; ") + ".";

def of_tests($tests):
  . as $by_test
  | [ $tests[] | . as $t | $by_test[$t.name] | select(. != null)
      | {title: $t.title, name: $t.name}
        + if .about.kind == "transfer" then {note: transfer_view::note} + transfer_view::tables
          else {note: test_note} + if .about.kind == "latency" then latency_table else bandwidth_table end end ];

# ---- RDMA against TCP ----

# The smallest size, 4 KiB (a page) and the largest show where the curves start, bend and end; charts show the rest.
def picked_sizes: (unique | sort) as $s | [$s[0], 4096, $s[-1]] | map(select(. as $x | $s | index([$x]) != null)) | unique;

def quantity($unit):
  if . == null then "-" elif $unit == "segments" then f::whole else "\(f::figure) \($unit | f::unit_sign)" end;

# A figure that is absent has its reason: percentiles need samples, and retransmissions need the host's counter.
def shown($row):
  if .value != null then .value | quantity($row.unit)
  elif $row.metric == "retransmissions" then "not counted on that host"
  elif $row.kind == "latency" then "too few samples"
  else "not reported"
  end;

def comparison_row:
  . as $row
  | [ .title + (if .kind == "bandwidth" then ", " + (.completion | waiting_words) else "" end), (.size_bytes | f::size),
      (.rdma | shown($row)), (.tcp | shown($row)), (.ratio | f::times) ];

def provider_table($rows; $provider):
  ($rows | map(select(.rdma.name == $provider))) as $mine
  | ($mine | map(select(.kind == "latency" and .completion == "busy"))) as $latency
  | ($mine | map(select(.kind == "bandwidth"))) as $bandwidth
  | ($latency | map(.size_bytes) | picked_sizes) as $sizes
  | ($bandwidth | map(.size_bytes) | max) as $largest
  | ([$mine[0].rdma.scope] | if .[0] == "hardware" then "" else ", \(.[0])" end) as $scope
  | { title: "\($provider)\($scope)",
      columns: [left("Figure"), right("Size"), right("RDMA interface (\($provider)\($scope))"), right("TCP (the engine's tcp backend)"),
                right("RDMA / TCP")],
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

def agreement_words: {agree: "agree", disagree: "**disagree**"}[.state] // .reason;

def agreement_row:
  .unit as $unit
  | [ (if .peer then "beside \(.peer): " else "" end)
      + "\(.op) \(.kind), \(.connection // "-")" + (if .bidirectional then ", both ways" else "" end) + ": \(.title)", (.size_bytes | f::size),
      (.engine | quantity($unit)), (.perftest | quantity($unit)), (.ratio | f::times), (agreement_words | f::cell) ];

def agreement_table:
  { columns: [left("Figure"), right("Size"), right("perch"), right("the other tool"), right("perch / other"), left("They")],
    rows: (sort_by(.kind != "latency", .op, .connection, .size_bytes, .metric) | map(agreement_row) | .[:200]) };

def others_table:
  { columns: [left("Tool"), left("Definition"), right("Size"), right("Gb/s"), right("CPU client, s/GB"), right("CPU server, s/GB"),
              right("Retransmissions")],
    rows: [.others[] | [ .name, (.definition | definition_words), (.size_bytes | f::size), (.gbit_s | f::figure),
                         (.client_s_per_gb | f::figure), (.server_s_per_gb | f::figure), (.retransmissions | f::whole) ]] };
