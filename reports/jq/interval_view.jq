# A test's course over time: of each test the flow whose lowest interval lies farthest below its average. Others are in
# records.jsonl (intervals).
import "format" as f;

def sep: "\t";

def points_max: 200;

# The lowest of neighbours stays where there are more intervals than can be drawn: a dip must not vanish.
def thinned:
  if length <= points_max then .
  else (length / points_max | ceil) as $each | . as $all
    | [range(0; length; $each) as $i | $all[$i:$i + $each] | min_by(.gbit_s)] end;

# ---- while the records pass (passing.jq) ----
def updates:
  select(.kind == "bandwidth" and .status == "ok" and (.intervals // [] | length) >= 3)
  | [.intervals[] | select(.gbit_s != null) | {s: .end_s, gbit_s}] as $points
  | select(($points | length) >= 3)
  | .bandwidth.gbit_s as $average
  | [(["course", .test] | join(sep)), {flow, size_bytes: .params.size_bytes, $average, points: ($points | thinned)},
     ([$points[].gbit_s] | min) / $average];

# ---- state -> values of the chart; $tests in the plan's order ----
def points($tests):
  . as $state
  | [ $tests[] | .title as $title | $state["course" + sep + .name] | select(. != null)
      | .points[] | {series: $title, s, gbit_s} ];
