# What a report shows of a run beside its records: first screen, device under test, topology, configuration, checks,
# comparison. One of the three programs of `prepare`; each makes keys of its own. Input (-n): none.
# $plan (of plan_digest.jq), $verdict, $environments, $limits: --slurpfile.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "comparison_tables" as comparison_tables;
import "configuration_view" as configuration_view;
import "device_view" as device_view;
import "environment" as environment;
import "first_screen" as first_screen;
import "planned" as _;
import "plan_view" as plan_view;
import "switch_view" as switch_view;
import "topology_view" as topology_view;
import "transfer_comparison" as transfer_comparison;
import "figure_words" as _;
import "format" as f;
import "digits" as _;
import "common" as _;
import "words" as _;
import "table" as _;

# A transfer that is missing is one of several of its size.
def missing_size:
  (.size_bytes | f::size) + (if .batch != null then ", batch \(.batch)" else "" end)
  + (if .pair != null then ", pair \(.pair)" elif .kind == "sum" then ", all pairs" else "" end);

def missing: { rows: (.[:50] | map({flow: (.flow | f::code), size: (.expect | missing_size), message: (.message | f::cell)})), more: ([length - 50, 0] | max) };

$plan[0] as $plan
| $verdict[0] as $verdict
| $plan.counted as $flows
| ($verdict | first_screen::findings) as $findings
| device_view::section($plan; $verdict; $environments) as $devices
| ($verdict.coverage.missing | missing) as $missing
| { title: "Fabric report: \($plan.suite.title // $plan.suite.name | f::cell)",
    run: $plan.run, created: $plan.created, verdict: $verdict.verdict,
    verdict_line: ($verdict | first_screen::verdict_line), what_line: first_screen::what_line($plan; $flows),
    device_line: ($devices | device_view::line),
    coverage_line: ($verdict | first_screen::coverage_line), excluded_line: first_screen::excluded_line($plan),
    findings: $findings[:3], findings_more: ([($findings | length) - 3, 0] | max),
    comparison: { tables: ($verdict.comparison | comparison_tables::comparison_tables + transfer_comparison::tables),
                  others: ($verdict.comparison | comparison_tables::others_table),
                  statistic: $verdict.comparison.statistic,
                  refused: ([$verdict.comparison.refused[].reason] | unique | map(f::cell)) },
    agreement: ($verdict.agreement // [] | comparison_tables::agreement_table),
    devices: $devices, topology: topology_view::section($plan; $verdict; $flows),
    configuration: configuration_view::section($plan; $verdict; $environments; $limits[0]),
    switches: ($verdict | switch_view::section),
    checks: ($verdict | first_screen::table_of_checks(false)), host_checks: ($verdict | first_screen::table_of_checks(true)),
    missing: $missing.rows, missing_more: $missing.more,
    excluded: ($plan.excluded | map({test: (.test | f::code), reason: (.reason | f::cell)})),
    environment: environment::rows($environments), commands: ($flows.tests | plan_view::commands) }
