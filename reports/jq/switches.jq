# raw/<switch>/switch-{before,after}.json and raw/<host>/environment.json -> {rows: what the verdict shows of the switches,
# checks}. Run only where the plan names switches. Input as for normalise.jq: "path<TAB>line", each switch, then each host
# ended by the mark.
import "common" as c;
import "switch" as switch;
import "switch_checks" as checks;

def next_part($mark): [label $stop | inputs | if startswith($mark) then ., break $stop else . end];
def document($path; $schema):
  ($path + "\t") as $p
  | map(select(startswith($p)) | ltrimstr($p)) | join("\n") | c::parsed
  | if type == "object" and .schema == $schema then . else null end;

def names: if type == "object" then .netdev else null end | strings;

# The speeds of the interfaces that are measured, where the inventory names them: of others the host has many.
def of_host($plan; $environment):
  ([($plan.devices // [])[] | names]) as $netdevs
  | { hostname: $environment.hostname, scope: $plan.scope, $netdevs,
      rates: [($environment.interfaces // [])[] | select(.name as $n | $netdevs | index([$n]) != null) | .rate_gbit_s | select(. != null and . > 0)] };

$plan[0] as $plan
| [ $plan.switches // {} | keys_unsorted[] as $name | next_part($mark)
    | { $name, before: document("raw/\($name)/switch-before.json"; "perch.switch/1"), after: document("raw/\($name)/switch-after.json"; "perch.switch/1") } ] as $readings
| [ $plan.hosts | keys_unsorted[] as $name | next_part($mark)
    | {key: $name, value: ({name: $name} + of_host($plan.hosts[$name]; document("raw/\($name)/environment.json"; "perch.environment/1")))} ] as $hosts
| [ $readings[] | . as $r | switch::judged($plan.run; .name; $plan.switches[.name]; [$hosts[].value]; .before; .after) ] as $switches
| { rows: $switches, checks: [checks::all($switches; $hosts | from_entries)] }
