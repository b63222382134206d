# raw/<host>/{agent,environment}.json -> {host: {agent, versions, environment, drivers, rdma_drivers, idle}}; what is absent or damaged
# is null.
# Input as for normalise.jq: "path<TAB>line", each host ended by the mark.

import "common" as c;
import "counters" as counters;

def next_host($mark): [label $stop | inputs | if startswith($mark) then ., break $stop else . end];

def document($path; $schema):
  ($path + "\t") as $p
  | map(select(startswith($p)) | ltrimstr($p)) | join("\n")
  | c::parsed
  | if type == "object" and .schema == $schema then . else null end;

$plan[0].hosts
| [ keys_unsorted[] as $host
    | next_host($mark)
    | ( document("raw/\($host)/agent.json"; "perch.agent/1")
        | if . != null and .run != $plan[0].run then
            {state: "foreign", message: "its agent.json belongs to run \(.run | tojson)"} else . end ) as $agent
    | document("raw/\($host)/environment.json"; "perch.environment/1") as $environment
    | { key: $host,
        value: { agent: $agent, environment: ($environment != null), versions: ($environment.versions // {}),
                 drivers: ([($environment.interfaces // [])[] | {key: .name, value: .driver}] | from_entries),
                 rdma_drivers: ([($environment.rdma // [])[] | {key: .name, value: .driver}] | from_entries),
                 idle: ($environment.idle | counters::counted) } } ]
| from_entries
