# The first of the programs of `prepare` that tell of the records: one pass over them -> one document of what they hold, which
# view_results.jq and view_conclusions.jq wait for. Input (-n): the records, one by one. $plan: --slurpfile.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "flow_view" as flow_view;
import "plan_view" as plan_view;
import "planned" as _;
import "repeat_view" as repeat_view;
import "series" as series;
import "figures" as _;
import "anomaly_rows" as anomaly_rows;
import "interval_view" as interval_view;
import "path_view" as path_view;
import "format" as _;
import "digits" as _;
import "table" as _;
import "counters" as _;
import "transfer_rows" as transfer_rows;
import "ceiling" as _;
import "comparison" as _;
import "common" as _;
import "words" as words;

def terms: [to_entries[] | select(.key | startswith("terms\t")) | .key |= .[6:]] | from_entries;

# Of each test what its RDMA devices counted of packets; a flow counts once.
def packets: [to_entries[] | select(.key | startswith("packets\t")) | {test: (.key | split("\t")[1]), counted: .value}];
def packets_of_tests:
  packets | group_by(.test)
  | map({key: .[0].test,
         value: (map(.counted) | {flows: length, sent: (map(.sent) | add), lost: (map(.lost // 0) | add), retries: (map(.retries // 0) | add),
                                  whole: all(.[]; .lost != null and .retries != null)})})
  | from_entries;

# [[device, layer, rate, MTU, hosts]], the hosts in words
def ends:
  [to_entries[] | select(.key | startswith("end\t")) | .key | split("\t")[1:]]
  | group_by(.[1:]) | map(.[0][1:] + [map(.[0]) | unique | words::names(8)]);

$plan[0] as $plan
| ($plan | plan_view::of_tests | [.[] | {name, title, kind, flows, repeats}]) as $tests
| series::collect(inputs) as $series
| ($series | series::rows) as $rows
| { tests: $tests, by_test: ($series | series::by_test($rows)), terms: ($series | terms), ends: ($series | ends), packets: ($series | packets_of_tests),
    ranked: (flow_view::ranked($rows; $tests; series::latency_columns; series::bandwidth_columns)),
    course: ($series | interval_view::points($tests)), odd: ($series | anomaly_rows::of_records),
    repeatability: ($series | repeat_view::section($rows; $tests; series::latency_columns; series::bandwidth_columns; transfer_rows::columns)),
    path: ($series | path_view::table($tests)), moved: ($series | path_view::moved($tests)) }
