# raw/ -> records.jsonl in one pass. Input (-nR): the lines of all files in the order of planned::flow_files, each as
# "path<TAB>line", each flow ended by a line of the mark. $plan, $hosts: one-element arrays (--slurpfile).
import "planned" as planned;
import "records" as records;
import "round" as round;

# Collecting up to the mark keeps one flow in memory, however long the run; jq appends to [...] without copying.
def next_flow($mark): [label $stop | inputs | if startswith($mark) then ., break $stop else . end];

# Single samples (--report-all) are by far the longest output and make no record.
def of($path): ($path + "\t") as $p | map(select(startswith($p)) | ltrimstr($p));

def flow_input($flow):
  "raw/\($flow.client)/flows/\($flow.id)/client." as $client
  | { client: of($client + "json"),
      stdout: (of($client + "stdout") | if $flow.tool == "perch" then map(select(startswith("{\"kind\":\"sample\"") | not)) else . end),
      stderr: of($client + "stderr"),
      server: of("raw/\($flow.server)/flows/\($flow.id)/server.json") };

# One flow at a time. Where flows of a round share a host, all of that round are heard before the first is written: the
# host's counters hold the bytes of all.
$plan[0] as $plan
| $hosts[0] as $hosts
| $plan.rounds[] as $round
| ([$round.flows[] | .client, .server] | group_by(.) | map(select(length > 1)[0])) as $busy
| def heard($flow):
    any($flow.client, $flow.server; . as $h | $busy | index([$h]) != null) as $shared
    | next_flow($mark) | flow_input($flow) as $files
    | records::flow_parts($plan; $hosts; $flow; $shared; $files);
  if $busy == [] then $round.flows[] as $flow | heard($flow)
  else [$round.flows[] as $flow | heard($flow)] | round::judged[] end
| records::flow_records($plan; $hosts)
