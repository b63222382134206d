# What a record says beside its figures, as updates of tally.jq: what the counters of its flow saw (events.jq), by how much
# its ends' clocks differ (ends.jq), its worst interval and its tail.
import "common" as c;
import "bounds" as bounds;

def sep: "\t";

# ---- counters and clocks: the flow's, which every size carries ----------------------------------------------------------

# One class that moved: its count, in a million packets where they are known, and whether that is more than healthy.
def event($class; $record):
  .events.counts[$class] as $n
  | (if $class | bounds::is_rare then $record.packets.sent else null end) as $sent
  | { flow, n: $n, at: .events.from[$class], ppm: (if $n == null or $sent == null then null else c::ratio($n; $sent / 1e6) end) }
  | .bad = (if .ppm != null then .ppm > bounds::rare_ppm else true end);

# All is told by few keys where all is well: the scope, whether times were told, and what was counted.
def flow_updates:
  [ (["counted", .scope, (if .clock_skew_s == null then "" else "clock" end), (.events.counts // {} | keys_unsorted | tojson)] | join(sep)),
    "path", {flow, reason: null} ],
  (select((.clock_skew_s // 0) != 0) | ["skew" + sep + .client.host + sep + .server.host, "worst", {flow, v: .clock_skew_s}]),
  ( select(.events != null and (.events.from != {} or .events.stale != null))
    | . as $r
    | (.events.from | keys_unsorted[]) as $class
      | [(["event", $class, $r.scope, (if $r.events.counts[$class] == null then "reset" else "" end)] | join(sep)), "event",
         ($r | event($class; $r))] ),
  (select(.events.stale != null) | ["stale" + sep + .flow, "set", .events.stale]);

def fold_event($new):
  if . != null and .last == $new.flow then .
  else (. // {n: 0, bad: 0, worst: null, at: null, evidence: []})
    | ($new.ppm // $new.n) as $v
    | { n: (.n + 1), bad: (.bad + if $new.bad then 1 else 0 end), last: $new.flow, sum: ((.sum // 0) + ($new.n // 0)),
        worst: (if .worst == null or ($v != null and $v > .worst) then $v else .worst end),
        ppm: ((.ppm // false) or $new.ppm != null),
        at: (if .at == null or ($v != null and .worst != null and $v > .worst) then $new.at else .at end),
        evidence: (if (.evidence | length) < bounds::evidence_max then .evidence + [$new.flow] else .evidence end) }
  end;

def fold_worst($new): if . == null or ($new.v | fabs) > (.v | fabs) then $new else . end;

# ---- intervals and tails: each record's own -----------------------------------------------------------------------------

# Ten windows of 0.1 s: below that the first and last are a good part of the whole.
def least_windowed_s: 1;
def least_intervals: 3;

# Intervals shorter than 90 % of the longest are the ragged ends of a run (results.jq).
def interval_share:
  (map(.end_s - (.start_s // 0)) | max) as $longest
  | [.[] | select(.end_s - (.start_s // 0) >= 0.9 * $longest) | (.gbit_s // .count) | numbers]
  | if length < least_intervals then null else c::median as $m | if $m > 0 then min / $m else 0 end end;

# The worst interval against the middle of its record's own; where there are none, the worst window of a tenth of a second
# against the whole. Null where neither is known.
def worst_share:
  [ (.intervals | if length < least_intervals then null else interval_share end),
    (if .bandwidth.min_interval_gbit_s == null or (.elapsed_s // 0) < least_windowed_s then null
     else .bandwidth.min_interval_gbit_s / .bandwidth.gbit_s end) ]
  | map(numbers) | min;

# The furthest percentile that ten samples support, against the median.
def tail:
  .latency_us
  | if . == null or .p50 == null then null
    else . as $l
      | first(("p99_9", "p99") | select($l[.] != null and c::supports($l.count; c::quantile_of[.])) | {name: ., v: ($l[.] / $l.p50)})
        // null
    end;

def shape($name; $id; $v; $strain; $of):
  [(["shape", $name, .test] | join(sep)), "shape", {$id, $v, $strain, broken: ($strain > 1), hard: (.scope == "hardware"), $of}];

# A rate that was asked for paces its intervals; the sum of a transfer has those of its pairs.
def record_updates($id):
  ( worst_share as $share | select($share != null)
    | shape("interval"; $id; $share; (if $share > 0 then bounds::least_share / $share else 1e300 end); null) ),
  ( tail as $tail | select($tail != null) | shape("tail"; $id; $tail.v; $tail.v / bounds::most_tail; $tail.name) );

def fold_shape($new):
  (. // {judged: 0, broken: 0, hard: 0, strain: -1, worst: null, at: null, of: null, evidence: []})
  | .judged += 1
  | (if $new.strain > .strain then .strain = $new.strain | .worst = $new.v | .at = $new.id | .of = $new.of else . end)
  | if $new.broken then
      .broken += 1 | .hard += (if $new.hard then 1 else 0 end)
      | .evidence |= (if length < bounds::evidence_max then . + [$new.id] else . end)
    else . end;
