# What a flow's outputs say (readings.jq) + what only the plan knows -> records, one for each `expect` entry of a flow, in
# its order.
import "counters" as counted;
import "path" as path;
import "packets" as packets;
import "matched" as matching;
import "recorded" as recorded;

# What the agents counted on each host over the whole flow, where they did: every size of the flow carries it.
def counters($client; $server):
  if $client == null and $server == null then null
  else {client: ($client | counted::as_recorded), server: ($server | counted::as_recorded)} end;

# A flow's parts before the other flows of its round have been heard: {flow, parts, both, ends}. Input: the documents that
# readings.jq made of it, in an array. $shared: another flow of the round uses one of the two hosts.
def flow_parts($plan; $hosts; $flow; $shared):
  .[-1] as $last
  | .[:-1] as $parts
  | if $last.ended == null then error("the outputs of \($flow.id) were not read to their end") else $last.ended.cause end
  | . as $cause
  | ( matching::matched($flow; $parts; $cause) | matching::misfit($parts) | matching::with_rest($flow; $parts) | matching::with_exit($cause)
      | matching::with_server($last.ended.server_cause) ) as $out
  | ($last.client | counted::counted) as $of_client
  | ($last.server | counted::counted) as $of_server
  | path::proof($plan; $hosts; $flow; $out; $of_client; $of_server; $shared) as $path
  | { $flow, parts: $out, ends: {client: $last.client, server: $last.server},
      both: { counters: counters($of_client; $of_server), $path,
              packets: packets::of_flow($path.ports.client; $path.ports.server; $shared) } };

# The same as records; input: flow_parts(), with the path's last word.
def flow_records($plan; $hosts):
  .flow as $flow
  | (.both | .path |= del(.bounds, .ports)) as $both
  | .parts as $parts
  | range(0; $parts | length) as $i
  | $parts[$i] + $both | recorded::record($plan; $hosts; $flow; $flow.expect[$i]);
