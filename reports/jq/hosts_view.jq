# Findings of the hosts as lines of text, the verdict last.
# $hosts: the inventory's variables, $raw: what host-check printed, $wanted: what is wanted; both by host.
import "host_check" as host_check;
import "host_group" as group;
import "host_status" as host_status;
import "format" as f;

def plan_host($name):
  { fabric: .perch_fabric, devices: (.perch_devices // []),
    cxi: ([.perch_backends, .perch_tools | arrays[]] | index(["cxi"]) != null),
    scope: (.perch_scope // (if .perch_fabric == "loopback" then "software" else "hardware" end)),
    # the ports that the tools of a plan listen on by default (playbooks/plan.jq)
    ports: [(.perch_port // 18600), (.perch_iperf3_port // 5201), (.perch_iperf_port // 5001), (.perch_perftest_port // 18515)],
    $name, areas: true, wanted: ($wanted[0][$name].wanted // {}) };

def words: {pass: "ok", fail: "BAD", inconclusive: "NOT KNOWN", advisory: "advisory", not_judged: "not judged"};

def line($host; $scope):
  host_status::finding_status($scope) as $verdict
  | { host: $host, $verdict,
      text: ("\(.id): \(f::finding)"
             + if $verdict == "pass" or .status == "info" then ""
               else (if .wanted == null then "" else "; wanted: \(.wanted)" end) + "; \(.why). \(.remedy)" end) };

($hosts[0] | with_entries(.key as $name | .value |= plan_host($name))) as $plan
| ($plan | map_values(.name as $name | . as $host | $raw[0][$name] | host_check::judged($host))) as $found
| [ [ $plan[] | select($found[.name] != null) | {host: host_check::subject, raw: $raw[0][.name], findings: $found[.name]} ]
    | group::across(.) | line(.host; $plan[.host].scope) ] as $between
| [ ( $plan[] | . as $host | $found[.name]
      | if . == null then
          {host: $host.name, verdict: (if $host.scope == "hardware" then "inconclusive" else "not_judged" end),
           text: "the host's checks did not run, or left nothing that can be read"}
        else .[] | line($host.name; $host.scope) end ),
    $between[] ] as $all
| def number($verdict): [$all[] | select(.verdict == $verdict)] | length;
  ($all[] | "\(words[.verdict]): \(.host): \(.text)"),
  ( if number("fail") > 0 then "FAIL: \(number("fail") | f::plural("bad finding"))"
    elif number("inconclusive") > 0 then "INCONCLUSIVE: \(number("inconclusive") | f::plural("thing")) not known"
    elif number("pass") > 0 then "PASS: \(number("pass") | f::plural("finding")), as wanted"
    else "INCONCLUSIVE: there was nothing to check" end )
