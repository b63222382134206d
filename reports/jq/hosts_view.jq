# Findings of the hosts as lines of text, the verdict last.
# $hosts: the inventory's variables, $raw: what host-check printed.
import "host_check" as host_check;
import "checks" as checks;
import "format" as f;

def plan_host:
  { fabric: .perch_fabric, devices: (.perch_devices // []),
    cxi: ([.perch_backends, .perch_tools | arrays[]] | index(["cxi"]) != null),
    scope: (.perch_scope // (if .perch_fabric == "loopback" then "software" else "hardware" end)) };

def words: {pass: "ok", fail: "BAD", inconclusive: "NOT KNOWN", advisory: "advisory", not_judged: "not judged"};

($hosts[0] | map_values(plan_host)) as $plan
| [ $plan | to_entries[] | .key as $name | .value as $host
    | ($raw[0][$name] | host_check::judged($host)) as $found
    | if $found == null then
        {host: $name,
         verdict: (if ($host | host_check::is_slingshot) and $host.scope == "hardware" then "inconclusive"
                   else "not_judged" end),
         text: "the host's checks did not run, or left nothing that can be read"}
      elif $found == [] then
        {host: $name, verdict: "not_judged", text: "nothing is checked on the fabric \($host.fabric) yet"}
      else $found[] | . as $f | checks::finding_status($host.scope) as $verdict
        | { host: $name, $verdict,
            text: ("\($f.id): \($f | f::finding)"
                   + if $verdict == "pass" then "" else "; wanted: \($f.wanted), for \($f.why). \($f.remedy)" end) }
      end ] as $all
| def number($verdict): [$all[] | select(.verdict == $verdict)] | length;
  ($all[] | "\(words[.verdict]): \(.host): \(.text)"),
  ( if number("fail") > 0 then "FAIL: \(number("fail") | f::plural("bad finding"))"
    elif number("inconclusive") > 0 then "INCONCLUSIVE: \(number("inconclusive") | f::plural("thing")) not known"
    elif number("pass") > 0 then "PASS: \(number("pass") | f::plural("finding")), as wanted"
    else "INCONCLUSIVE: there was nothing to check" end )
