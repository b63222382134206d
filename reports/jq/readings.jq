# A flow's files -> what they say: its parts, and how it ended. Nothing here knows yet what the plan expects.
# read.jq reads every tool; read_ip.jq is a smaller program for the many plans without RDMA's own tools.
import "perch" as perch;
import "iperf3" as iperf3;
import "iperf" as iperf;
import "outcome" as outcome;

# Collecting up to the mark keeps one flow in memory, however long the run; jq appends to [...] without copying.
def next_flow($mark): [label $stop | inputs | if startswith($mark) then ., break $stop else . end];

# Single samples (--report-all) are by far the longest output and make no record.
def of($path): ($path + "\t") as $p | map(select(startswith($p)) | ltrimstr($p));

def files($flow):
  (if $flow.retry then "retry/flows" else "flows" end) as $flows
  | "raw/\($flow.client)/\($flows)/\($flow.id)/client." as $client
  | { client: of($client + "json"),
      stdout: (of($client + "stdout") | if $flow.tool == "perch" then map(select(startswith("{\"kind\":\"sample\"") | not)) else . end),
      stderr: of($client + "stderr"),
      server: of("raw/\($flow.server)/\($flows)/\($flow.id)/server.json") };

# Input: {flow, files, versions}. others: the same of another tool.
def parts(others):
  .flow.tool as $tool
  | if $tool == "perch" then perch::parts(.files.stdout)
    elif $tool == "iperf3" then iperf3::parts(.files.stdout)
    elif $tool == "iperf" then iperf::parts(.files.stdout; .files.stderr; .flow.client_argv; .versions.iperf)
    else others end;

def no_reader:
  [{status: "error", error: {code: 6, message: "no reader for the tool \(.flow.tool | tojson)", traffic: false}}];

# When an end began and ended by its host's clock, and how long its process lived.
def times: if type == "object" then {started, ended, elapsed_s} else null end;

# Input: the files' lines. $host: what hosts.jq tells of the client's.
# A stream of documents: the parts, each with a status, then {ended: {cause, server_cause}, client, server, times}, with what
# the agents counted at both ends and when. None lies deeper in them than where it was read, for jq has a limit of depth.
def of_flow($run; $flow; $host; others):
  . as $files
  | outcome::read_side(.client) as $client
  | outcome::read_side(.server) as $server
  | outcome::belongs($run; $flow; $client; $server) as $foreign
  | (if $foreign != null then $foreign else outcome::cause($flow; $client; $server; $host.agent; $files.stderr) end) as $cause
  | ( if $foreign != null or ($cause != null and $cause.state == "not_measured") then []
      elif $cause != null and $flow.tool != "perch" and ($files.stdout | all(test("^\\s*$"))) then []
      else {$flow, $files, versions: ($host.versions // {})} | parts(others) end )[],
    { ended: {$cause, server_cause: outcome::server_cause($flow; $server)}, client: $client.counters, server: $server.counters,
      times: {client: ($client | times), server: ($server | times)} };

# All flows in one pass. Input (-nR): the lines of all files in the order of planned::flow_files, each as "path<TAB>line",
# each flow ended by a line of the mark.
def flows($plan; $hosts; $mark; others):
  $plan.rounds[].flows[] as $flow
  | next_flow($mark) | files($flow)
  | of_flow($plan.run; $flow; $hosts[$flow.client] // {}; others);
