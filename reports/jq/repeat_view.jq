# Repeatability: of every pair and size that was measured more than once, how far its repeats lie apart.
import "common" as c;
import "digits" as digits;
import "format" as f;
import "series" as series;
import "table" as table;
import "transfer_rows" as transfer_rows;

def sep: "\t";

# 5 %: the coefficient of variation that draft-calabria-bmwg-ai-fabric-training-bench-02 recommends to stay under.
def unstable_percent: 5;

# Percent of the mean: the sample standard deviation of the values.
def variation:
  length as $n | (add / $n) as $mean
  | if $n < 2 or $mean == 0 then null
    # most are two, and there may be a hundred thousand
    elif $n == 2 then 100 * ((.[0] - $mean | . * .) + (.[1] - $mean | . * .) | sqrt) / $mean
    else 100 * ((map(. - $mean | . * .) | add) / ($n - 1) | sqrt) / $mean end;

# Of one test: what is alike but for the repeat is one figure. Input: its places (series.jq) ...
def of_places($kind; $columns):
  (series::figures_at + ($columns | index(if $kind == "latency" then "p50" else "gbit_s" end))) as $at
  | (if $kind == "latency" then series::figures_at + ($columns | index("mean")) else $at end) as $instead
  | [ .[] | .size as $size | .pairs[] | select(length > 1) | . as $rows
      | [$rows[] | if .[$at] != null then .[$at] else .[$instead] end | values] | select(length > 1)
      | variation as $cv | select($cv != null) | {place: [$size, $rows[0][1], $rows[0][2]], n: length, $cv} ];
# ... or its transfers
def of_transfers($columns):
  ($columns | index("gbyte_s")) as $at
  | map({place: (.parts[2:] + (.flow | split("/")[1:3])), value: .value[$at]} | select(.value != null))
  | group_by(.place)
  | map({place: .[0].place, n: length, cv: (map(.value) | variation)} | select(.cv != null));

def percent: digits::fixed(if . < 9.95 then 2 else 1 end) + " %";

def kind_words: {latency: "latency, median", bandwidth: "bandwidth", transfer: "bandwidth"}[.];

def place_words: "\(.[-2]) to \(.[-1]), " + (.[0] | c::attempt(tonumber; 0) | f::size);

def row($test):
  (map(.cv) | sort) as $cv
  | max_by(.cv) as $worst
  | ($cv | map(select(. > unstable_percent)) | length) as $unstable
  | [ ($test.title | f::cell), ($test.kind | kind_words), (map(.n) | max | f::whole), (length | f::whole), ($cv | c::median | percent), ($worst.cv | percent),
      ($worst.place | place_words | f::cell),
      (if $unstable == 0 then "yes" else "**no**, \($unstable) of \(length) above" end) ];

# Of transfers the sum's, or those of the only pair. Input: transfer_rows' entries.
def summed:
  def place: (.parts[0:4] + [.flow] | join(sep));
  ([.[] | select(.parts[4] == "sum") | {key: place, value: true}] | from_entries) as $sums
  | map(select(.parts[4] == "sum" or $sums[place] == null))
  | group_by(.parts[1]) | map({key: .[0].parts[1], value: .}) | from_entries;

# $places, $transfers: of series.jq. $tests: of the plan.
def section($places; $transfers; $tests):
  ($tests | map(select(.repeats > 1))) as $repeated
  | ($transfers | summed) as $of_transfers
  | { table:
        { columns: [ table::left("Test"), table::left("Figure"), table::right("Repeats"), table::right("Pairs and sizes"), table::right("Variation, middle"),
                     table::right("Variation, largest"), table::left("Where"), table::left("All below \(unstable_percent) %") ],
          rows: [ $repeated[] | . as $test
                  | if .kind == "transfer" then $of_transfers[.name] // [] | of_transfers(transfer_rows::columns)
                    else $places[.name] // [] | of_places($test.kind; $test.kind | series::columns) end
                  | select(length > 0) | row($test) ] },
      once: [$tests[] | select(.repeats <= 1) | .title | f::cell] }
  | .once_line = (if .once == [] then ""
                  else "Measured once, so that nothing can be said of their repeatability: \(.once | f::names(8))." end)
  | del(.once);
