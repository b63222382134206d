# The first of the programs of `prepare` that tell of the records: what gist.jq has made of them -> one document of what they
# hold, which view_results.jq and view_conclusions.jq wait for. Input (-n): its documents. $plan: --slurpfile of plan_digest.jq's.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "anomaly_rows" as anomaly_rows;
import "flow_ranks" as flow_ranks;
import "flow_view" as _;
import "interval_view" as interval_view;
import "loaded_view" as loaded_view;
import "figures" as _;
import "passed" as passed;
import "path_view" as path_view;
import "repeat_view" as repeat_view;
import "format" as _;
import "digits" as _;
import "table" as _;
import "series" as series;
import "transfer_rows" as _;
import "ceiling" as _;
import "comparison" as _;
import "common" as _;
import "words" as words;

# Of each test what its RDMA devices counted of packets; a flow counts once.
def packets:
  passed::entries("packets")
  | map({key: .key[0], value: (.value | {flows: .[0], sent: .[1], lost: .[2], retries: .[3], whole: (.[4] == 0)})}) | from_entries;

# [[device, layer, rate, MTU, hosts]], the hosts in words
def ends:
  [passed::entries("end")[].key] | group_by(.[1:]) | map(.[0][1:] + [map(.[0]) | unique | words::names(8)]);

$plan[0] as $plan
| [$plan.counted.tests[] | {name, title, kind, flows, repeats}] as $tests
| [inputs] as $all
| ($all | passed::state) as $state
| ($all | passed::rows) as $rows
| ($rows | series::transfers) as $transfers
| ($rows | series::places([$tests[] | select(.repeats > 1) | {key: .name, value: true}] | from_entries)) as $places
| ($state | passed::entries("terms") | map({key: .key[0], value}) | from_entries) as $terms
| { $tests, by_test: series::by_test($state; $places; $transfers), $terms,
    loaded: loaded_view::measured($plan.counted.beside // []; $places; $terms; $tests; series::latency_columns; series::bandwidth_columns),
    ends: ($state | ends), packets: ($state | packets),
    ranked: flow_ranks::ranked($places; $tests), course: ($state | interval_view::points($tests)), odd: ($state | anomaly_rows::of_records),
    repeatability: repeat_view::section($places; $transfers; $tests),
    path: ($state | path_view::table($tests)), moved: ($state | path_view::moved($tests)) }
