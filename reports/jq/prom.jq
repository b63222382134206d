# A verdict and its figures in Prometheus' text format 0.0.4, for the node exporter's textfile collector. Base units, as
# Prometheus' naming rules ask: seconds and bytes a second.

# Above so many groups of figures (test, pair of hosts, size) only their extremes a test and size are written: with some seven
# series a group this keeps a run below 10,000 series, where a scrape stays small. Checks are named up to their own cap.
def most_groups: 1000;
def most_checks: 100;

def escaped: tostring | explode | map(if . >= 32 or . == 10 then . else 65533 end) | implode
  | gsub("\\\\"; "\\\\") | gsub("\""; "\\\"") | gsub("\n"; "\\n");
def labels: to_entries | map(select(.value != null) | "\(.key)=\"\(.value | escaped)\"") | join(",") | if . == "" then "" else "{\(.)}" end;
def sample($name; $of; $value): "\($name)\($of | labels) \($value)\n";

# A family of samples: its two comment lines, and nothing at all where it has no sample.
def family($name; $type; $help; samples):
  [samples | select(. != null)]
  | if . == [] then "" else "# HELP \($name) \($help)\n# TYPE \($name) \($type)\n" + join("") end;
def gauge($name; $help; samples): family($name; "gauge"; $help; samples);
def one_hot($name; $help; $by; $known; $is):
  gauge($name; $help; $known[] as $k | sample($name; {($by): $k}; if $k == $is then 1 else 0 end));

# To a picosecond and a byte a second, finer than any tool measures.
def from_us: (. * 1e6 | round) / 1e12;
def from_gbit_s: . * 125000000 | round;
# A figure that one repeat lacks, for want of samples, is one that the group lacks: the others alone would flatter.
def column($name): map(.[$name]) | if any(.[]; . == null) then [] else . end;
def middle: sort | if length == 0 then null elif length % 2 == 1 then .[length / 2 | floor] else (.[length / 2 - 1] + .[length / 2]) / 2 end;

def statuses: ["pass", "advisory", "not_judged", "inconclusive", "fail"];
def quantiles: {p50: "0.5", p90: "0.9", p95: "0.95", p99: "0.99", p99_9: "0.999", p99_99: "0.9999"};

def of_checks:
  .checks as $checks
  | gauge("perch_checks"; "Checks of the run by their status."; statuses[] as $s
      | sample("perch_checks"; {status: $s}; [$checks[] | select(.status == $s)] | length))
  + ([$checks[] | select(.status == "fail" or .status == "inconclusive")] as $bad
     | gauge("perch_check_not_passed"; "A check that failed or could not be judged, the first \(most_checks) of them."; $bad[:most_checks][]
         | sample("perch_check_not_passed"; {id, status}; 1)));

# Groups of {labels, rows: [figures of each repeat]}: medians over the repeats, counts and sums over all samples.
def latency_of_pairs($groups):
  family("perch_latency_seconds"; "summary"; "Latency, as its definition says; quantiles are medians over the repeats, count and sum hold all samples.";
    $groups[] | select(.rows[0].mean != null) | .labels as $l | .rows as $rows
    | ( quantiles | to_entries[] as $q | $rows | column($q.key) | middle | select(. != null)
        | sample("perch_latency_seconds"; $l + {quantile: $q.value}; from_us) ),
      sample("perch_latency_seconds_sum"; $l; $rows | map(.mean * .count) | add | from_us),
      sample("perch_latency_seconds_count"; $l; $rows | column("count") | add))
  + gauge("perch_latency_max_seconds"; "The longest latency of all repeats.";
      $groups[] | .labels as $l | .rows | column("max") | select(. != []) | sample("perch_latency_max_seconds"; $l; max | from_us));

def bandwidth_of_pairs($groups):
  gauge("perch_bandwidth_bytes_per_second"; "Payload, median over the repeats.";
    $groups[] | .labels as $l | .rows | column("gbit_s") | select(. != []) | sample("perch_bandwidth_bytes_per_second"; $l; middle | from_gbit_s));

def extremes($sizes; $metric; $name; $help; convert):
  gauge($name; $help; $sizes[] | select(.metric == $metric) | . as $s
    | ({min: .value[0], mean: (.value[1] / .value[2]), max: .value[3]} | to_entries[]) as $e
    | sample($name; $s.labels + {statistic: $e.key}; $e.value | convert));

# Verdict -> text. $about: {suite, limits, began, ended, groups: [{labels, rows}] or null above the cap, sizes: [{metric, labels,
# value: [min, sum, count, max]}], moved: [{labels, value}]}.
def document($about):
  gauge("perch_run_info"; "What was run; the value is always 1."; sample("perch_run_info"; {run, suite: $about.suite, limits: $about.limits}; 1))
  + one_hot("perch_verdict"; "1 at the run's verdict, 0 at the others."; "verdict"; ["PASS", "FAIL", "INCONCLUSIVE"]; .verdict)
  + one_hot("perch_scope"; "1 at the run's scope, 0 at the others."; "scope"; ["hardware", "software", "simulated", "imported"]; .scope)
  + gauge("perch_run_start_timestamp_seconds"; "When the first flow began, since 1970.";
      $about.began | select(. != null) | sample("perch_run_start_timestamp_seconds"; {}; .))
  + gauge("perch_run_end_timestamp_seconds"; "When the flow that began last ended, since 1970.";
      $about.ended | select(. != null) | sample("perch_run_end_timestamp_seconds"; {}; .))
  + gauge("perch_planned_records"; "Records that the plan owes."; sample("perch_planned_records"; {}; .coverage.planned))
  + gauge("perch_measured_records"; "Records that were measured."; sample("perch_measured_records"; {}; .coverage.measured))
  + of_checks
  + gauge("perch_pairs_left_out"; "1 where the run has more than \(most_groups) groups of figures, so that those of pairs are left out.";
      sample("perch_pairs_left_out"; {}; if $about.groups == null then 1 else 0 end))
  + latency_of_pairs($about.groups // []) + bandwidth_of_pairs($about.groups // [])
  + extremes($about.sizes; "p50"; "perch_test_latency_median_seconds"; "Median latencies over all pairs and repeats of a test."; from_us)
  + extremes($about.sizes; "p99"; "perch_test_latency_p99_seconds"; "99th percentiles of latency over all pairs and repeats of a test."; from_us)
  + extremes($about.sizes; "gbit_s"; "perch_test_bandwidth_bytes_per_second"; "Payload over all pairs and repeats of a test."; from_gbit_s)
  + gauge("perch_trouble_counter"; "What a counter that stands still on a healthy path has moved by while the run's flows ran.";
      $about.moved[] | sample("perch_trouble_counter"; .labels; .value));
