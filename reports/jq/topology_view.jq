# Topology as the inventory and the switches tell it: hosts with their group, switch and port, the rounds, the hop classes.
import "format" as f;
import "table" as table;

# Above this a row for each host is no longer read; groups are.
def hosts_max: 64;

def port_of($switches): . as $host | [($switches // [])[] | .name as $name | .rows[] | select(.host == $host) | "\($name) \(.port)"] | unique | f::names(4);

def host_table($hosts; $switches):
  { columns: [ "Host", "Address", "Fabric", "Group", "Switch", "Switch port" | table::left(.) ],
    rows: [ $hosts | to_entries[]
            | [ .key, .value.address, .value.fabric, .value.group, .value.switch, (.key | port_of($switches) | if . == "" then null else . end) ]
            | map(f::cell) ] };

def group_table($hosts):
  { columns: [table::left("Group"), table::left("Switch"), table::left("Fabric"), table::right("Hosts"), table::left("Which")],
    rows: [ $hosts | to_entries | group_by([.value.group, .value.switch, .value.fabric])[]
            | [ (.[0].value.group | f::cell), (.[0].value.switch | f::cell), (.[0].value.fabric | f::cell), (length | f::whole),
                (map(.key) | f::names(8) | f::cell) ] ] };

def hop_words: {same_switch: "one switch", same_group: "one group, several switches", cross_group: "between groups"};

def hop_table:
  { columns: [table::left("Way between the ends"), table::right("Pairs"), table::right("Flows")],
    rows: [ to_entries[] | select(.key != "not stated" ) | [(hop_words[.key] // .key), (.value.pairs | f::whole), (.value.flows | f::whole)] ] };

# $flows: what plan_view.jq counted.
def lines($plan; $flows; $switches; $imported):
  ($plan.hosts | length) as $n
  | if $imported then ["The outputs were measured elsewhere: between which hosts, and how they are connected, nobody told."] else
    [ "\($n | f::plural("host")), \($flows.pairs | f::plural("pair")) of client and server measured"
      + (if $n > 1 then " of \($n * ($n - 1) | f::whole) possible" else "" end)
      + ", in \($flows.rounds | f::plural("round")) of at most \($flows.together | f::plural("flow")) at the same time.",
      (if [$plan.hosts[].switch, $plan.hosts[].group | values] == [] then
         "The inventory does not say which switch or group a host hangs on (`perch_switch`, `perch_group`), so hop classes are not known." else empty end),
      (if ($switches // []) == [] then "No switch was read in this run." else empty end) ] end;

def section($plan; $verdict; $flows):
  { lines: lines($plan; $flows; $verdict.switches; any($verdict.checks[]; .id == "imported")),
    hosts: (if ($plan.hosts | length) > hosts_max then group_table($plan.hosts) else host_table($plan.hosts; $verdict.switches) end | table::slim),
    hops: ($flows.hops | hop_table) };
