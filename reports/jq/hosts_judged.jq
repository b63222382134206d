# The hosts with their `checks`, null where there was no answer to judge, and their `links` (link_facts.jq). Input (-n): what each area found (host_area.jq), in
# the order in which it is shown. $hosts: one-element array, the hosts as hosts.jq read them, each with subject and areas.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "host_group" as group;
import "words" as _;
import "link_facts" as link_facts;
import "common" as _;

[inputs] as $found
| $hosts[0] as $hosts
| ($hosts | map_values(.subject as $host | [$found[].of_host[$host.name // ""] | values | .[]])) as $own
| [ $hosts | to_entries[] | select(.value.areas | index(["machine"]) != null) | {host: .value.subject, findings: $own[.key]} ] as $alike
| [group::differences($alike), $found[].between[]] as $between
| $hosts
| with_entries(.key as $name
    | .value |= (.checks = (if .areas == [] then null
                            else $own[$name] + [$between[] | select(.host == $name) | del(.host)] end)
                 | .links = link_facts::of_host
                 | del(.subject, .areas, .interfaces)))
