# raw/<switch>/switch-{before,after}.json and raw/<host>/environment.json -> {rows: what the verdict shows of the switches,
# checks}. Run only where the plan names switches. Input as for normalise.jq: "path<TAB>line", each switch, then each host
# ended by the mark.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "parts" as parts;
import "switch" as switch;
import "switch_nxos" as _;
import "switch_eos" as _;
import "switch_sonic" as _;
import "switch_cumulus" as _;
import "switch_ib" as _;
import "switch_raw" as _;
import "switch_checks" as checks;
import "checks" as _;
import "remedies" as _;
import "host_status" as _;
import "format" as _;
import "digits" as _;
import "words" as _;
import "tally" as _;
import "agreement" as _;
import "limits" as _;
import "claims" as _;
import "shares" as _;
import "ceiling" as _;
import "figures" as _;
import "comparison" as _;
import "fabric" as _;
import "planned" as _;
import "evaluated" as _;
import "common" as _;
import "bounds" as _;
import "repeats" as _;

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
