# Flows beside each other, as many of each test as a report shows: what flow_view.jq makes tables and charts of.
import "series" as series;
import "flow_view" as flow_view;
import "common" as c;

def points_max: flow_view::points_max;
def map_max: 40; # hosts on each side of the map
def slowest_max: 5;

# Of one test: its flows at the size where they tell most, the largest for bandwidth, the smallest for latency.
# -> {size, ranks: [[client, server, value, ceiling]]}, repeats merged to their median, the worst first. Input: its places.
def of_test($kind):
  ($kind | series::columns) as $columns
  | (series::figures_at + ($columns | index(if $kind == "latency" then "p50" else "gbit_s" end))) as $at
  | ($columns | index("ceiling_gbit_s") | if . == null then null else . + series::figures_at end) as $top
  | (map(.size | c::attempt(tonumber; null)) | map(select(. != null)) | if $kind == "latency" then min else max end) as $size
  | first(.[] | select(.size == ($size | tostring)))
  | if .pairs == null then [.rows[] | select(.[$at] != null) | [.[1], .[2], .[$at], (if $top == null then null else .[$top] end)]]
    else [ .pairs[] | map(select(.[$at] != null)) | select(. != [])
           | [.[0][1], .[0][2], (if length == 1 then .[0][$at] else map(.[$at]) | c::median end), (if $top == null then null else .[0][$top] end)] ] end
  | {$size, ranks: (sort_by(.[2]) | if $kind == "latency" then reverse else . end)};

def flow: {client: .[0], server: .[1], value: .[2], ceiling: .[3]};

# Of all ranks those that are shown: the worst, as many as can be drawn, the first and the last among them, and all of them where
# they fill a map.
def shown:
  .ranks as $all | ($all | length) as $n
  | ($n <= map_max * map_max and ([$all[] | .[0:2][]] | unique | length <= map_max)) as $mapped
  | del(.ranks)
  + { flows: $n, middle: ([$all[][2]] | c::median), slowest: ($all[:slowest_max] | map(flow)),
      drawn: ((if $n <= points_max then [range(0; $n)] else [range(0; points_max) | . * ($n - 1) / (points_max - 1) | round] end)
              | map({rank: (. + 1), flow: ($all[.] | flow)})),
      pairs: (if $mapped then $all | map(flow) else null end) };

# $places of series.jq -> [{test, title, kind, size, flows, middle, slowest, drawn, pairs}] of the tests with more than two pairs
def ranked($places; $tests):
  [ ("bandwidth", "latency") as $kind
    | $tests[] | select(.kind == $kind and .flows > 2 * .repeats) | . as $test | $places[.name] | select(. != null)
    | of_test($kind) | select((.ranks | length) > 2)
    | {test: $test.name, title: $test.title, $kind} + shown ];
