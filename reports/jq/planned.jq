# plan.json as far as judging depends on it: which flows does it owe, of which hosts, and which files tell of them.

def flows: .rounds[].flows[];

# From the weakest to the strongest word for what figures are worth.
def scopes: ["simulated", "software", "imported", "hardware"];
def weakest: . as $have | first(scopes[] as $s | select($have | index([$s]) != null) | $s) // "software";

def idle_hosts: ([flows | .client, .server] | unique) as $busy | .hosts | keys_unsorted | . - $busy;

# The hosts that a flow over a Cassini NIC uses, {NAME: true}: such a flow is hardware whatever the fabric is called.
# flows: the flows of the plan, a stream.
def cxi_hosts(flows):
  reduce (flows | select((.tool == "cxi" or .backend == "cxi") and .import == null)) as $flow
    ({}; .[$flow.client] = true | .[$flow.server] = true);

# A host of the plan, with cxi: true where such a flow uses it.
def is_slingshot: .fabric == "slingshot" or .cxi == true;

# The files of a flow, each flow's followed by the mark that ends it. Absent files are simply not read.
def flow_files($mark):
  flows
  | (if .retry then "retry/flows" else "flows" end) as $flows # repeats lie beside what the first walk left
  | "raw/\(.client)/\($flows)/\(.id)/client." as $client
  | ($client + "json"), ($client + "stdout"), ($client + "stderr"),
    "raw/\(.server)/\($flows)/\(.id)/server.json", $mark;

# A switch's two readings, and then the hosts' environments, which say what a port's other end is called and how fast it is.
def switch_files($mark):
  ( .switches // {} | keys_unsorted[] | "raw/\(.)/switch-before.json", "raw/\(.)/switch-after.json", $mark ),
  ( .hosts | keys_unsorted[] | "raw/\(.)/environment.json", $mark );

def host_files($mark):
  .hosts | keys_unsorted[] | "raw/\(.)/agent.json", "raw/\(.)/environment.json", "raw/\(.)/host_check.json", "inputs/hosts/\(.).json", $mark;
