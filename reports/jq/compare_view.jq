# comparison.json -> Markdown.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "digits" as digits;
import "common" as _;
def cell: if . == null then "-" elif . < 10 then digits::fixed(3) else digits::fixed(2) end;
def range: if . == null then "-" else "\(.low | cell) to \(.high | cell) (\(.of))" end;

"# \(.a.run) and \(.b.run)", "",
"A: \(.a.run), \(.a.verdict), scope \(.a.scope). B: \(.b.run), \(.b.verdict), scope \(.b.scope). \(.method).", "",
"| Figure | Unit | A | A, 95 % | B | B, 95 % | Change | |", "| --- | --- | ---: | --- | ---: | --- | ---: | --- |",
(.rows[] | "| \(.figure) | \(.unit) | \(.a | cell) | \(.a_interval | range) | \(.b | cell) | \(.b_interval | range) | \(.change_percent | digits::fixed(1)) % | \(.words) |"),
(select(.refused != []) | "", "Not compared, as they were measured otherwise:", "", (.refused[] | "- \(.figure): \(.reason)")),
(select(.only_a + .only_b != []) | "", "Measured by A only: \(.only_a | length) figures; by B only: \(.only_b | length).")
