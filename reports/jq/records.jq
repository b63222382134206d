# What a flow's outputs say (readings.jq) + what only the plan knows -> records, one for each `expect` entry of a flow, in
# its order.
import "counters" as counted;
import "path" as path;
import "packets" as packets;
import "events" as events;
import "ends" as ends;
import "asked" as asked;
import "matched" as matching;
import "recorded" as recorded;
import "link_facts" as link_facts;

# What the agents counted on each host over the whole flow, where they did: every size of the flow carries it.
def counters($client; $server):
  if $client == null and $server == null then null
  else {client: ($client | counted::as_recorded), server: ($server | counted::as_recorded)} end;

# The parts that the plan expects. Most flows of a large run owe one record, and left one, as they should.
def expected_parts($flow; $parts; $cause; $server_cause; $addresses; $known):
  if $cause == null and $server_cause == null and ($parts | length) == 1 and ($flow.expect | length) == 1 and $flow.kind != "transfer"
     and ($parts[0] | .status == "ok" and .params.size_bytes != null and matching::same_as($flow.expect[0])) then
    $parts[0]
    | asked::likeness($flow; $addresses) as $likeness
    | [asked::as_planned($flow; $likeness; $known[$flow.test]) | if .status == "ok" then .likeness = $likeness else . end]
  else
    matching::matched($flow; $parts; $cause) | matching::misfit($parts) | matching::with_rest($flow; $parts) | matching::with_exit($cause)
    | matching::with_server($server_cause)
  end;

# A flow's parts before the other flows of its round have been heard: {flow, parts, both, ends}. Input: the documents that
# readings.jq made of it, in an array. $shared: another flow of the round uses one of the two hosts.
# $known: by test, the likeness of the last part that was as planned.
def flow_parts($plan; $hosts; $flow; $shared; $known):
  .[-1] as $last
  | .[:-1] as $parts
  | if $last.ended == null then error("the outputs of \($flow.id) were not read to their end") else $last.ended.cause end
  | . as $cause
  | ( expected_parts($flow; $parts; $cause; $last.ended.server_cause;
        [$plan.hosts[$flow.client].address, $plan.hosts[$flow.server].address]; $known)
      | ends::within_process($last.times.client) ) as $out
  | ($last.client | counted::counted) as $of_client
  | ($last.server | counted::counted) as $of_server
  | path::proof($plan; $hosts; $flow; $out; $of_client; $of_server; $shared) as $path
  | { $flow, parts: $out, ends: {client: $last.client, server: $last.server},
      both: { routes: {client: ($of_client.route // $of_client.address), server: ($of_server.route // $of_server.address)},
              counters: counters($of_client; $of_server), $path,
              events: ($flow | events::of_flow($path; any($out[]; .status == "ok"))), clock_skew_s: ends::skew_s($last.times; $last.client; $last.server; $out),
              packets: packets::of_flow($path.ports.client; $path.ports.server; $shared) } };

# The same as records; input: flow_parts(), with the path's last word.
def flow_records($plan; $hosts):
  .flow as $flow
  | (.both + {path: (.both.path | {claimed_bytes, client_device_bytes, server_device_bytes, state, reason, counted})}) as $both
  | .parts as $parts
  | range(0; $parts | length) as $i
  | $parts[$i] + $both | .link = link_facts::known($hosts; $flow; .routes) | recorded::record($plan; $hosts; $flow; $flow.expect[$i]);
