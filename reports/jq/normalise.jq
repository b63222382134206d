# What the outputs say -> records.jsonl in one pass. Input (-n): the documents that read.jq makes, flow by flow.
# $plan, $hosts: one-element arrays (--slurpfile).
import "records" as records;
import "round" as round;

# One flow in memory, however long the run.
def next_flow: [label $stop | inputs | ., if has("ended") then break $stop else empty end];

# One flow at a time. Where flows of a round share a host, all of that round are heard before the first is written: the
# host's counters hold the bytes of all.
$plan[0] as $plan
| $hosts[0] as $hosts
| $plan.rounds[] as $round
| ([$round.flows[] | .client, .server] | group_by(.) | map(select(length > 1)[0])) as $busy
| def heard($flow):
    any($flow.client, $flow.server; . as $h | $busy | index([$h]) != null) as $shared
    | next_flow | records::flow_parts($plan; $hosts; $flow; $shared);
  if $busy == [] then $round.flows[] as $flow | heard($flow)
  else [$round.flows[] as $flow | heard($flow)] | round::judged[] end
| records::flow_records($plan; $hosts)
