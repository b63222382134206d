# Findings of the hosts as lines of text, the verdict last. Input: the hosts with their checks (hosts_judged.jq); $hosts: the
# inventory's variables.
import "host_status" as host_status;
import "words" as words;

def scope: .perch_scope // (if .perch_fabric == "loopback" then "software" else "hardware" end);

def signs: {pass: "ok", fail: "BAD", inconclusive: "NOT KNOWN", advisory: "advisory", not_judged: "not judged"};

def line($host; $scope):
  host_status::finding_status($scope) as $verdict
  | { host: $host, $verdict,
      text: ("\(.id): \(words::finding)"
             + if $verdict == "pass" or .status == "info" then ""
               else (if .wanted == null then "" else "; wanted: \(.wanted)" end) + "; \(.why). \(.remedy)" end) };

[ to_entries[] | .key as $host | ($hosts[0][$host] | scope) as $scope
  | .value.checks
  | if . == null then
      { $host, verdict: (if $scope == "hardware" then "inconclusive" else "not_judged" end),
        text: "the host's checks did not run, or left nothing that can be read" }
    else .[] | line($host; $scope) end ] as $all
| def number($verdict): [$all[] | select(.verdict == $verdict)] | length;
  ($all[] | "\(signs[.verdict]): \(.host): \(.text)"),
  ( if number("fail") > 0 then "FAIL: \(number("fail") | words::plural("bad finding"))"
    elif number("inconclusive") > 0 then "INCONCLUSIVE: \(number("inconclusive") | words::plural("thing")) not known"
    elif number("pass") > 0 then "PASS: \(number("pass") | words::plural("finding")), as wanted"
    else "INCONCLUSIVE: there was nothing to check" end )
