# A flow's files -> what they say: its parts, and how it ended. Nothing here knows yet what the plan expects.
import "perch" as perch;
import "iperf3" as iperf3;
import "iperf" as iperf;
import "perftest" as perftest;
import "cxi" as cxi;
import "outcome" as outcome;

def parts($flow; $files; $versions):
  if $flow.tool == "perch" then perch::parts($files.stdout)
  elif $flow.tool == "iperf3" then iperf3::parts($files.stdout)
  elif $flow.tool == "iperf" then iperf::parts($files.stdout; $files.stderr; $flow.client_argv; $versions.iperf)
  elif $flow.tool == "perftest" then perftest::parts($files.stdout; $files.stderr; $flow; $versions.perftest)
  elif $flow.tool == "cxi" then cxi::parts($files.stdout; $files.stderr; $flow; $versions.cxi)
  else [{status: "error", error: {code: 6, message: "no reader for the tool \($flow.tool | tojson)", traffic: false}}]
  end;

# Input: {client, stdout, stderr, server}, the lines of each file. $host: what hosts.jq tells of the client's.
# A stream of documents: the parts, each with a status, then {ended: {cause, server_cause}, client, server}, with what the
# agents counted at both ends. None lies deeper in them than where it was read, for jq has a limit of depth.
def of_flow($run; $flow; $host):
  . as $files
  | outcome::read_side(.client) as $client
  | outcome::read_side(.server) as $server
  | outcome::belongs($run; $flow; $client; $server) as $foreign
  | (if $foreign != null then $foreign else outcome::cause($flow; $client; $server; $host.agent; $files.stderr) end) as $cause
  | ( if $foreign != null or ($cause != null and $cause.state == "not_measured") then []
      elif $cause != null and $flow.tool != "perch" and ($files.stdout | all(test("^\\s*$"))) then []
      else parts($flow; $files; $host.versions // {}) end )[],
    { ended: {$cause, server_cause: outcome::server_cause($flow; $server)}, client: $client.counters, server: $server.counters };
