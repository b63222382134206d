# Evolution: the figures of the runs that were accepted before (inputs/history.jsonl, perch.history/1, oldest first), and
# this run's beside them, each with its change. Figures of different terms are never held against each other.
import "digits" as digits;
import "figures" as figures;
import "format" as f;
import "measured" as measured;
import "figure_words" as figure_words;
import "table" as table;
import "common" as c;

# The first run and the latest ones; a wider table is not read.
def runs_max: 4;
def rows_max: 60;

# What is shown of a test: latency at the smallest size, bandwidth at the largest.
def shown:
  { latency: [ {metric: "latency_us.p50", title: "Latency, median", unit: "us"},
               {metric: "latency_us.p99", title: "Tail, p99", unit: "us"}, {metric: "jitter", title: "Jitter, p99 - p50", unit: "us"},
               {metric: "latency_us.stddev", title: "Jitter, standard deviation", unit: "us"}, {metric: "latency_us.max", title: "Maximum", unit: "us"} ],
    bandwidth: [ {metric: "bandwidth.gbit_s", title: "Bandwidth", unit: "Gb/s"} ],
    transfer: [ {metric: "bandwidth.gbit_s", title: "Bandwidth of all pairs", unit: "Gb/s"} ] };

# A test's size whose figures are shown, as in the keys of figures.jq.
def place($kind):
  if $kind == "latency" then .sizes[0].size_bytes | tostring
  elif $kind == "bandwidth" then .sizes[-1].size_bytes | tostring
  else .sizes[-1] | "\(.size_bytes)x\(.batch)" end;

# This run's figure: medians over repeats and pairs (series.jq), as the accepted run's are over repeats, and here over pairs.
def own($kind; $metric):
  if $kind == "latency" then
    .sizes[0] | if $metric == "jitter" then (if .p99 == null or .p50 == null then null else .p99 - .p50 end)
                else .[$metric | split(".")[1]] end
  elif $kind == "bandwidth" then .sizes[-1][$metric | split(".")[1]]
  else .sizes[-1].sum.gbyte_s | if . == null then null else 8 * . end end;

# Accepted run -> {test/size: {metric: {value, terms}}}, medians over its pairs, and the longest of all. $wanted: {test/size: true}
def earlier($wanted):
  .terms as $terms
  | [ .figures | to_entries[] | (.key | split("/")) as $k
      | "\($k[0])/\($k[3])" as $place | select($wanted[$place])
      | {$place, metric: $k[4], value: .value.value, terms: $terms[.value.of]} ]
  | group_by(.place)
  | map({key: .[0].place,
         value: (group_by(.metric) | map({key: .[0].metric, value: {value: (if .[0].metric | figures::is_extreme then map(.value) | max else map(.value) | c::median end), terms: .[0].terms}}) | from_entries)})
  | from_entries;

def figure_of($metric):
  if $metric != "jitter" then .[$metric]
  elif .["latency_us.p99"] == null or .["latency_us.p50"] == null then null
  else {value: (.["latency_us.p99"].value - .["latency_us.p50"].value), terms: .["latency_us.p50"].terms} end;

def change($from): if $from == null or . == null or $from == 0 then null else 100 * (. / $from - 1) end;
def signed: if . == null then "-" elif . > 1000 then "> +1000 %" else (if . > 0 then "+" else "" end) + digits::fixed(if fabs < 9.95 then 1 else 0 end) + " %" end;

# Values along the runs, oldest first, this one's last -> cells: each with its change against the one before.
def cells($unit):
  . as $values
  | [ range(0; length) as $i | $values[$i]
      | if . == null then "not measured"
        else figure_words::quantity($unit)
             + ([$values[:$i][] | values] | last as $before | if $before == null then "" else " (\($values[$i] | change($before) | signed))" end)
        end ];

