# The charts of a soak, from the rows of soak_rows.jq and the verdict's `soak`. Times are milliseconds since the soak began.
import "soak_chosen" as chosen;
import "soak_lines" as lines;
import "common" as c;
import "format" as f;
import "picture" as picture;

def tests_max: 8;

# The last moment that anything knows of
def span($rows):
  [ (.passed_s // 0) * 1000, ($rows[] | {i: .[5], x: .[4], m: .[5], t: .[3], u: .[1], c: .[3]}[.[0]]), 1 ] | max | floor;

def arrow($client; $server): "\($client) → \($server)";

# Of each anomaly: is it seen in a chart of this test, or of hosts alone?
def of_test($test): .flow == null and (.kind | IN("reboot", "link", "clock", "host")) or ((.flow // "") | startswith($test + "/"));
def of_kinds($kinds): .kind as $k | $kinds | index([$k]) != null;

# ---- flows ----

# [{x, from, to, v}] of one figure; [4], [5] are a row's start and end
def points($at): [.[] | {x: ((.[4] + .[5]) / 2), from: .[4], to: .[5], v: .[$at]}];

# The worst of the pairs that are not named, at each stretch of time. $worst: min or max of an array of numbers
def others_worst($at; $span; worst):
  ($span / (2 * lines::stretches) | [., 1] | max) as $long
  | group_by((.[4] + .[5]) / 2 / $long | floor)
  | [ .[] | {x: (.[0] | (.[4] + .[5]) / 2), from: (map(.[4]) | min), to: (map(.[5]) | max), v: ([.[][$at] | values] | worst)} ];

# $figures: [{at: column, figure, worst: min or max, keep: of soak_lines.jq}]
def lines_of($rows; $chosen; $figures; $span; $interval):
  ($rows | group_by([.[2], .[3]]) | map({pair: (.[0][1:4] | join(chosen::sep)), name: arrow(.[0][2]; .[0][3]), rows: .})) as $pairs
  | [$pairs[] | select($chosen[.pair])] as $named
  | [$pairs[] | select($chosen[.pair] | not)] as $others
  | ( $named[] | .name as $series | .rows as $r | $figures[] as $g | $r | points($g.at) | lines::line({series: $series, figure: $g.figure}; $g.keep; $interval) ),
    ( select($others != [])
      | [$others[].rows[]] as $r
      | (if ($others | length) == 1 then $others[0].name else "worst of \($others | length) others" end) as $series
      | $figures[] as $g
      | $r | (if $g.worst == "min" then others_worst($g.at; $span; min) else others_worst($g.at; $span; max) end)
      | lines::line({$series, figure: $g.figure}; $g.keep; $interval) );

def bandwidth_figures: [{at: 6, figure: "mean of the interval", worst: "min", keep: "both"}, {at: 7, figure: "its lowest 0.1 s", worst: "min", keep: "min"}];
def latency_figures: [{at: 8, figure: "p50", worst: "max", keep: "both"}, {at: 9, figure: "p99", worst: "max", keep: "max"}];

def thinned_words($n; $kept):
  if $n > 2 * lines::stretches then " Of \($n | f::whole) intervals every \($n / lines::stretches | ceil) are drawn as one: \($kept)." else "" end;

def named_words($pairs):
  if $pairs > chosen::pairs_max then " Named are the \(chosen::pairs_max) pairs with the most anomalies, or else the deepest fall; of the \($pairs - chosen::pairs_max) others the worst at each time is drawn." else "" end;

def anomaly_words($marks):
  if any($marks[]; .role == "bar") then " Bars above it are anomalies, with their number in the table." else "" end;

def flow_chart($test; $rows; $silences; $chosen; $span; $interval):
  (if any($rows[]; .[6] != null) then "bandwidth" else "latency" end) as $kind
  | [ lines_of($rows; $chosen; (if $kind == "bandwidth" then bandwidth_figures else latency_figures end); $span; $interval) ] as $lines
  | [[.anomalies[]? | select(of_test($test.name))] | lines::marks($silences; $span)] as $marks
  | ($rows | map([.[2], .[3]]) | unique | length) as $pairs
  | ($rows | length / $pairs | ceil) as $each
  | select(any($lines[]; .v != null))
  | picture::chart("soak_\($kind)_\($test.place)"; "soak_\($kind)"; "\(if $kind == "bandwidth" then "Bandwidth" else "Latency" end): \($test.title)";
      (if $kind == "bandwidth" then "Payload of each interval: its mean, and the lowest of its windows of 0.1 s."
       else "Median and p99 of each interval's own messages; an interval with fewer than 1,000 has no p99. The vertical axis is logarithmic." end)
      + named_words($pairs) + thinned_words($each; if $kind == "bandwidth" then "the lowest and the highest mean, and the lowest window" else "the lowest and the highest median, and the highest p99" end) + anomaly_words($marks);
      $lines + $marks + [lines::frame($span), lines::unit(if $kind == "bandwidth" then "Gb/s" else "µs" end)]);

# ---- hosts ----

# As the verdict leaves it out (soak_process.jq): five minutes, or a quarter of a short life.
def after_warm_up: (map(.[5]) | min) as $from | (map(.[5]) | max) as $to | ($from + ([300000, ($to - $from) / 4] | min)) as $warm | map(select(.[5] >= $warm));

def memory_chart($rows; $span; $interval):
  [ $rows | group_by(.[1:4] + [if .[2] == "job" then .[4] else "" end])[]
    | (.[0] | "\(.[2])\(if .[3] != null then " of \(.[3])" elif .[2] == "job" then " \(.[4] | split("/")[0])" else "" end) at \(.[1])") as $series
    # a process that was started anew begins anew
    | group_by(.[4]) | map(after_warm_up | min_by(.[5])[6] as $first | .[] | {x: .[5], from: null, to: .[5], v: ((.[6] - $first) / 1e6)})
    | lines::line({$series, figure: "growth"}; "both"; $interval) ] as $lines
  | [[.anomalies[]? | select(of_kinds(["leak", "handles", "reboot"]))] | lines::marks([]; $span)] as $marks
  | picture::chart("soak_memory"; "soak_hosts"; "Memory of Perch's processes";
      "Resident memory of each process since its warm-up (5 minutes, or a quarter of a shorter life), in MB (10^6 bytes): of the \(chosen::processes_max) that grew fastest." + anomaly_words($marks);
      if $lines == [] then [] else $lines + $marks + [lines::frame_to($span; 1), lines::unit("MB")] end);

def temperature_chart($rows; $span; $interval):
  [ ( [$rows[] | select(.[0] == "t")] | group_by(.[1:3])[]
      | "\(.[0][1]) \(.[0][2])" as $series
      | map({x: .[3], from: null, to: .[3], v: .[4]}) | lines::line({$series, figure: "temperature"}; "max"; $interval) ),
    ( [$rows[] | select(.[0] == "u")] | select(. != [])
      | group_by(.[1] / $interval | floor) | map({x: .[0][1], from: null, to: .[0][1], v: (map(.[2]) | max)})
      | lines::line({series: "hottest of all others", figure: "temperature"}; "max"; $interval) ) ] as $lines
  | [[.anomalies[]? | select(of_kinds(["reboot"]))] | lines::marks([]; $span)] as $marks
  | picture::chart("soak_temperature"; "soak_hosts"; "Temperatures"; "The hottest sensor of each host, of up to \(chosen::sensors_max) hosts." + anomaly_words($marks);
      if $lines == [] then [] else $lines + $marks + [lines::frame_to($span; 50), lines::unit("°C")] end);

def counters_max: 6;
def counter_chart($rows; $span; $interval):
  ($rows | group_by(.[1:3]) | sort_by(-(map(.[4]) | add), .[0][1:3])) as $all
  | [ $all[:counters_max][]
      | "\(.[0][2]) at \(.[0][1])" as $series
      | (length / (lines::stretches / 2) | ceil) as $each | . as $of
      | range(0; length; $each) as $i | $of[$i:$i + $each] | max_by(.[4])
      | {role: "shape", series: $series, figure: "counted", x: (.[3] | floor), v: .[4]} ] as $points
  | [[.anomalies[]? | select(of_kinds(["counter", "link"]))] | lines::marks([]; $span)] as $marks
  | picture::chart("soak_counters"; "soak_counters"; "Counters that moved";
      "What the hosts' devices counted between two samples, where it was not 0; the vertical axis is logarithmic."
      + (if ($all | length) > counters_max then " The \(counters_max) that counted most, of \($all | length)." else "" end) + anomaly_words($marks);
      if $points == [] then [] else $points + $marks + [lines::frame($span), lines::unit("counted")] end);

# ---- all ----

# Of whatever else the verdict names the first ones only, nobody sees a bar.
def left_out_words: if (.anomalies_left_out // 0) > 0 then " Stalls and gaps are all there; of other kinds the first 20 of a flow or host." else "" end;

def timeline($silences; $span):
  left_out_words as $words
  | [.anomalies[]?] | lines::placed($silences; $span)
  | [ group_by(.kind)[] | .[0].kind as $kind
      | (lines::bars($span) | {role: "bar", $kind} + .), (lines::numbers($span) | {role: "number", $kind, x, text: .id}) ] as $values
  | picture::chart("soak_anomalies"; "soak_anomalies"; "Anomalies over time";
      "Each by its kind, from its start to its end, with its number in the table where there is room." + $words;
      if $values == [] then [] else $values + [lines::frame($span) + {kind: $values[0].kind}] end);

# Input: the verdict's soak. $tests: [{name, title}] of the plan.
def all($rows; $tests):
  span($rows) as $span
  | ((.interval_s // 1) * 1000) as $interval
  | chosen::of_pairs as $chosen
  | ([$rows[] | select(.[0] == "i")] | group_by(.[1]) | map({key: .[0][1], value: .}) | from_entries) as $by_test
  | [$rows[] | select(.[0] == "x")] as $silences
  | . as $soak
  | [ timeline($silences; $span),
      ( [$tests[] | select($by_test[.name] != null)] | to_entries[:tests_max][]
        | (.value + {place: (.key + 1)}) as $test
        | $soak | flow_chart($test; $by_test[$test.name]; [$silences[] | select(.[1] == $test.name)]; $chosen; $span; $interval) ),
      counter_chart([$rows[] | select(.[0] == "c")]; $span; $interval),
      memory_chart([$rows[] | select(.[0] == "m")]; $span; $interval),
      temperature_chart([$rows[] | select(.[0] == "t" or .[0] == "u")]; $span; $interval) ];
