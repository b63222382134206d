# A table for each test, and what its figures are.
import "common" as c;
import "digits" as d;
import "format" as f;
import "figure_words" as words;
import "table" as table;
import "transfer_view" as transfer_view;

# ---- one table a test, one row a size, in perftest's columns ----

# perftest prints two decimals; below a tenth they would say nothing.
def two: if c::is_finite | not then "-" elif fabs >= 0.1 then d::fixed(2) else f::figure end;
def million: if c::is_finite | not then "-" else . / 1e6 | if . >= 0.00001 then d::fixed(6) else f::figure end end;
def percent: if c::is_finite | not then "-" else d::fixed(1) + " %" end;
def count: if c::is_finite | not then "-" else d::fixed(0) end;

def of_ceiling: if .gbit_s == null or .ceiling_gbit_s == null then null else 100 * .gbit_s / .ceiling_gbit_s end;

# perftest 4.5 and later, ib_send_lat and ib_send_bw --report_gbits, in its order; behind them what the engine knows besides.
def latency_table:
  { columns: ([ "#bytes", "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]", "t_avg[usec]", "t_stdev[usec]", "99%[usec]",
                "99.9%[usec]", "99.99%[usec]" ] | map(table::right(.))),
    rows: [.sizes[] | [ (.size_bytes | count), (.count | count), (.min | two), (.max | two), (.p50 | two), (.mean | two), (.stddev | two),
                        (.p99 | two), (.p99_9 | two), (.p99_99 | two) ]] }
  | table::slim;

# The host's count of TCP's retransmissions says nothing of what an RDMA device sends.
def bandwidth_table:
  (.about | .tool != "perftest" and .tool != "cxi" and .backend != "verbs" and .backend != "cxi") as $over_tcp |
  { columns: ([ "#bytes", "#iterations", "BW peak[Gb/sec]", "BW average[Gb/sec]", "MsgRate[Mpps]", "of the ceiling", "lowest interval[Gb/sec]",
                "CPU client[s/GB]", "CPU server[s/GB]", "retransmissions" ] | map(table::right(.))),
    rows: [.sizes[] | [ (.size_bytes | count), (.messages | count), (.peak_gbit_s | two), (.gbit_s | two), (.messages_per_s | million),
                        (of_ceiling | percent), (.min_interval_gbit_s | two), (.client_s_per_gb | f::figure), (.server_s_per_gb | f::figure),
                        (if $over_tcp then .retransmissions | f::whole else "-" end) ]] }
  | table::slim;

def peak_words:
  { best_run_of_messages: "the best run of messages", "best_interval_0.1s": "the best 0.1 s", fastest_batch: "the fastest batch" }[.] // gsub("_"; " ");

# What a test asked for, as far as its tool says it.
def asked_words($connection):
  [ (.queue_pairs | select(. != null) | f::plural(if $connection == "stream" then "connection" else "queue pair" end)),
    (.outstanding | select(. != null and . > 1) | "\(.) outstanding"),
    (.iterations | select(. != null) | "\(f::whole) iterations a size"),
    (select(.iterations == null) | .duration_s | select(. != null) | "\(f::figure) s a size"),
    (.gap_us | select(. != null and . > 0) | "a gap of \(f::figure) µs"),
    (.memory | select(. != null and . != "host") | "memory \(.)"),
    (.traffic_class | select(. != null) | "traffic class \(.)"),
    (.sl | select(. != null and . > 0) | "service level \(.)"),
    (.gid_index | select(. != null) | "GID index \(.)"),
    (select(.verify == true) | "every byte checked") ];

def link_words:
  (if .layer == null or (.layer == "unknown" and .rate_gbit_s == null) then empty
   else (if .layer == "unknown" then "over a link" else "over \(.layer)" end) + (if .rate_gbit_s == null then "" else " at \(.rate_gbit_s | f::plain) Gb/s" end)
        + (if .mtu_bytes == null then "" else ", MTU \(.mtu_bytes | d::fixed(0))" end) end);

def packet_words:
  "\(.sent | f::whole) packets counted by the devices, \(.lost | f::whole) lost, \(.retries | f::whole) times sent again" + (if .whole then "" else " as far as they count it" end);

# $packets: of view_measured.jq, null where no device counted any.
def test_note($packets):
  .about as $a
  | [ (if $a.kind == "latency" then "Latency" else "Bandwidth" end) + ": " + ($a.definition | words::definition_words),
      (if $a.tool == "perch" then ($a.completion | words::waiting_words) else "by \($a.tool)" end),
      (if $a.bidirectional == true then "both ways, summed" else empty end),
      (if $a.connection != null and $a.connection != "stream" then "connection \($a.connection)" else empty end),
      (if $a.provider != null then "provider \($a.provider)" else empty end),
      ($a | link_words), ($a.asked // {} | asked_words($a.connection)[]),
      (if $a.peak_definition != null then "peak: \($a.peak_definition | peak_words)" else empty end),
      (if $a.initial_rtt_us != null then "initial round trip \($a.initial_rtt_us | f::figure) µs" else empty end),
      (if $a.window_bytes != null then "window \($a.window_bytes | f::whole) bytes" else empty end),
      (if $packets == null then empty else $packets | packet_words end),
      ([.sizes[].records] | max | if . > 1 then "medians of \(.) records a size, extremes and counts of all of them" else empty end) ]
  | join("; ") + "." | f::cell;

def of_tests($tests; $packets):
  . as $by_test
  | [ $tests[] | . as $t | $by_test[$t.name] | select(. != null)
      | {title: ($t.title | f::cell), name: $t.name}
        + if .about.kind == "transfer" then {note: transfer_view::note} + transfer_view::tables
          else {note: test_note($packets[$t.name])} + if .about.kind == "latency" then latency_table else bandwidth_table end end ];

