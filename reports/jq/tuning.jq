# Lines of tuning_run.jq -> the comparison (perch.tuning/1): each figure of each flow, untuned against tuned.
# The unit of evidence is the repeat: a tuned run against the untuned one just before it, as the logarithm of their ratio.
# What an interval of ratios is worth here: T. Kalibera, R. Jones, "Quantifying Performance Changes with Effect Size
# Confidence Intervals" (2012/2020).
import "common" as c;
import "student" as student;
import "series" as series;

# In the order of the customer's notes.
def latency_metrics:
  [ {metric: "min", title: "minimum"}, {metric: "p50", title: "typical (p50)"}, {metric: "mean", title: "average"},
    {metric: "stddev", title: "deviation"}, {metric: "max", title: "maximum"}, {metric: "p99", title: "p99"},
    {metric: "p99_9", title: "p99.9"} ] | map(. + {unit: "us", better: "lower"});
def bandwidth_metrics: [{metric: "gbit_s", title: "bandwidth", unit: "Gb/s", better: "higher"}];
def metrics:
  if . == "latency" then latency_metrics elif . == "sum" then bandwidth_metrics + latency_metrics else bandwidth_metrics end;

# How finely a figure is known, as a part of it. The engine's histogram has three significant digits (docs/definitions.md),
# so that the ratio of two is known to 0.2 %; other tools print two decimals (perftest, the cxi tools) or three digits (iperf).
def resolution($tool; $least):
  if $tool | startswith("perch ") then 0.002 else [0.01 / $least, 0.002] | max end;

def mean: add / length;

# Logarithms of ratios: of each repeat, tuned over untuned; and of each tuned run over the untuned one after it.
def log_ratios:
  . as $f
  | { forth: [range(0; $f.tuned | length) | ($f.tuned[.] | log) - ($f.untuned[.] | log)],
      back: [range(1; $f.tuned | length) | ($f.tuned[. - 1] | log) - ($f.untuned[.] | log)] };

def percent: (exp - 1) * 100 | c::rounded;

# What may be said of a figure: the interval holds "no change", or it does not. A change that goes on in the same direction
# when the tuning is taken back is drift of the machines: the runs' order alone made it.
def words($better):
  (if .mean - .half_width > 0 then 1 elif .mean + .half_width < 0 then -1 else 0 end) as $way
  | if $way == 0 then {verdict: "no_effect", why: null}
    elif (.back | mean) * $way <= 0 then
      {verdict: "no_effect", why: "it moved on the same way when the tuning was taken back: drift"}
    elif ($way > 0) == ($better == "higher") then {verdict: "better", why: null}
    else {verdict: "worse", why: null} end;

# Input: log_ratios.
def compared($better; $resolution):
  . as $r
  | (.forth | student::interval($resolution)) as $i
  | ($i + {back: $r.back} | words($better)) as $words
  | { change_percent: ($i.mean | percent), low_percent: ($i.mean - $i.half_width | percent),
      high_percent: ($i.mean + $i.half_width | percent),
      # the least gain that these repeats would have shown
      smallest_percent: (if $better == "higher" then $i.half_width | percent else -(-($i.half_width) | percent) end),
      # drift is no evidence against chance
      p: (if $words.why != null then 1 else $i.p | c::rounded end) }
    + $words;

def uncompared($why):
  { change_percent: null, low_percent: null, high_percent: null, smallest_percent: null, p: null,
    verdict: "not_compared", why: $why };

# Why a figure cannot be compared, or null. $names: the sub-runs, untuned and tuned in turn; input: its values there.
def obstacle($metric; $names):
  . as $v
  | first( range(0; length) | . as $i | $v[$i]
           | if . == null then (if c::quantile_of | has($metric) then "too few samples in \($names[$i])"
                                else "not reported in \($names[$i])" end)
             elif (c::is_finite | not) or . <= 0 then "\(c::shown) in \($names[$i])"
             else empty end ) // null;

# Values of one sub-run, of the flow's own repeats: as the report has them.
def of_run($metric): map(.values[$metric]) | series::column_value($metric);

