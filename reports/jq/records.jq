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

# {parts: those that the plan expects, likeness}. Most flows of a large run owe one record, and left one, as they should: of such
# a one the likeness is known, else it is null.
def expected_parts($flow; $parts; $cause; $server_cause; $addresses; $known):
  if $cause == null and $server_cause == null and ($parts | length) == 1 and ($flow.expect | length) == 1 and $flow.kind != "transfer"
     and ($parts[0] | .status == "ok" and .params.size_bytes != null and matching::same_as($flow.expect[0])) then
    $parts[0]
    | asked::likeness($flow; $addresses) as $likeness
    | {parts: [asked::as_planned($flow; $likeness; $known.likeness)], $likeness}
  else
    { parts: (matching::matched($flow; $parts; $cause) | matching::misfit($parts) | matching::with_rest($flow; $parts) | matching::with_exit($cause)
              | matching::with_server($server_cause)),
      likeness: null }
  end;

# What path::places(), events::counted_classes() and recorded::params() ask of a flow and its one part. $hosts: with `facts`, as
# with_facts makes them. null where the part is not as it should be. Input: the part.
def shape($plan; $hosts; $flow; $likeness; $client_built; $server_built):
  if $likeness == null or .status != "ok" then null
  else [ $likeness, $client_built, $server_built, $hosts[$flow.client].facts, $hosts[$flow.server].facts, $flow.scope, $flow.expect,
         $plan.hosts[$flow.client].fabric, .tool, .simulated, .link.layer ] end;

# Of each host what path.jq asks of it and of its plan, but for the counts of its idle time.
def with_facts($plan):
  def names:
    if type != "object" then null
    else [keys_unsorted, (.[] | if type == "object" then keys_unsorted, .netdev, (.counters | objects | keys_unsorted) else null end)] end;
  . as $hosts
  | reduce ($plan.hosts | keys_unsorted[]) as $name ($hosts;
      if .[$name] == null then .
      else
        .[$name].facts = ($hosts[$name] | [.drivers, $plan.hosts[$name].devices, (.idle | if type == "object" then (.netdev, .rdma, .cxi | names) else null end)])
      end);

# A flow's parts before the other flows of its round have been heard: {flow, parts, both, ends, known}. Input: the documents that
# readings.jq made of it, in an array. $shared: another flow of the round uses one of the two hosts.
# $wait: another flow of the round shares hosts with a third. $known: what flows of its test have taught, {likeness, client, server,
# shape, places, classes, params}; `known` is that with what this one teaches, null where that is nothing new.
def flow_parts($plan; $hosts; $flow; $shared; $wait; $known):
  .[-1] as $last
  | .[:-1] as $parts
  | if $last.ended == null then error("the outputs of \($flow.id) were not read to their end") else $last.ended.cause end
  | . as $cause
  | expected_parts($flow; $parts; $cause; $last.ended.server_cause;
      [$plan.hosts[$flow.client].address, $plan.hosts[$flow.server].address]; $known) as $expected
  | ($expected.parts | ends::within_process($last.times.client)) as $out
  | ($last.client | counted::counted_like($known.client)) as $of_client
  | ($last.server | counted::counted_like($known.server)) as $of_server
  | (if $of_client.names != null then $known.client else $last.client | counted::lesson($of_client; $known.client) end) as $client_lesson
  | (if $of_server.names != null then $known.server else $last.server | counted::lesson($of_server; $known.server) end) as $server_lesson
  | ($out[0] | shape($plan; $hosts; $flow; $expected.likeness; $client_lesson.built; $server_lesson.built)) as $shape
  | ($shape != null and $shape == $known.shape) as $alike
  | path::proof($plan; $hosts; $flow; $out; $of_client; $of_server; $shared; (if $alike then $known.places else null end); $wait) as $path
  | (if $alike then $known.classes else events::counted_classes($path.carried) end) as $classes
  | (if $alike then $known.params elif $shape == null then null else $out[0].params | recorded::params($flow.expect[0]) end) as $params
  | { $flow, parts: $out, ends: {client: $last.client, server: $last.server}, $params,
      both: { routes: {client: ($of_client.route // $of_client.address), server: ($of_server.route // $of_server.address)},
              counters: counters($of_client; $of_server), $path,
              events: ($flow | events::of_flow($path; any($out[]; .status == "ok"); $classes)),
              clock_skew_s: ends::skew_s($last.times; $last.client; $last.server; $out),
              packets: packets::of_flow($path.ports.client; $path.ports.server; $shared) },
      known: (if $alike and $of_client.names != null and $of_server.names != null then null
              else
                {client: $client_lesson, server: $server_lesson}
                + if $shape == null then $known | {likeness, shape, places, classes, params}
                  else {likeness: $expected.likeness, $shape, places: $path.places, $classes, $params} end
              end) };

# The same as records; input: flow_parts(), with the path's last word.
def flow_records($plan; $hosts):
  .flow as $flow
  | (.both + {path: (.both.path | {claimed_bytes, client_device_bytes, server_device_bytes, state, reason, counted})}) as $both
  | .params as $params
  | .parts as $parts
  | range(0; $parts | length) as $i
  | $parts[$i] + $both | .link = link_facts::known($hosts; $flow; .routes) | recorded::record($plan; $hosts; $flow; $flow.expect[$i]; $params);
