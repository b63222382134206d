# Transfers as the report shows them: bandwidth along size and batch, of all pairs of devices together (kind sum) and of
# each (kind transfer).
import "format" as f;
import "reference" as reference;
import "transfer_rows" as rows;

# ---- tables ---------------------------------------------------------------------------------------------------------

def left($title): {title: $title, rule: "---"};
def right($title): {title: $title, rule: "---:"};

def figure_columns:
  [ right("max, GB/s"), right("avg, GB/s"), right("min, µs"), right("avg, µs"), right("p50, µs"), right("p99, µs"),
    right("transfers/s") ];
def figure_cells: [.[rows::columns[:-1][]] | f::figure];

def total_cell: if .batch == null then "-" else .size_bytes * .batch / 1e6 | f::figure end;

def slowest: [.pairs[] | select(.gbyte_s != null)] | if length < 2 then null else min_by(.gbyte_s) end;
def slowest_cell: slowest | if . == null then "-" else "pair \(.pair): \(.gbyte_s | f::figure)" end;

def most_pairs: [.sizes[].pairs | length] | max;

# A row for each size and batch: all pairs together.
def sum_table:
  (most_pairs > 1) as $several
  | { columns: ([right("Size"), right("Batch"), right("Total, MB")] + figure_columns
                + if $several then [right("slowest, avg GB/s")] else [] end),
      rows: [ .sizes[]
              | [(.size_bytes | f::size), (.batch | f::whole), total_cell] + (.sum // {} | figure_cells)
                + if $several then [slowest_cell] else [] end ] };

def most_rows: 200;

def device_cell: if . == null or . == [null, null] then "-" else map(. // "-") | join(" to ") | f::cell end;

# A row for each pair; the slowest of its size and batch is in bold.
def pair_table:
  .devices as $devices
  | [ .sizes[] | . as $point | slowest as $slowest | $point.pairs[]
      | (if .pair == $slowest.pair then "**\(.pair)**" else "\(.pair)" end) as $name
      | [($point.size_bytes | f::size), ($point.batch | f::whole), $name, ($devices["\(.pair)"] | device_cell)]
        + figure_cells ] as $rows
  | { columns: ([right("Size"), right("Batch"), right("Pair"), left("Devices")] + figure_columns),
      rows: $rows[:most_rows], more: ([($rows | length) - most_rows, 0] | max) };

# Where nobody measured the sum of several pairs, the pairs are all there is.
def tables:
  if most_pairs < 2 then sum_table
  elif all(.sizes[]; .sum == null) then pair_table
  else sum_table + {pairs: pair_table} end;

def counted($n; $one; $many): if $n == null then empty elif $n == 1 then "1 " + $one else "\($n) " + $many end;

# What the figures are. Input: a test with the `about` of series.jq.
def note:
  .about as $a
  | $a.transfer as $t
  | [ "Gigabytes (10^9) a second, and microseconds of a batch, from posting its first transfer to the completion of "
      + "its last",
      "max is bytes over the fastest batch, avg "
      + (if $a.tool != "perch" then "as \($a.tool) prints it"
         elif $t.devices == 1 then "all bytes over the whole time"
         else "a pair's bytes over its time, all pairs' over the longest of these times" end),
      (if $a.completion == null then empty elif $a.completion == "event" then "waiting by events"
       else "busy polling" end),
      (if $a.provider != null then "provider \($a.provider)" else empty end),
      (if $a.layer != null then "over \($a.layer)" else empty end),
      counted($t.devices; "pair of devices"; "pairs of devices"),
      counted($t.queue_pairs; "queue pair each"; "queue pairs each"),
      counted($t.threads; "thread"; "threads"),
      (if $t.consecutive == true then "transfers posted one by one" else empty end),
      (if $t.session == false then "without a session" else empty end),
      (if $t.verify == true then "every byte checked" else empty end),
      ([.sizes[].records] | max | if . > 1 then "medians of \(.) records a row" else empty end) ]
  | join("; ") + "." | f::cell;

# ---- charts ---------------------------------------------------------------------------------------------------------

# The least, the middle and the largest: more lines of one test could not be told apart.
def picked: unique | if length <= 3 then . else [.[0], .[length / 2 | floor], .[-1]] end;

def drawn($series):
  if .sum != null then {series: $series, gbyte_s: .sum.gbyte_s}
  else .pairs[] | {series: "\($series), pair \(.pair)", gbyte_s} end;

# One line for each of the picked others: a test of one point is a point in the first chart.
def lines($title; $along; $other; words):
  ([.sizes[][$along]] | unique | length) as $long
  | ([.sizes[][$other]] | unique) as $others
  | if $long < 2 and ($along == "batch" or ($others | length) > 1) then empty
    else
      ($others | picked[]) as $one
      | (if ($others | length) > 1 then "\($title), \($one | words)" else $title end) as $series
      | .sizes[] | select(.[$other] == $one and .[$along] != null)
      | . as $point | drawn($series) | . + ($point | {size_bytes, batch}) + {origin: "measured"}
    end;

# Whether the chart along one thing has this test, and not all of the other.
def leaves_out($along):
  .about.kind == "transfer"
  and ([.sizes[] | [.size_bytes, .batch] | if $along == "size" then . else reverse end]
       | (map(.[0]) | unique | length > 1) and (map(.[1]) | unique | . != picked));

def published($references; $along):
  $references[] | select(reference::along == $along) | reference::legend as $series
  | .rows[] | {series: $series, gbyte_s: .avg_gbyte_s, size_bytes, batch, origin: "published"};

# $tests: [{title, value}] in the plan's order. References stand beside what was measured, never alone.
def points($tests; $references; $along):
  [ $tests[] | .title as $title | .value | select(.about.kind == "transfer")
    | if $along == "size" then lines($title; "size_bytes"; "batch"; "batch \(.)")
      else lines($title; "batch"; "size_bytes"; f::size) end ]
  | if . == [] then [] else . + [published($references; $along)] end;

# Which of the chosen curves are drawn, with their source, and which are not, and why.
def reference_lines($chosen; $charts):
  ($charts | map(select(.spec | startswith("transfer_")) | .spec | ltrimstr("transfer_"))) as $drawn
  | ($chosen | reference::usable)
  | map("*\(.title | f::cell)*: \(.source | f::cell); \(.configuration | f::cell)."
        + if reference::along as $along | $drawn | index([$along]) then ""
          else " Not drawn: this run has no transfers along the \(reference::along)." end)
    + ($chosen | reference::unusable | map("\(.file | f::code) cannot be drawn: \(.why | f::cell)."));
