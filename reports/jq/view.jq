# The run -> report.json: everything that the template shows, as finished text. Input (-n): the records, one by one.
# $plan, $verdict, $environments: --slurpfile; $distributions: --slurpfile of what `perch hist --distribution` said;
# $references: --slurpfile of {file, curve} each, from the run's inputs/reference.
import "planned" as planned;
import "series" as series;
import "tables" as tables;
import "transfer_comparison" as transfer_comparison;
import "charts" as charts;
import "environment" as environment;
import "path_view" as path_view;
import "transfer_view" as transfer_view;
import "reference" as reference;
import "switch_view" as switch_view;
import "format" as f;

def status_words: {pass: "pass", fail: "FAIL", inconclusive: "INCONCLUSIVE", advisory: "advisory", not_judged: "not judged"};
def gravity: {fail: 0, inconclusive: 1, advisory: 2, not_judged: 3, pass: 4}[.];

# ---- first screen ----

def verdict_line:
  { PASS: "✅ **PASS**: every planned record was measured and lies within its limits.",
    FAIL: "❌ **FAIL**: a limit was missed, a payload was corrupted, or a peer was lost while it was measured.",
    INCONCLUSIVE: "⚠️ **INCONCLUSIVE**: something kept part of the plan from being measured or judged." }[.verdict];

def scope_line($by_test):
  ([$by_test[].about.layer] | map(select(. != null)) | unique) as $layers
  | (if ($layers | length) > 0 and all($layers[]; . == "loopback" or . == "shm") then
       " Everything stayed inside one machine (\($layers | join(", ")))."
     else "" end) as $inside
  | if .scope == "hardware" then "Scope: hardware."
    elif .scope == "simulated" then "**Scope: simulated. This run is no proof of hardware.**" + $inside
    elif .scope == "imported" then "**Scope: imported results, measured elsewhere by other tools.**"
    else "**Scope: software. Software providers and the kernel's TCP were measured; this run is no proof of hardware.**" + $inside
    end;

def what_line($plan):
  ($plan.hosts | keys_unsorted) as $hosts
  | ([$plan | planned::flows | [.client, .server]] | unique | length) as $pairs
  | "Suite *\($plan.suite.title // $plan.suite.name)*, run `\($plan.run)`: \($hosts | f::names(8)) "
    + "(\($hosts | length | f::plural("host")), \($pairs | f::plural("pair")), "
    + "\([$plan | planned::flows] | length | f::plural("flow"))), limits *\($plan.limits)*.";

def coverage_line:
  "Coverage: \(.coverage.measured | f::whole) of \(.coverage.planned | f::whole) planned records measured"
  + (if (.coverage.missing | length) == 0 then "." else ", **\(.coverage.missing | length | f::whole) missing**." end);

