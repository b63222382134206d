# Parts of records + what only the plan knows -> records, one for each `expect` entry of a flow, in its order.
import "perch" as perch;
import "iperf3" as iperf3;
import "iperf" as iperf;
import "perftest" as perftest;
import "cxi" as cxi;
import "outcome" as outcome;
import "counters" as counted;
import "path" as path;
import "packets" as packets;
import "matched" as matching;
import "recorded" as recorded;

# What the agents counted on each host over the whole flow, where they did: every size of the flow carries it.
def counters($client; $server):
  if $client == null and $server == null then null
  else {client: ($client | counted::as_recorded), server: ($server | counted::as_recorded)} end;

def parts($flow; $files; $versions):
  if $flow.tool == "perch" then perch::parts($files.stdout)
  elif $flow.tool == "iperf3" then iperf3::parts($files.stdout)
  elif $flow.tool == "iperf" then iperf::parts($files.stdout; $files.stderr; $flow.client_argv; $versions.iperf)
  elif $flow.tool == "perftest" then perftest::parts($files.stdout; $files.stderr; $flow; $versions.perftest)
  elif $flow.tool == "cxi" then cxi::parts($files.stdout; $files.stderr; $flow; $versions.cxi)
  else [{status: "error", error: {code: 6, message: "no reader for the tool \($flow.tool | tojson)", traffic: false}}]
  end;

# What a flow's files tell, before the other flows of its round have been heard: {flow, parts, both, ends}.
# $shared: another flow of the round uses one of the two hosts.
def flow_parts($plan; $hosts; $flow; $shared; $files):
  ($hosts[$flow.client] // {}) as $host
  | outcome::read_side($files.client) as $client
  | outcome::read_side($files.server) as $server
  | outcome::belongs($plan.run; $flow; $client; $server) as $foreign
  | (if $foreign != null then $foreign else outcome::cause($flow; $client; $server; $host.agent; $files.stderr) end) as $cause
  | ( if $foreign != null or ($cause != null and $cause.state == "not_measured") then []
      elif $cause != null and $flow.tool != "perch" and ($files.stdout | all(test("^\\s*$"))) then []
      else parts($flow; $files; $host.versions // {}) end ) as $parts
  | ( matching::matched($flow; $parts; $cause) | matching::misfit($parts) | matching::with_rest($flow; $parts) | matching::with_exit($cause)
      | matching::with_server(outcome::server_cause($flow; $server)) ) as $out
  | ($client.counters | counted::counted) as $of_client
  | ($server.counters | counted::counted) as $of_server
  | path::proof($plan; $hosts; $flow; $out; $of_client; $of_server; $shared) as $path
  | { $flow, parts: $out, ends: {client: $client.counters, server: $server.counters},
      both: { counters: counters($of_client; $of_server), $path,
              packets: packets::of_flow($path.ports.client; $path.ports.server; $shared) } };

# The same as records; input: flow_parts(), with the path's last word.
def flow_records($plan; $hosts):
  .flow as $flow
  | (.both | .path |= del(.bounds, .ports)) as $both
  | .parts as $parts
  | range(0; $parts | length) as $i
  | $parts[$i] + $both | recorded::record($plan; $hosts; $flow; $flow.expect[$i]);
