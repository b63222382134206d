# plan.json as far as judging depends on it: is it whole, which flows does it owe, and which files tell of them.

def flows: .rounds[].flows[];

# From the weakest to the strongest word for what figures are worth.
def scopes: ["simulated", "software", "imported", "hardware"];
def weakest: . as $have | first(scopes[] as $s | select($have | index([$s]) != null) | $s) // "software";

def idle_hosts: ([flows | .client, .server] | unique) as $busy | .hosts | keys_unsorted | . - $busy;

def name_pattern: "^[A-Za-z0-9_][A-Za-z0-9._-]*$";
# A flow's id becomes a path under raw/, so nothing in it may climb out of there.
def id_pattern: "^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){3}$";

def flow_faults($hosts):
  (.id | tojson) as $id
  | ( if (.id | type) == "string" and (.id | test(id_pattern)) then empty else "flow id \($id) is not test/client/server/repeat" end ),
    ( ("client", "server") as $k | select($hosts[.[$k] // ""] == null) | "flow \($id): \($k) \(.[$k] | tojson) is not a host of the plan" ),
    ( if (.expect | type) == "array" and (.expect | length) > 0 then empty else "flow \($id) expects no record" end ),
    ( if .scope as $s | scopes | index([$s]) != null then empty else "flow \($id) has the unknown scope \(.scope | tojson)" end ),
    ( if (.tool | type) == "string" and (.client_argv | type) == "array" then empty else "flow \($id) has no tool or no command" end );

# Texts of what is wrong; none means that the plan can be judged against.
def faults:
  if type != "object" then "it is not a JSON object"
  elif .schema != "perch.plan/1" then "its schema is \(.schema | tojson), not perch.plan/1"
  elif (.run | type) != "string" then "it names no run"
  elif (.hosts | type) != "object" or (.rounds | type) != "array" then "it has no hosts or no rounds"
  elif ([flows] | length) == 0 then "it holds no flow"
  else
    . as $plan
    | ( $plan.hosts | keys_unsorted[] | select(test(name_pattern) | not) | "host name \(tojson) is not usable as a path" ),
      ( select(has("switches"))
        | if (.switches | type) == "object" and all(.switches[]; type == "object") then
            .switches | keys_unsorted[] | select(test(name_pattern) | not) | "switch name \(tojson) is not usable as a path"
          else "its switches are no objects" end ),
      ( $plan | flows | flow_faults($plan.hosts) ),
      ( [$plan | flows | .id] | if length == (unique | length) then empty else "two flows have the same id" end )
  end;

# The files of a flow, each flow's followed by the mark that ends it. Absent files are simply not read.
def flow_files($mark):
  flows
  | "raw/\(.client)/flows/\(.id)/client." as $client
  | ($client + "json"), ($client + "stdout"), ($client + "stderr"),
    "raw/\(.server)/flows/\(.id)/server.json", $mark;

# A switch's two readings, and then the hosts' environments, which say what a port's other end is called and how fast it is.
def switch_files($mark):
  ( .switches // {} | keys_unsorted[] | "raw/\(.)/switch-before.json", "raw/\(.)/switch-after.json", $mark ),
  ( .hosts | keys_unsorted[] | "raw/\(.)/environment.json", $mark );

def host_files($mark):
  .hosts | keys_unsorted[] | "raw/\(.)/agent.json", "raw/\(.)/environment.json", "raw/\(.)/host_check.json", "inputs/hosts/\(.).json", $mark;
