# Repeatability: of every pair and size that was measured more than once, how far its repeats lie apart.
import "common" as c;
import "digits" as digits;
import "format" as f;
import "table" as table;

def sep: "\t";

# 5 %: the coefficient of variation that draft-calabria-bmwg-ai-fabric-training-bench-02 recommends to stay under.
def unstable_percent: 5;

# A record's figure, by its place in the state (series.jq, transfer_rows.jq): latency's median, else its mean; bandwidth.
def figure($kind; $columns):
  if $kind == "latency" then .[$columns | index("p50")] // .[$columns | index("mean")]
  else .[$columns | index(if $kind == "transfer" then "gbyte_s" else "gbit_s" end)] end;

# Percent of the mean: the sample standard deviation of the values.
def variation:
  length as $n | (add / $n) as $mean
  | if $n < 2 or $mean == 0 then null else 100 * ((map(. - $mean | . * .) | add) / ($n - 1) | sqrt) / $mean end;

def median: sort | length as $n | if $n % 2 == 1 then .[($n - 1) / 2] else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

# Input: [{parts: [prefix, test, size, ..., flow], value}] of one test. What is alike but for the repeat is one figure.
def of_test($kind; $columns):
  map({place: (.parts[2:-1] + (.parts[-1] | split("/")[1:3]) | join(sep)), value: (.value | figure($kind; $columns))} | select(.value != null))
  | group_by(.place)
  | map({place: .[0].place, n: length, cv: (map(.value) | variation)} | select(.cv != null));

def percent: digits::fixed(if . < 9.95 then 2 else 1 end) + " %";

def kind_words: {latency: "latency, median", bandwidth: "bandwidth", transfer: "bandwidth"}[.];

def place_words: split(sep) | "\(.[-2]) to \(.[-1]), " + (.[0] | c::attempt(tonumber; 0) | f::size);

def row($test):
  (map(.cv) | sort) as $cv
  | max_by(.cv) as $worst
  | ($cv | map(select(. > unstable_percent)) | length) as $unstable
  | [ ($test.title | f::cell), ($test.kind | kind_words), (map(.n) | max | f::whole), (length | f::whole), ($cv | median | percent), ($worst.cv | percent),
      ($worst.place | place_words | f::cell),
      (if $unstable == 0 then "yes" else "**no**, \($unstable) of \(length) above" end) ];

# Of transfers the sum's rows, or those of the only pair. Input: the state.
def transfers($wanted):
  . as $state
  | [ to_entries[] | select(.key | startswith("transfer" + sep)) | {parts: (.key | split(sep)), value} | select($wanted[.parts[1]])
      | select(.parts[4] == "sum" or $state[.parts[0:4] + ["sum"] + .parts[5:] | join(sep)] == null) ]
  | group_by(.parts[1]) | map({key: .[0].parts[1], value: .}) | from_entries;

# Input: the state of series.jq; $rows: its rows. $tests: of the plan. $latency, ...: the columns of each kind.
def section($rows; $tests; $latency; $bandwidth; $transfer):
  ($tests | map(select(.repeats > 1))) as $repeated
  | ($repeated | map(select(.kind == "transfer") | {key: .name, value: true}) | from_entries) as $wanted
  | ($rows + if $wanted == {} then {} else transfers($wanted) end) as $of
  | { table:
        { columns: [ table::left("Test"), table::left("Figure"), table::right("Repeats"), table::right("Pairs and sizes"), table::right("Variation, middle"),
                     table::right("Variation, largest"), table::left("Where"), table::left("All below \(unstable_percent) %") ],
          rows: [ $repeated[] | . as $test | $of[.name] | select(. != null)
                  | of_test($test.kind; {latency: $latency, bandwidth: $bandwidth, transfer: $transfer}[$test.kind])
                  | select(length > 0) | row($test) ] },
      once: [$tests[] | select(.repeats <= 1) | .title | f::cell] }
  | .once_line = (if .once == [] then ""
                  else "Measured once, so that nothing can be said of their repeatability: \(.once | f::names(8))." end)
  | del(.once);
