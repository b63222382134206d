# The inventory's hosts as hosts.jq would read them of a plan: one line of all, then one for each answer (host_findings.bash).
# $hosts: the inventory's variables, $raw: what host-check printed, $wanted: what is wanted; both by host.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "host_check" as host_check;
import "common" as _;
import "planned" as planned;

def plan_host($name):
  { fabric: .perch_fabric, devices: (.perch_devices // []),
    cxi: ([.perch_backends, .perch_tools | arrays[]] | index(["cxi"]) != null),
    scope: (.perch_scope // (if .perch_fabric == "loopback" then "software" else "hardware" end)),
    # the ports that the tools of a plan listen on by default (perch/tools)
    ports: [(.perch_port // 18600), (.perch_iperf3_port // 5201), (.perch_iperf_port // 5001), (.perch_perftest_port // 18515)],
    $name, wanted: ($wanted[0][$name].wanted // {}) };

[ $hosts[0] | to_entries[] | .key as $name | .value | plan_host($name)
  | { key: $name,
      value: { subject: host_check::subject,
               areas: (if $raw[0][$name] | host_check::is_raw then host_check::areas(true; planned::is_slingshot) else [] end) } } ]
| from_entries, (.[] | select(.value.areas != []) | {areas: .value.areas, host: .value.subject, raw: $raw[0][.key]})