# $history: accepted runs, oldest first.
def rows($history; $tests):
  . as $state_by_test
  # what is checked byte by byte is no figure to be proud of
  | ($tests | map(select($state_by_test.by_test[.name].about | . != null and .asked.verify != true))) as $have
  | ($have | map({key: (. as $t | "\(.name)/\($state_by_test.by_test[.name] | place($t.kind))"), value: true}) | from_entries) as $wanted
  | [$history[] | earlier($wanted)] as $runs
  | [ $have[] | . as $test | $state_by_test.by_test[.name] as $m
      | ($m | place($test.kind)) as $place
      | ($state_by_test.terms[.name] // "") as $terms
      | shown[$test.kind][] | . as $figure
      | [$runs[] | .["\($test.name)/\($place)"] // {} | figure_of($figure.metric)] as $was
      | [$was[] | if . == null then null elif figures::unlike(.terms; $terms) != null then null else .value end] as $values
      | select([$values[] | values] != [])
      | ($m | own($test.kind; $figure.metric)) as $now
      | { rdma: ($m.about | measured::is_rdma and measured::is_network), figure: $figure.title, metric: $figure.metric, unit: $figure.unit, test: $test.title, $place, values: ($values + [$now]) } ];

# Tests whose terms changed: they have no evolution.
def refused($history; $tests):
  . as $in
  | [ $tests[] | .name as $name | .title as $title | $in.terms[$name] as $now | select($now != null)
      | [ $history[] | .terms as $terms | [.figures | to_entries[] | select(.key | startswith($name + "/")) | .value.of] | unique[] | $terms[.] ] | unique
      | select(length > 0 and all(.[]; figures::unlike(.; $now) != null))
      | "\($title): \(figures::unlike(.[0]; $now)) differ" | f::cell ];

def called($i): if .label != null then .label elif $i == 0 then "initial" else .run end;

def place_words: (split("x")) as $p | ($p[0] | tonumber | f::size) + if ($p | length) > 1 then ", batch \($p[1])" else "" end;

# Input: {by_test, terms: {test: terms}}.
def section($history; $tests):
  ($history | if length > runs_max then [.[0]] + .[-(runs_max - 1):] else . end) as $picked
  | rows($picked; $tests) as $rows
  | [$picked | to_entries[] | .key as $i | .value | called($i)] as $labels
  | { runs: [ range(0; $picked | length) as $i | $picked[$i]
              | "*\($labels[$i] | f::cell)*: run \(.run | f::code), accepted \(.accepted | f::cell)" + (if .verdict == "PASS" then "" else ", **although \(.verdict)**" end) ],
      table: { columns: ([table::left("Figure"), table::left("Test"), table::right("Size")] + [$labels[] | f::cell | table::right(.)]
                         + [table::right("this run"), table::right("since the first")]),
               rows: [ $rows[:rows_max][] | .unit as $unit
                       | [.figure, (.test | f::cell), (.place | place_words)] + (.values | cells($unit))
                         + [.values | ([.[:-1][] | values][0]) as $first | .[-1] | change($first) | signed] ] },
      left_out: ([($history | length) - ($picked | length), 0] | max),
      refused: refused($picked; $tests),
      heads: [ $rows[:rows_max][] | ([.values[:-1][] | values][0]) as $first
               | {rdma, figure, test, place: (.place | place_words), unit, first_value: $first, from: (.unit as $unit | $first | figure_words::quantity($unit)), now: (.unit as $unit | .values[-1] | figure_words::quantity($unit)), change: (.values[-1] | change($first)),
                  metric, first: $labels[0]} ],
      # single extremes would set the chart's scale
      chart: [ [$rows[] | select(.metric | test("stddev|max") | not)][:8][] | ([.values[] | values][0]) as $first | .figure as $figure | .test as $test
               | .values | to_entries[] | select(.value != null and ($first // 0) > 0)
               | {series: "\($test): \($figure)", order: .key, run: (($labels + ["this run"])[.key]), percent: (100 * .value / $first)} ] };
