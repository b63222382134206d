# What a report concludes from what was measured: key findings, readiness, uses, RDMA against TCP on one page. One of the
# programs of `prepare`. Input: what view_measured.jq made. $verdict, $limits, $history: --slurpfile.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "against_tcp" as against_tcp;
import "evolution_view" as evolution_view;
import "figures" as _;
import "comparison" as _;
import "key_findings" as key_findings;
import "readiness" as readiness;
import "first_screen" as _;
import "planned" as _;
import "table" as table;
import "uses" as uses;
import "figure_words" as _;
import "format" as _;
import "digits" as _;
import "common" as _;
import "words" as _;
import "measured" as _;

. as $measured
| $verdict[0] as $verdict
| readiness::judged($verdict.checks; $limits[0]; $measured) as $criteria
| uses::section($criteria; $measured; $verdict) as $uses
| { key_findings: key_findings::all($verdict; evolution_view::section($history; .tests).heads),
    readiness: { headline: ($criteria | readiness::headline($verdict)),
                 table: { columns: ["Criterion", "State", "Evidence" | table::left(.)],
                          rows: [$criteria[] | [.title, readiness::state_words($verdict.scope), .evidence]] } },
    uses: { line: $uses.line, table: {columns: ["Use", "Recommended", "Why" | table::left(.)], rows: $uses.rows} },
    against_tcp: against_tcp::section($verdict.comparison; $measured) }
