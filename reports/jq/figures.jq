# The figures by which runs are held against each other: of each record a few, each with a key that is the same in every run.
# Who asks "what was this in the accepted run?" (drift.jq, limits with a bound `of: baseline`, the report) asks by key().
import "common" as c;
import "comparison" as comparison;

# Record -> "test/client/server/size_bytes/metric"; a transfer has its batch beside the size, 65536x8. The metric is named
# as in limits: latency_us.p50, bandwidth.gbit_s.
def key($metric):
  [ .test, .client.host, .server.host,
    (if .kind == "sum" then "\(.params.size_bytes)x\(.params.batch)" else .params.size_bytes | tostring end),
    $metric ] | join("/");

def latency:
  [ {metric: "latency_us.p50", path: ["latency_us", "p50"]}, {metric: "latency_us.mean", path: ["latency_us", "mean"]},
    {metric: "latency_us.p99", path: ["latency_us", "p99"]}, {metric: "latency_us.p99_9", path: ["latency_us", "p99_9"]} ]
  | map(. + {unit: "us", better: "lower"});
def bandwidth:
  [ {metric: "bandwidth.gbit_s", path: ["bandwidth", "gbit_s"]},
    {metric: "bandwidth.min_interval_gbit_s", path: ["bandwidth", "min_interval_gbit_s"]} ]
  | map(. + {unit: "Gb/s", better: "higher"});
def metrics: {latency: latency, bandwidth: bandwidth, sum: (bandwidth[0:1] + latency)}; # by kind; a pair's are in its sum

# An imported tool's percentile counts where ten samples lie above it.
def value_at($path):
  .latency_us.count as $count
  | getpath($path)
  | if c::is_finite and . > 0 and ($path[0] != "latency_us" or c::quantile_of[$path[1]] == null
                                   or ($count | c::is_finite) and c::supports($count; c::quantile_of[$path[1]])) then .
    else null end;

# What an accepted run keeps beside them for the report: they move from run to run, so that no check holds them against each other.
def beside: latency[0:1] | [.[] | {unit, better} + ({metric: "latency_us.stddev", path: ["latency_us", "stddev"]}, {metric: "latency_us.max", path: ["latency_us", "max"]})];
def kept: metrics | .latency += beside | .sum += beside;

# Record -> {key, metric, unit, better, value} for each figure of its kind, of those that $wanted has; value is null where it has none.
def of_record($wanted):
  . as $record
  | select(.status == "ok") | ($wanted[.kind] // [])[]
  | . as $m
  | {key: (.metric as $name | $record | key($name)), metric, unit, better, value: ($record | value_at($m.path))};
def of_record: of_record(metrics);

# What two figures must have in common to be held against each other, as "name=value" words. The tool's version, the path's
# rate and its MTU are not among them: they are the fabric's (fabric.jq).
def terms:
  { kind, definition, completion_level: (if comparison::times_completion then .completion_level else null end), scope,
    tool: .tool.name, backend, provider, op, connection, completion: .params.completion,
    bidirectional: (.params.bidirectional == true), verify: (.params.verify == true), queue_pairs: .params.queue_pairs,
    outstanding: .params.outstanding, gap_us: .params.gap_us,
    rate: (.params.rate | if . == null then null else "\(.asked)\(.unit)" end) }
  + (if .kind != "sum" then {}
     else .params | {batch, devices, threads, consecutive, session, stride_bytes, chunks} end)
  | [to_entries[] | select(.value != null) | "\(.key)=\(.value)"] | join(" ");

# Two texts of terms() -> the first thing in which they differ, in words, or null.
def unlike($a; $b):
  if $a == $b then null
  else
    ($a | split(" ")) as $x | ($b | split(" ")) as $y
    | (($x - $y) + ($y - $x))[0] | split("=")[0] as $name
    | "\($name): " + ([($x, $y) | map(select(startswith($name + "="))) | .[0] // "none" | sub("^[^=]*="; "")] | join(" and "))
  end;

# The longest of all messages is that of all repeats; every other figure has its median.
def is_extreme: test("\\.max$");

# Values of one figure's repeats -> {value, cv_percent, n}: their median, and the sample standard deviation as a part of the mean.
def of_repeats:
  length as $n
  | (add / $n) as $mean
  | { value: comparison::median, n: $n,
      cv_percent: (if $n < 2 or $mean == 0 then null
                   else 100 * ((map(. - $mean | . * .) | add) / ($n - 1) | sqrt) / $mean | c::rounded end) };

# Record -> what perch.baseline/1 holds of its figure: {unit, better, value, cv_percent, n, terms}, or null where it holds none.
# The caller asks unlike() of both terms first: figures of two definitions are never held against each other.
def accepted($baseline; $metric):
  $baseline.figures[key($metric)] | if . == null then null else . + {terms: $baseline.terms[.of]} end;
