# A soak's figures for Prometheus, beside those of prom.jq. Input: the verdict's `soak`, or null.
import "prom" as prom;
import "soak_words" as soak_words;

# "2026-11-21T08:04:12.350Z" -> seconds, or nothing
def instant: if type != "string" then empty else (sub("\\.[0-9]+Z$"; "Z") | fromdateiso8601) + (capture("(?<f>\\.[0-9]+)Z$").f // "0" | "0" + . | tonumber) end;
# sums end alike in all versions of jq
def microseconds: (. * 1e6 | round) / 1e6;
def one($name; $help; value): prom::gauge($name; $help; [value] | .[] | values | prom::sample($name; {}; .));

# Of each test one figure of all its flows; none where one of them has none, as the others alone would flatter.
def of_tests($name; $help; $kind; figure; worst; convert):
  prom::gauge($name; $help;
    [.flows[]? | select($kind == null or .kind == $kind)] | group_by(.test)[]
    | .[0].test as $test | map(figure)
    | select(all(.[]; . != null)) | worst | convert | prom::sample($name; {$test}; .));

def families:
  if . == null then "" else
    one("perch_soak_running"; "1 while the soak runs, 0 when it is over."; if .running then 1 else 0 end)
    + one("perch_soak_start_timestamp_seconds"; "When the soak began, since 1970."; .started | instant)
    + one("perch_soak_end_timestamp_seconds"; "When what is known of the soak ends, since 1970."; .ended | instant)
    + one("perch_soak_planned_seconds"; "How long the soak is to last."; .duration_s)
    + one("perch_soak_passed_seconds"; "How much of it is known to have passed, gaps included, of the flow that has least."; .passed_s)
    + one("perch_soak_measured_seconds"; "How much of it was measured, of the flow that has least."; .measured_s)
    + one("perch_soak_interval_seconds"; "The interval of its figures."; .interval_s)
    + ((.anomaly_counts // {}) as $counts
       | prom::gauge("perch_soak_anomalies"; "Anomalies by their kind, those that no report shows among them.";
           soak_words::kinds[], ($counts | keys[] | select(. as $k | soak_words::kinds | index([$k]) | not))
           | prom::sample("perch_soak_anomalies"; {kind: .}; $counts[.] // 0)))
    + of_tests("perch_soak_gap_seconds"; "Time without a connection, of all flows of a test together."; null; .gap_s; add; microseconds)
    + of_tests("perch_soak_stall_seconds"; "Time in which a connection completed nothing, of all flows of a test together."; null; .stall_s; add; microseconds)
    + of_tests("perch_soak_lowest_interval_bytes_per_second"; "Payload in the worst interval of all flows of a test."; "bandwidth";
        .figures.bandwidth.lowest_interval; min; prom::from_gbit_s)
    + of_tests("perch_soak_lowest_window_bytes_per_second"; "Payload in the worst tenth of a second of all flows of a test."; "bandwidth";
        .figures.bandwidth.lowest_window; min; prom::from_gbit_s)
    + of_tests("perch_soak_highest_p99_seconds"; "The highest 99th percentile of an interval, of all flows of a test."; "latency";
        .figures.latency.p99_highest; max; prom::from_us)
    + one("perch_soak_corrupted_bytes"; "Bytes that arrived other than they were sent, where that was checked.";
        [.flows[]?.figures.corrupt_bytes | values] | if . == [] then empty else add end)
    # from 10^6 bytes an hour
    + prom::gauge("perch_soak_memory_growth_bytes_per_second"; "How fast the fastest growing process of a role grows; over a short time that may be its warm-up.";
        [.hosts[]?.processes[]? | select(.mb_per_hour != null)] | group_by(.role)[]
        | .[0].role as $role | map(.mb_per_hour) | max | prom::sample("perch_soak_memory_growth_bytes_per_second"; {$role}; . * 1e9 / 3600 | round / 1000))
  end;
