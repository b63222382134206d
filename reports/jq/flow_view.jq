# Flows beside each other: of each test with several pairs, every flow's figure in order of rank, the slowest by name, and a map
# of clients against servers. What is drawn stays small however many flows there are.
import "common" as c;
import "digits" as digits;
import "format" as f;
import "table" as table;

def sep: "\t";

def points_max: 200; # of one test's line
def map_max: 40; # hosts on each side of the map
def slowest_max: 5;
# Below this share of the middle flow a flow is named in bold. Source: site policy.
def slow: 0.9;

def median: sort | length as $n | if $n % 2 == 1 then .[($n - 1) / 2] else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

# Of one test: its flows at the size where they tell most, the largest for bandwidth, the smallest for latency.
# -> {size, flows: [{client, server, value, ceiling}]}, repeats merged to their median, the worst first
def of_test($kind; $repeats; $columns):
  ($columns | index(if $kind == "latency" then "p50" else "gbit_s" end)) as $at
  | ($columns | index("ceiling_gbit_s")) as $top
  | (map(.parts[2] | c::attempt(tonumber; null)) | map(select(. != null)) | if $kind == "latency" then min else max end) as $size
  | [ .[] | select(.parts[2] == ($size | tostring) and .value[$at] != null)
      | (.parts[3] | split("/")) as $id
      | {client: $id[1], server: $id[2], value: .value[$at], ceiling: (if $top == null then null else .value[$top] end)} ]
  | if $repeats < 2 then . else group_by([.client, .server]) | map(.[0] + {value: (map(.value) | median)}) end
  | {$size, flows: (sort_by(.value) | if $kind == "latency" then reverse else . end)};

# Of all ranks as many as can be drawn, the first and the last among them.
def sampled:
  . as $all | length as $n
  | if $n <= points_max then [range(0; $n)] else [range(0; points_max) | . * ($n - 1) / (points_max - 1) | round] end
  | map({rank: (. + 1), flow: $all[.]});

def percent: 100 * . | digits::fixed(1) + " %";

# $rows of series.jq -> [{test, title, kind, size, flows, middle}] of the tests with more than two pairs
def ranked($rows; $tests; $latency; $bandwidth):
  [ ("bandwidth", "latency") as $kind
    | $tests[] | select(.kind == $kind and .flows > 2 * .repeats) | . as $test | $rows[.name] | select(. != null)
    | of_test($kind; $test.repeats; if $kind == "latency" then $latency else $bandwidth end)
    | select((.flows | length) > 2)
    | . + {test: $test.name, title: $test.title, $kind, middle: ([.flows[].value] | median)} ];

# ---- the slowest, by name ----

def slowest_table:
  { columns: [ table::left("Test"), table::left("From"), table::left("To"), table::right("Figure"), table::right("Of the ceiling"), table::right("Against the middle flow") ],
    rows: [ .[] | . as $test | (if .kind == "latency" then " µs" else " Gb/s" end) as $unit
            | .flows[:slowest_max][]
            | (.value / $test.middle) as $ratio
            | (if $test.kind == "latency" then $ratio > 1 / slow else $ratio < slow end) as $bad
            | [ ("\($test.title), \($test.size | f::size)" | f::cell), (.client | f::cell), (.server | f::cell), ((.value | f::figure) + $unit),
                (if .ceiling == null then "-" else .value / .ceiling | percent end),
                (($ratio | percent) | if $bad then "**\(.)**" else . end) ] ] }
  | .rows |= .[:60]
  | table::slim;

# ---- charts ----

def rank_points($kind):
  [ .[] | select(.kind == $kind) | .middle as $middle | .title as $series
    | .flows | length as $n | sampled[]
    | {series: $series, place: (100 * (.rank - 0.5) / $n | c::rounded), value: .flow.value, from: .flow.client, to: .flow.server} ];

# The bandwidth test with the most flows, as client against server.
def map_of:
  [.[] | select(.kind == "bandwidth")] | max_by(.flows | length)
  | if . == null then null
    else
      . as $test
      | ([.flows[] | .client, .server] | unique) as $hosts
      | if ($hosts | length) > map_max or (.flows | length) < 6 then null
        else { title: .title, size: .size, by: (if all(.flows[]; .ceiling != null) then "ceiling" else "middle" end),
               values: [.flows[] | {client, server, percent: (100 * (if all($test.flows[]; .ceiling != null) then .value / .ceiling else .value / $test.middle end) | c::rounded)}] }
        end
    end;