def excluded_line($plan):
  ([$plan.excluded // [] | .[].test] | unique) as $tests
  | if $tests == [] then "" else "**Left out of the plan**, for a host could not take part: \($tests | map("`\(f::cell)`") | f::names(8))." end;

def measured_text: .unit as $unit | .measured | f::value($unit);

def check_view:
  { id: .id, status: status_words[.status], title: (.title | f::cell), measured: (measured_text | f::cell),
    limit: (.unit as $unit | .limit | f::bound($unit) | f::cell), source: (.source | f::cell), remedy: (.remedy | f::cell),
    evidence: (.evidence | map("`" + . + "`") | f::names(3) | if . == "" then "-" else f::cell end) };

# What is said of the hosts has a table of its own: it is long, and most of it only describes them.
def is_of_hosts: .id | startswith("host_check/");

def findings:
  [.checks[] | select(.status == "fail" or .status == "inconclusive" or .status == "advisory")]
  | sort_by((.status | gravity), is_of_hosts);

def table_of_checks($of_hosts):
  [.checks[] | select(is_of_hosts == $of_hosts)] | sort_by(.status | gravity)
  | {rows: (.[:300] | map(check_view)), more: ([length - 300, 0] | max)};

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

# A test's worst check; ids end in the test's name, or name one of its flows.
def worst_of($checks; $test):
  [$checks[] | select((.id | endswith("/" + $test)) or (.id | startswith("flow/" + $test + "/") or (startswith("path/" + $test + "/")))) | .status]
  | if length == 0 then "not_judged" else min_by(gravity) end;

def summary($tests; $by_test; $checks):
  { columns: [tables::left("Test"), tables::left("Smallest message"), tables::left("Largest message"), tables::left("Checks")],
    rows: [ $tests[] | . as $t | $by_test[$t.name] as $m
            | [ ($t.title | f::cell),
                (if $m == null then "not measured" else size_summary($t.kind; $m.sizes[0]) end),
                (if $m == null or ($m.sizes | length) < 2 then "-" else size_summary($t.kind; $m.sizes[-1]) end),
                (worst_of($checks; $t.name) | status_words[.] // .) ] ] };

# ---- commands ----

def word: if test("^[A-Za-z0-9_./:=,%+@-]+$") then . else @sh end;
def command: map(tostring | word) | join(" ");

def commands($tests):
  ([planned::flows] | group_by(.test) | map({key: .[0].test, value: .}) | from_entries) as $flows
  | [$tests[].name | $flows[.]]
  | map({ title: .[0].title,
          client: (map(.client_argv | command) | unique | .[:8]),
          server: (map(.server_argv | select(length > 0) | command) | unique | .[:8]),
          more: ([map(.client_argv) | unique | length - 8, 0] | max) });

# A transfer that is missing is one of several of its size.
def missing_size:
  (.size_bytes | f::size) + (if .batch != null then ", batch \(.batch)" else "" end)
  + (if .pair != null then ", pair \(.pair)" elif .kind == "sum" then ", all pairs" else "" end);

def tests:
  reduce planned::flows as $f ([];
    if any(.[]; .name == $f.test) then . else . + [{name: $f.test, title: ($f.title // $f.test), kind: $f.kind}] end);

$plan[0] as $plan
| $verdict[0] as $verdict
| ($plan | tests) as $tests
| series::collect(inputs) as $series
| ($series | series::by_test) as $by_test
| ($verdict | findings) as $findings
| ($by_test | charts::all($tests; $distributions; $distribution_size; ($references | reference::usable))) as $charts
| { title: "Fabric report: \($plan.suite.title // $plan.suite.name)",
    run: $plan.run, created: $plan.created, verdict: $verdict.verdict,
    verdict_line: ($verdict | verdict_line), scope_line: ($verdict | scope_line($by_test)), what_line: what_line($plan),
    coverage_line: ($verdict | coverage_line), excluded_line: excluded_line($plan),
    findings: ($findings[:3] | map(check_view)), findings_more: ([($findings | length) - 3, 0] | max),
    summary: summary($tests; $by_test; $verdict.checks),
    comparison: { tables: ($verdict.comparison | tables::comparison_tables + transfer_comparison::tables),
                  others: ($verdict.comparison | tables::others_table),
                  statistic: $verdict.comparison.statistic,
                  refused: ([$verdict.comparison.refused[].reason] | unique) },
    agreement: ($verdict.agreement // [] | tables::agreement_table),
    tests: ($by_test | tables::of_tests($tests)),
    path: ($series | path_view::table($tests)), moved: ($series | path_view::moved($tests)),
    switches: ($verdict | switch_view::section),
    charts: $charts, references: transfer_view::reference_lines($references; $charts),
    checks: ($verdict | table_of_checks(false)), host_checks: ($verdict | table_of_checks(true)),
    missing: ($verdict.coverage.missing[:50]
              | map({flow, size: (.expect | missing_size), message: (.message | f::cell)})),
    missing_more: ([($verdict.coverage.missing | length) - 50, 0] | max),
    excluded: ($plan.excluded | map({test: (.test | f::cell), reason: (.reason | f::cell)})),
    environment: environment::rows($environments), commands: ($plan | commands($tests)) }