# $lines: those of one place, all usable; $pairs: [[untuned, tuned], ...], the names of sub-runs.
def figure($lines; $pairs):
  . as $m
  | ($pairs | map(.[])) as $names
  | [$names[] as $n | $lines | map(select(.name == $n)) | of_run($m.metric)] as $values
  | ($values | obstacle($m.metric; $names)) as $why
  | ($values | {untuned: [.[range(0; length; 2)]], tuned: [.[range(1; length; 2)]]}) as $f
  | $m + { untuned: ($f.untuned | series::column_value("")), tuned: ($f.tuned | series::column_value("")) }
  + if $why != null then uncompared($why)
    else ($f | log_ratios) as $r
      | resolution($lines[0].like.tool; $values | min) as $resolution
      | ($r | compared($m.better; $resolution)) + {ratios: $r, resolution: $resolution}
    end;

# The first thing in which two records are not alike.
def unlike($a; $b):
  first($a | keys_unsorted[] | select($a[.] != $b[.]) | "\(.): \($a[.]) and \($b[.])") // null;

# Why a flow at a size cannot be compared at all, or null.
def refused($lines; $pairs):
  first(
    ( $pairs[][] as $n | select(all($lines[]; .name != $n)) | "\($n) has no record of it" ),
    ( $lines[] | select(.why != null) | "not measured in \(.name): \(.why)" ),
    ( $lines[0] as $one | $lines[1:][] | unlike($one.like; .like) as $u | select($u != null)
      | "\($one.name) and \(.name) are not alike (\($u))" ) ) // null;

def flow($pairs; $titles):
  . as $lines
  | ($lines[0].key | split("\t")) as $k
  | ([$lines[].about | select(. != null)][0] // {kind: null, op: null, definition: null, size_bytes: null, batch: null}) as $about
  | refused($lines; $pairs) as $why
  | {test: $k[0], title: ($titles[$k[0]] // $k[0]), client: $k[1], server: $k[2], place: $k[3]} + $about
    + {why: $why, figures: (if $why != null then [] else [$about.kind | metrics[] | figure($lines; $pairs)] end)};

# Where a figure stands in a table: as in the notes.
def place: . as $f | [(["latency", "bandwidth", "sum"] | index([$f.kind])), (.kind | metrics | map(.metric) | index([$f.metric]))];

# Over all flows, metric by metric: the mean over flows of each repeat's ratios, so that the repeat stays the unit.
def column_means: . as $rows | [range(0; $rows[0] | length) as $i | [$rows[][$i]] | mean];
def overall($flows):
  [ $flows[] | .kind as $kind | .figures[] | select(.verdict != "not_compared") | . + {kind: $kind} ]
  | group_by([.kind, .metric])
  | map( .[0] as $one
         | {kind: $one.kind, metric: $one.metric, title: $one.title, better: $one.better, flows: length}
           + ({forth: (map(.ratios.forth) | column_means), back: (map(.ratios.back) | column_means)}
              | compared($one.better; 0.002)) ) # as far as one of them is known
  | sort_by(place);

def with_holm: [(map(.p) | student::holm), .] | transpose | map(.[1] + {p_holm: (.[0] | c::rounded)});

# The same over every figure of every flow.
def figures_with_holm:
  ([.[].figures[] | select(.p != null) | .p] | student::holm) as $adjusted
  | [ foreach .[] as $flow ({before: 0, used: 0};
        {before: .used, used: (.used + ([$flow.figures[] | select(.p != null)] | length))};
        .before as $before
        | $flow + {figures: [ foreach $flow.figures[] as $f ($before - 1; if $f.p != null then . + 1 else . end;
                                $f + {p_holm: (if $f.p == null then null else $adjusted[.] | c::rounded end)}) ]}) ];

# ---- the sub-runs ----

def runs($names):
  . as $seen
  | [ range(0; $names | length) | . as $i | $names[$i] as $name
      | {name: $name, phase: (if $i % 2 == 0 then "untuned" else "tuned" end), repeat: (($i / 2 | floor) + 1)}
        + ($seen[$name] // {usable: false, why: "there is nothing of it"}) ]
  # a copied folder is no second measurement
  | reduce .[] as $r ([];
      . + [ ([.[] | select(.run != null and .run == $r.run) | .name] | .[0]) as $twin
            | if $twin == null then $r else $r + {usable: false, why: "it is the same run as \($twin)"} end ]);
