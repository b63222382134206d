# raw/<host>/{agent,environment,host_check}.json and inputs/hosts/<host>.json -> one line {host: {agent, versions, environment,
# drivers, interfaces, rdma_drivers, cxi_drivers, unchecked, idle, subject, areas}}; what is absent or damaged is null. unchecked: why
# nothing is checked of it. Then a line {areas, host, raw} for each host whose answer is to be judged (host_findings.bash).
# Input as for read.jq: "path<TAB>line", each host ended by the mark.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "counters" as counters;
import "host_check" as host_check;
import "parts" as parts;
import "common" as _;
import "planned" as planned;

($plan[0] | planned::cxi_hosts(planned::flows)) as $cxi
| ($plan[0].host_checks == true) as $areas
| $plan[0].hosts
| [ keys_unsorted[] as $host
    | parts::next_part($mark)
    | ( parts::document("raw/\($host)/agent.json"; "perch.agent/1")
        | if . != null and .run != $plan[0].run then
            {state: "foreign", message: "its agent.json belongs to run \(.run | tojson)"} else . end ) as $agent
    | parts::document("raw/\($host)/environment.json"; "perch.environment/1") as $environment
    | parts::document("raw/\($host)/host_check.json"; "perch.host_check/1") as $found
    | parts::document("inputs/hosts/\($host).json"; "perch.wanted/1") as $input
    | ($plan[0].hosts[$host] + {cxi: $cxi[$host], name: $host, $areas, wanted: $input.wanted}) as $planned
    | ($found | if . == null then "there is none that can be read"
                elif host_check::is_raw | not then "it holds nothing that was read"
                elif $areas and ($input.wanted | type) != "object" then "inputs/hosts/\($host).json does not say what is wanted"
                else host_check::misplaced($environment; $plan[0].created) end) as $unchecked
    | { key: $host,
        value: { agent: $agent, environment: ($environment != null), versions: ($environment.versions // {}),
                 drivers: ([($environment.interfaces // [])[] | {key: .name, value: .driver}] | from_entries),
                 # what has no hardware below (veth, tun, a bridge) says a rate that was invented for it, and has none
                 interfaces: ([($environment.interfaces // [])[] | select(.name != "lo")
                               | {key: .name, value: {rate_gbit_s: (if .driver == null then null else .rate_gbit_s end), mtu_bytes}}] | from_entries),
                 rdma_drivers: ([($environment.rdma // [])[] | {key: .name, value: .driver}] | from_entries),
                 cxi_drivers: ([($environment.cxi // [])[] | {key: .name, value: .driver}] | from_entries),
                 $unchecked, idle: ($environment.idle | counters::counted), subject: ($planned | host_check::subject),
                 areas: (if $unchecked != null or ($found | host_check::is_raw | not) then []
                         else host_check::areas($areas; $planned | planned::is_slingshot) end) },
        raw: $found } ]
| (map(del(.raw)) | from_entries), (.[] | select(.value.areas != []) | {areas: .value.areas, host: .value.subject, raw})
