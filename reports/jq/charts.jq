# What the Vega-Lite specs of reports/charts draw. Latencies of different definitions never share a chart.
import "flow_view" as flow_view;
import "format" as f;
import "picture" as picture;
import "transfer_view" as transfer_view;

def comparable($kind): .about.kind == $kind and .about.tool == "perch" and .about.backend != "null" and .about.bidirectional != true;

# Tests in the plan's order, so that a chart's legend reads like the tables.
def in_order($tests): . as $by_test | $tests[] | .title as $title | $by_test[.name] | select(. != null) | {title: $title, value: .};

def percentile_points($tests; $definition):
  [ in_order($tests)
    | select(.value | comparable("latency")) | select(.value.about.definition == $definition)
    | .title as $title
    | .value.sizes[] as $s
    | ({p50: "p50", p99: "p99", p99_9: "p99.9"} | to_entries[]) as $p
    | select($s[$p.key] != null)
    | {series: $title, percentile: $p.value, size_bytes: $s.size_bytes, latency_us: $s[$p.key]} ];

def bandwidth_points($tests):
  [ in_order($tests)
    | select(.value.about.kind == "bandwidth" and .value.about.bidirectional != true)
    | .title as $title
    | .value.sizes[] | {series: $title, size_bytes, gbit_s} ];

# Share of messages that took longer, from the merged histograms where `perch hist` has read them ...
def distribution_points($distributions):
  [ $distributions[]
    | .scale as $scale | .count as $n | .title as $series
    | .distribution[] | select(.[1] < $n)
    | {series: $series, latency_us: (.[0] * $scale), longer: (1 - .[1] / $n)} ];

# ... else from the percentiles that the records themselves carry.
def percentile_shares: {p50: 0.5, p90: 0.1, p95: 0.05, p99: 0.01, p99_9: 0.001, p99_99: 0.0001};
def coarse_distribution($tests; $size):
  [ in_order($tests)
    | select(.value | comparable("latency")) | select(.value.about.definition == "half_round_trip")
    | .title as $series
    | .value.sizes[] | select(.size_bytes == $size) | . as $s
    | percentile_shares | to_entries[] | select($s[.key] != null)
    | {series: $series, latency_us: $s[.key], longer: .value} ];

def chart($name; $spec; $title; $caption; $values): picture::chart($name; $spec; $title; $caption; $values);

def distribution_caption($distributions):
  "Share of messages that took longer than the time on the horizontal axis, from "
  + if ($distributions | length) > 0 then "all repeats' merged histograms. A line that falls steeply is a steady one."
    else "the percentiles of the records (no engine was at hand to read their histograms)." end;

def transfer_caption($left_out; $other; $values):
  "Payload of all pairs of devices together, decimal gigabytes a second, average. The horizontal axis is logarithmic."
  + (if $left_out then " Of more than three \($other) of a test the least, the middle and the largest are drawn; "
       + "the tables below have all." else "" end)
  + if any($values[]; .origin == "published") then
      " **Dashed lines were published elsewhere**, for the hardware that they name; they are no limits." else "" end;

def transfer_chart($tests; $references; $along; $other):
  . as $by_test
  | transfer_view::points([in_order($tests)]; $references; $along) as $values
  | chart("transfer_\($along)"; "transfer_\($along)"; "Transfers: bandwidth against \($along)";
          transfer_caption(any($tests[] as $t | $by_test[$t.name]; transfer_view::leaves_out($along)); $other; $values);
          $values);

def flow_caption($kind):
  "Each point is a flow, from the worst to the best, at the test's "
  + (if $kind == "latency" then "smallest size, its median" else "largest size" end)
  + ". A flat line is an even fabric; a drop at the left is a slow pair, named in the results. Of more than "
  + "\(flow_view::points_max) flows of a test so many ranks are drawn, the first and the last among them.";

def map_caption:
  "One cell for each pair: clients down, servers across. The figure is its share of "
  + (if .by == "ceiling" then "what its link can carry at most." else "the middle pair's bandwidth." end);

# $more: {distributions, distribution_size, references, ranked, map, course, loaded, evolution}
def all($tests; $more):
  . as $by_test
  | [ chart("latency"; "latency"; "Latency against message size";
            "Half of a round trip, engine only: median, p99 and p99.9 (where at least ten samples lie above it). "
            + "Both axes are logarithmic.";
            percentile_points($tests; "half_round_trip")),
      chart("latency_completion"; "latency"; "Latency of one-sided operations against message size";
            "From posting to local completion; not to be compared with half round trips.";
            percentile_points($tests; "completion")),
      chart("bandwidth"; "bandwidth"; "Bandwidth against message size";
            "Payload only, decimal gigabits; one way. Sends, writes and other tools end their clocks differently: the tables below say how. "
            + "The horizontal axis is logarithmic.";
            bandwidth_points($tests)),
      transfer_chart($tests; $more.references; "size"; "batches"),
      transfer_chart($tests; $more.references; "batch"; "sizes"),
      chart("flows_bandwidth"; "flows_bandwidth"; "Bandwidth of each flow"; flow_caption("bandwidth");
            $more.ranked | flow_view::rank_points("bandwidth")),
      chart("flows_latency"; "flows_latency"; "Latency of each flow"; flow_caption("latency");
            $more.ranked | flow_view::rank_points("latency")),
      ($more.map | values | chart("map"; "map"; "Pairs: \(.title), \(.size | f::size)"; map_caption; .values)),
      chart("course"; "course"; "Bandwidth over time";
            "Of each test the flow whose lowest interval lies farthest below its average.";
            $more.course),
      chart("loaded"; "loaded"; "Latency under load"; "Each test at its smallest size, without load and beside streams at its hosts."; $more.loaded),
      chart("evolution"; "evolution"; "Evolution over accepted runs"; "Each figure as a share of what it was in the first of these runs."; $more.evolution),
      chart("distribution"; "distribution"; "Distribution of latency at \($more.distribution_size | f::size)";
            distribution_caption($more.distributions);
            if ($more.distributions | length) > 0 then distribution_points($more.distributions)
            else $by_test | coarse_distribution($tests; $more.distribution_size) end) ];
