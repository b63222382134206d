# raw/ -> what each flow's outputs say, in one pass: for each flow its parts, then one document that ends it (readings.jq).
# Input (-nR): the lines of all files in the order of planned::flow_files, each as "path<TAB>line", each flow ended by a line
# of the mark. $plan, $hosts: one-element arrays (--slurpfile). A process of its own: see README.md, "Time to begin".
import "planned" as planned;
import "readings" as readings;

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

$plan[0] as $plan
| $hosts[0] as $hosts
| $plan | planned::flows as $flow
| next_flow($mark) | flow_input($flow)
| readings::of_flow($plan.run; $flow; $hosts[$flow.client] // {})
