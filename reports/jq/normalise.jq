# What the outputs say -> records.jsonl in one pass. Input (-n): the documents that read.jq makes, flow by flow.
# $plan, $hosts: one-element arrays (--slurpfile).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "records" as records;
import "packets" as _;
import "events" as _;
import "ends" as _;
import "matched" as _;
import "asked_transfer" as _;
import "transfer_sum" as _;
import "transfer" as _;
import "recorded" as _;
import "planned" as _;
import "asked" as _;
import "scope" as _;
import "link_facts" as _;
import "round" as round;
import "counters" as _;
import "path" as _;
import "digits" as _;
import "wire" as _;
import "common" as c;
import "claims" as _;

# One flow in memory, however long the run.
def next_flow: [label $stop | inputs | ., if has("ended") then break $stop else empty end];

# The flows, each with what it needs to know of its round. Where flows of a round share a host, all of that round are heard
# before the first is written: the host's counters hold the bytes of all.
def turns:
  .rounds[]
  | .flows as $flows
  | ([$flows[] | .client, .server] | group_by(.) | map(select(length > 1)[0])) as $busy
  | range(0; $flows | length) as $i
  | $flows[$i]
  | {flow: ., shared: (any(.client, .server; . as $h | $busy | index([$h]) != null)), wait: ($busy != []), last: ($i + 1 == ($flows | length))};

# One flow at a time.
$plan[0] as $plan
| ($hosts[0] | records::with_facts($plan)) as $hosts
| foreach ($plan | turns) as $turn ({known: {}, held: [], out: []};
    ($turn.flow as $flow | .known[$flow.test] as $known | next_flow | records::flow_parts($plan; $hosts; $flow; $turn.shared; $turn.wait; $known)) as $told
    | (if $told.known == null then . else setpath(["known", $turn.flow.test]; $told.known) end)
    | if $turn.wait | not then .out = [$told]
      elif $turn.last then .out = (.held + [$told] | round::judged) | .held = []
      else .held += [$told] | .out = [] end;
    .out[])
| records::flow_records($plan; $hosts) | c::spelt
