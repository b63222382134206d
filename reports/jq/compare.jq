# Two runs' figures (accepted.jq) -> what comparison.json holds (perch.comparison/1). $a, $b: --slurpfile; $of_a, $of_b: lines {key:
# place, value: {metric: {low, high, of}}}, intervals within one run: of merged histograms and of a stream's course (course.jq).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "figures" as figures;
import "comparison" as _;
import "common" as c;
import "student" as student;

# The 95 % interval of a figure: of its repeats, by Student's t, where there are two or more; else of what was seen within the run,
# which says nothing of how runs differ; else null, as of an extreme. A repeat is what a run is, so it outranks the rest.
def interval($within; $metric):
  if $metric | figures::is_extreme then null
  elif .n >= 2 then
    (student::critical([.n, student::most] | min) * .value * .cv_percent / 100 / (.n | sqrt)) as $h
    | {low: ([.value - $h, 0] | max | c::rounded), high: (.value + $h | c::rounded), of: "repeats"}
  elif $within != null then $within | {low: (.low | c::rounded), high: (.high | c::rounded), of}
  else null end;

def split_key: split("/") | {place: (.[0:4] | join("/")), metric: .[4]};

def words($x; $y; $better; $metric):
  if $metric | figures::is_extreme then "no interval: an extreme"
  elif $x == null or $y == null then "no interval: one value"
  elif $x.high >= $y.low and $y.high >= $x.low then "no difference seen"
  else (if ($y.low > $x.high) == ($better == "higher") then "better" else "worse" end)
    + (if $x.of != "repeats" or $y.of != "repeats" then ", within these two runs" else "" end)
  end;

$a[0] as $A | $b[0] as $B
| ($of_a | from_entries) as $ia | ($of_b | from_entries) as $ib
| [ $A.figures | to_entries[] | .key as $key | .value as $x | $B.figures[$key] as $y | select($y != null)
    | ($key | split_key) as $k
    | {$key, $x, $y, $k, unlike: figures::unlike($A.terms[$x.of]; $B.terms[$y.of])} ] as $pairs
| { schema: "perch.comparison/1", a: ($A | {run, created, verdict, scope: .fabric.scope}), b: ($B | {run, created, verdict, scope: .fabric.scope}),
    method: "95 % intervals: of repeats by Student's t; where nothing was repeated, of a latency's samples by order statistics of its histogram, and of a bandwidth's intervals by batch means. The last two know nothing of how runs differ",
    rows: [ $pairs[] | select(.unlike == null)
            | (.k.place as $p | .k.metric as $m | .x | interval($ia[$p][$m]; $m)) as $i
            | (.k.place as $p | .k.metric as $m | .y | interval($ib[$p][$m]; $m)) as $j
            | { figure: .key, unit: .x.unit, better: .x.better, a: .x.value, a_interval: $i, b: .y.value, b_interval: $j,
                change_percent: (100 * (.y.value / .x.value - 1) | c::rounded), words: words($i; $j; .x.better; .k.metric) } ],
    refused: [$pairs[] | select(.unlike != null) | {figure: .key, reason: .unlike}],
    only_a: [$A.figures | keys_unsorted[] | select($B.figures[.] == null)],
    only_b: [$B.figures | keys_unsorted[] | select($A.figures[.] == null)] }
