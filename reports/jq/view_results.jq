# What a report shows of the records: tables and charts of every test, anomalies, evolution, the summary. One of the programs of
# `prepare`. Input (-n): what view_measured.jq made, and then what `perch hist --distribution` said, if anything. $verdict:
# --slurpfile; $references: --slurpfile of {file, curve} each, from the run's inputs/reference; $history:
# --slurpfile of its inputs/history.jsonl.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "anomaly_view" as anomaly_view;
import "charts" as charts;
import "picture" as _;
import "evolution_view" as evolution_view;
import "measured" as _;
import "first_screen" as first_screen;
import "planned" as _;
import "flow_view" as flow_view;
import "loaded_view" as loaded_view;
import "figures" as _;
import "tables" as tables;
import "figure_words" as _;
import "table" as table;
import "transfer_view" as transfer_view;
import "format" as f;
import "digits" as _;
import "words" as _;
import "reference" as reference;
import "transfer_rows" as _;
import "ceiling" as _;
import "comparison" as _;
import "common" as _;

def scope_line($by_test):
  ([$by_test[].about.layer] | map(select(. != null)) | unique) as $layers
  | (if ($layers | length) > 0 and all($layers[]; . == "loopback" or . == "shm") then
       " Everything stayed inside one machine (\($layers | join(", ")))."
     else "" end) as $inside
  | (if any(.checks[]; .id == "imported") then "**Imported: measured elsewhere, and not seen by Perch.** " else "" end) as $imported
  | ([$by_test[] | select(.about.scope == "software")] | length) as $software
  | if .scope == "hardware" then
      "Scope: hardware." + if $software == 0 then "" else " The kernel's TCP was measured beside it, as the baseline (\($software | f::plural("test")))." end
    elif .scope == "simulated" then "**Scope: simulated. This run is no proof of hardware.**" + $inside
    elif .scope == "imported" then "**Scope: imported. This run is no proof of hardware.**"
    else "**Scope: software. Software providers and the kernel's TCP were measured; this run is no proof of hardware.**" + $inside
    end
  | $imported + .;

# ---- the ends, as the flows saw them ----

def seen:
  { columns: [table::left("Device"), table::left("Layer"), table::right("Rate, Gb/s"), table::right("MTU"), table::left("Hosts")],
    rows: (.[:60] | map(map(f::cell))) } | table::slim;

# ---- summary ----

# A percentile without ten samples above it is not reported, and the mean stands in for the median.
def latency_summary($s):
  (if $s.p50 == null then "mean \($s.mean | f::figure) µs" else "median \($s.p50 | f::figure) µs" end)
  + (if $s.p99 == null then " (no p99: too few samples in a repeat)" else ", p99 \($s.p99 | f::figure) µs" end)
  + " at \($s.size_bytes | f::size)";
def bandwidth_summary($s): "\($s.gbit_s | f::figure) Gb/s at \($s.size_bytes | f::size)";
def transfer_summary($s):
  "\($s.sum.gbyte_s | f::figure) GB/s at \($s.size_bytes | f::size), batch \($s.batch | f::whole)";
def size_summary($kind; $s):
  if $kind == "latency" then latency_summary($s) elif $kind == "transfer" then transfer_summary($s)
  else bandwidth_summary($s) end;

# A test's worst check, of those that judged it; ids end in the test's name, or name one of its flows.
def worst_of($checks; $test):
  [$checks[] | select((.id | endswith("/" + $test)) or (.id | startswith("flow/" + $test + "/") or (startswith("path/" + $test + "/")))) | .status]
  | map(select(. != "not_judged"))
  | if length == 0 then "not_judged" else min_by(first_screen::gravity) end;

# A soak that has not ended has no record of the whole yet: the worst of its flows so far, where each has a figure.
def so_far($flows):
  ($flows | map(.figures.bandwidth.mean)) as $means | ($flows | map(.figures.latency.p99_highest)) as $tails
  | if $flows == [] then "not measured"
    elif all($means[]; . != null) then "so far \($means | min | f::figure) Gb/s in the mean"
    elif all($tails[]; . != null) then "so far a p99 of \($tails | max | f::figure) µs at most"
    else "not measured" end;

def summary($tests; $by_test; $verdict):
  $verdict.checks as $checks |
  { columns: [table::left("Test"), table::left("Smallest message"), table::left("Largest message"), table::left("Checks")],
    rows: [ $tests[] | . as $t | $by_test[$t.name] as $m
            | [ ($t.title | f::cell),
                (if $m == null then so_far([$verdict.soak.flows[]? | select(.test == $t.name)]) else size_summary($t.kind; $m.sizes[0]) end),
                (if $m == null or ($m.sizes | length) < 2 then "-" else size_summary($t.kind; $m.sizes[-1]) end),
                (worst_of($checks; $t.name) | first_screen::status_words[.] // .) ] ] };

$verdict[0] as $verdict
| input as $measured
| [inputs] as $distributions
| $measured
| .tests as $tests
| .by_test as $by_test
| evolution_view::section($history; $tests) as $evolution
| { $distributions, $distribution_size, references: ($references | reference::usable), ranked: .ranked,
    map: (.ranked | flow_view::map_of), course: .course, loaded: (.loaded | loaded_view::points), evolution: $evolution.chart } as $more
| ($by_test | charts::all($tests; $more)) as $charts
| { scope_line: ($verdict | scope_line($by_test)),
    summary: summary($tests; $by_test; $verdict),
    tests: ($by_test | tables::of_tests($tests; $measured.packets)),
    seen: (.ends | seen),
    slowest: (.ranked | flow_view::slowest_table),
    loaded: (.loaded | loaded_view::section),
    anomalies: (.odd | anomaly_view::section($verdict.checks)),
    repeatability: .repeatability, evolution: ($evolution | del(.chart, .heads)),
    path: .path, moved: .moved,
    charts: $charts, references: transfer_view::reference_lines($references; $charts) }
