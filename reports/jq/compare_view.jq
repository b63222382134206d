# comparison.json -> what the report of a comparison shows, as finished text.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "format" as f;
import "digits" as digits;
import "common" as _;
import "words" as _;
import "table" as table;

def value: if . == null then "-" elif . < 10 then digits::fixed(3) else digits::fixed(2) end;
def range: if . == null then "-" else "\(.low | value) to \(.high | value) (\(.of))" end;
def side: "\(.run | f::code), \(.verdict), scope \(.scope), measured \(.created // "at an unknown time" | f::cell)";
def only($name): if . == [] then empty else "Measured by \($name) only: \(length | f::plural("figure"))." end;

{ title: "\(.a.run) and \(.b.run)" | f::cell, sides: ["A: \(.a | side).", "B: \(.b | side)."], method,
  table:
    { columns: [ table::left("Figure"), table::left("Unit"), table::right("A"), table::left("A, 95 %"), table::right("B"), table::left("B, 95 %"),
                 table::right("Change"), table::left("Verdict") ],
      rows: [ .rows[] | [ (.figure | f::cell), (.unit | f::unit_sign), (.a | value), (.a_interval | range), (.b | value), (.b_interval | range),
                          "\(.change_percent | digits::fixed(1)) %", .words ] ] },
  refused: (.refused | map("\(.figure | f::cell): \(.reason | f::cell)")),
  only: [(.only_a | only("A")), (.only_b | only("B"))] }
