# raw/<switch>/switch-{before,after}.json and raw/<host>/environment.json -> {rows: what the verdict shows of the switches,
# checks}. Run only where the plan names switches. Input as for normalise.jq: "path<TAB>line", each switch, then each host
# ended by the mark.
import "parts" as parts;
import "switch" as switch;
import "switch_checks" as checks;

def names: if type == "object" then .netdev else null end | strings;

# The speeds of the interfaces that are measured, where the inventory names them: of others the host has many.
def of_host($plan; $environment):
  ([($plan.devices // [])[] | names]) as $netdevs
  | { hostname: $environment.hostname, scope: $plan.scope, $netdevs,
      rates: [($environment.interfaces // [])[] | select(.name as $n | $netdevs | index([$n]) != null) | .rate_gbit_s | select(. != null and . > 0)] };

$plan[0] as $plan
| [ $plan.switches // {} | keys_unsorted[] as $name | parts::next_part($mark)
    | { $name, before: parts::document("raw/\($name)/switch-before.json"; "perch.switch/1"), after: parts::document("raw/\($name)/switch-after.json"; "perch.switch/1") } ] as $readings
| [ $plan.hosts | keys_unsorted[] as $name | parts::next_part($mark)
    | {key: $name, value: ({name: $name} + of_host($plan.hosts[$name]; parts::document("raw/\($name)/environment.json"; "perch.environment/1")))} ] as $hosts
| [ $readings[] | . as $r | switch::judged($plan.run; .name; $plan.switches[.name]; [$hosts[].value]; .before; .after) ] as $switches
| { rows: $switches, checks: [checks::all($switches; $hosts | from_entries)] }
