# What a report shows of a soak: tables, and charts over time. One of the programs of `prepare`, for a run with a soak alone.
# Input (-n): the rows of soak_rows.jq. $verdict, $plan (of plan_digest.jq): --slurpfile; $unread: why there are no rows, or null.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "soak_charts" as soak_charts;
import "soak_lines" as _;
import "picture" as _;
import "soak_view" as soak_view;
import "first_screen" as _;
import "planned" as _;
import "soak_chosen" as _;
import "soak_words" as _;
import "format" as _;
import "digits" as _;
import "common" as _;
import "words" as _;
import "table" as _;

[inputs] as $rows
| $verdict[0].soak
| soak_charts::all($rows; $plan[0].counted.tests | map({name, title})) as $charts
| {soak: soak_view::section($charts; ($plan[0].counted.tests | map({key: .name, value: .title}) | from_entries); $unread)}
