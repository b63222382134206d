# The course of all turns of one test between two hosts -> how its figures drift and where they step (soak_stats.jq), held against limits.
import "common" as c;
import "digits" as digits;
import "soak_stats" as stats;
import "soak_bounds" as bounds;

def metrics: [["bandwidth", 1, "soak.bandwidth_percent", "higher"], ["p50", 2, "soak.p50_percent", "lower"], ["p99", 3, "soak.p99_percent", "lower"]];

# Longer courses are halved in their detail until they fit: what a step costs grows faster than its length. A step is then dated to so many intervals.
def points_most: 2000;

def percent: . * 100 | digits::fixed(1) + " %";

# What lies on the bad side of nothing, as percent: a bandwidth that fell, a latency that rose.
def worse($better): if $better == "higher" then -. * 100 else . * 100 end;

def anomaly($kind; $severity; $flow; $from; $to): {$kind, check: (if $kind == "drift" then "drift" else "change" end), $severity, s: $from, e: $to, since_soak: true, messages: null, lines: [], flow: $flow};

# Points [time, value, line, flow] of one metric.
def of_metric($name; $metric; $better; $bounds; $alpha):
  . as $points
  | length as $n
  | {metric: $name, judged: false, per_hour: null, low: null, high: null, over_soak: null, over_low: null, over_high: null, why: null, change: null, found: []}
  | if $bounds[$metric] == null then .why = "no limit speaks of it"
    elif $n < stats::batches_least then .why = "\($n) intervals have it, and a drift needs \(stats::batches_least)"
    else
      ([$points[][1]] | c::median) as $median
      | ($points | map([.[0], .[1]]) | stats::trend($alpha)) as $trend
      | ($points[-1][0] - $points[0][0]) as $long
      | if $median <= 0 then .why = "its median is 0"
        else
          ($points | map([.[0], .[1]]) | stats::batched(points_most)) as $course
          | (if $trend.low == null then .why = "neighbouring intervals are so alike that these bear no interval of their slope"
             else
               .judged = true
               | .per_hour = ($trend.slope * 3600 / $median | c::rounded) | .low = ($trend.low * 3600 / $median | c::rounded) | .high = ($trend.high * 3600 / $median | c::rounded)
               | .over_soak = ($trend.slope * $long / $median | c::rounded) | .over_low = ($trend.low * $long / $median | c::rounded)
               | .over_high = ($trend.high * $long / $median | c::rounded)
             end)
          # the mildest and the gravest that the interval allows
          | (if $trend.low == null then null
             else [(.over_low, .over_high) | worse($better)] | {mild: min, grave: max} end) as $worse
          | ([select($worse != null) | $bounds | bounds::broken($metric; $worse.mild)][0]) as $broken
          | ([select($worse != null) | $bounds | bounds::broken($metric; $worse.grave)][0]) as $maybe
          | (if $broken != null then
               .found += [ anomaly("drift"; $broken.severity; $points[-1][3]; $points[0][0]; $points[-1][0])
                           + { value: (.over_soak * 100 | c::rounded), unit: "% over the soak", lines: [$points[0][2], $points[-1][2]],
                               text: "\($name) drifts by \(.over_soak | percent) over the soak (\(.over_low | percent) to \(.over_high | percent))" } ]
             elif $maybe != null then .binding = ($maybe.severity == "fail") | .doubt = "\($name) of \($points[0][3]): between \(.over_low | percent) and \(.over_high | percent) over the soak"
             else . end)
          # a drift is no step: what is left when it is taken out
          | (if $broken != null then [$course[] | .[1] - $trend.slope * (.[0] - $course[0][0])] else [$course[][1]] end) as $values
          | [ $values | stats::steps($alpha)[]
              | ((.after - .before) / (if .before == 0 then $median else .before end)) as $share
              | . + {$share, broken: [$bounds | bounds::broken($metric; $share | worse($better))][0]} | select(.broken != null) ] as $steps
          | reduce $steps[] as $step (.;
              ($course[$step.at][0]) as $at
              | first($points[] | select(.[0] >= $at - 1e-6)) as $point
              | .change //= {at_s: ($at | c::rounded), before: ($step.before | c::rounded), after: ($step.after | c::rounded), share: ($step.share | c::rounded)}
              | .found += [ anomaly("change"; $step.broken.severity; $point[3]; $at; $at)
                            + { value: ($step.share * 100 | c::rounded), unit: "%", lines: [$point[2]],
                                text: "\($name) steps by \($step.share | percent), from \($step.before | c::rounded) to \($step.after | c::rounded)" } ])
        end
    end;

# Input: the flow of the last turn. $series: [time, bandwidth, p50, p99, line, flow] of all its intervals.
def of_group($series; $bounds; $alpha):
  { group: "\(.test)/\(.client)/\(.server)",
    drift: [ metrics[] as [$name, $place, $metric, $better]
             | [$series[] | select(.[$place] != null) | [.[0], .[$place], .[4], .[5]]]
             | select(. != [] or ($name == "bandwidth") == ($series[0][1] != null))
             | of_metric($name; $metric; $better; $bounds; $alpha) ] };
