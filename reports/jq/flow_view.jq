# Flows beside each other: of each test with several pairs, every flow's figure in order of rank, the slowest by name, and a map
# of clients against servers. What is drawn stays small however many flows there are.
import "common" as c;
import "digits" as digits;
import "format" as f;
import "table" as table;

def points_max: 200; # of one test's line; flow_ranks.jq picks as many
# Below this share of the middle flow a flow is named in bold. Source: site policy.
def slow: 0.9;

def percent: 100 * . | digits::fixed(1) + " %";

# ---- the slowest, by name ----

def slowest_table:
  { columns: [ table::left("Test"), table::left("From"), table::left("To"), table::right("Figure"), table::right("Of the ceiling"), table::right("Against the middle flow") ],
    rows: [ .[] | . as $test | (if .kind == "latency" then " µs" else " Gb/s" end) as $unit
            | .slowest[]
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
    | .flows as $n | .drawn[]
    | {series: $series, place: (100 * (.rank - 0.5) / $n | c::rounded), value: .flow.value, from: .flow.client, to: .flow.server} ];

# The bandwidth test with the most flows, as client against server.
def map_of:
  [.[] | select(.kind == "bandwidth")] | max_by(.flows)
  | if . == null or .pairs == null or .flows < 6 then null
    else
      .middle as $middle
      | all(.pairs[]; .ceiling != null) as $against
      | { title: .title, size: .size, by: (if $against then "ceiling" else "middle" end),
          values: [.pairs[] | {client, server, percent: (100 * (if $against then .value / .ceiling else .value / $middle end) | c::rounded)}] }
    end;
