# What soak_read.jq and soak_host.jq told -> {soak: the verdict's section, checks}. Input (-n): their documents. $plan, $limits: one-element
# arrays (--slurpfile); $facts: of soak_facts.jq.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "soak_blind" as blind;
import "soak_bounds" as soak_bounds;
import "limits" as _;
import "soak_checks" as checks;
import "bounds" as _;
import "remedies" as _;
import "soak_line" as line;
import "soak_seen" as seen;
import "digits" as _;
import "common" as c;
import "words" as _;

def kept_of_each: 20;
def kept: 500;
def evidence_max: 20;
def rank: {fail: 0, inconclusive: 1, advisory: 2}[.];

# An anomaly on the soak's axis and on the wall's. Input: {found, ...} of a flow or a host.
def dated($flow):
  (if .since_soak then 0 else $flow.soak_s // 0 end) as $more
  | . + {start_s: (if .s == null then null else .s + $more | c::rounded end), end_s: (if .e == null then null else .e + $more | c::rounded end)}
  | .start = (if .start_s == null or ($facts.known | not) then null else .start_s + $facts.epoch | line::dated end)
  | .end = (if .end_s == null or ($facts.known | not) then null else .end_s + $facts.epoch | line::dated end)
  | .duration_s = (if .start_s == null or .end_s == null then null else .end_s - .start_s | c::rounded end);

def of_flow($flow):
  "raw/\($flow.client)/flows/\($flow.flow)/client." as $at
  | dated($flow)
  | .flow = $flow.flow | .host = $flow.client
  | .evidence = ([.lines[] | if . <= $flow.in_file then "\($at)soak:\(.)" else "\($at)stdout:\(. - $flow.in_file)" end] | .[:evidence_max])
  | if .evidence == [] then .evidence = ["\($at)soak"] else . end;

def of_host($host): dated(null) | .host = $host | .evidence = ([.lines[] | "raw/\($host)/samples.jsonl:\(.)"] | .[:evidence_max]) | if .evidence == [] then .evidence = ["raw/\($host)/\(.file // "samples.jsonl")"] else . end;

def shown: {kind, check: ("soak/" + .check), severity, host, flow, start, "end": .end, start_s, end_s, duration_s, messages, value, unit, text, evidence};

$plan[0] as $plan
| [inputs] as $told
| [$told[] | select(.found != null and .state != null)] as $flows
| ([$told[] | select(.group != null)]) as $groups
| [$told[] | select(.found != null and .samples != null)] as $hosts
| ([$flows[] | {key: .flow, value: .}] | from_entries) as $by_id
| ([$groups[] | {key: .group, value: .drift}] | from_entries) as $drift
| [ ($flows[] | . as $flow | .found[] | of_flow($flow)),
    ($groups[].drift[].found[] | . as $a | of_flow($by_id[$a.flow]) | .check = "\(.check)"),
    ($hosts[] | .host as $host | (.found[], seen::unseen($flows; $facts.agents[$host])) | of_host($host)) ] as $all
| ($all | sort_by([(.severity | rank), .start_s // -1]) | map(. + {of: ((.flow // .host) + " " + .kind)})) as $all
| (reduce $all[] as $a ({}; .[$a.kind] += 1)) as $counts
| (reduce $all[] as $a ({n: {}, out: []};
     (.n[$a.of] // 0) as $n
     | if $n >= kept_of_each or (.out | length) >= kept then . else .n[$a.of] = $n + 1 | .out += [$a] end) | .out) as $shown
| ([$flows[] | .state]) as $states
| ($states | if all(. == "none" or . == "waiting") and index(["running"]) == null and index(["waiting"]) == null then "none"
             elif any(. == "running" or . == "waiting") then "running"
             elif any(. == "stopped") then "stopped"
             elif all(. == "done") then "done" else "short" end) as $state
| (if $plan.soak.mode == "alternating" then [$plan.rounds[] | [.flows[].id | $by_id[.].passed_s // 0] | min] | add
   else [$flows[].passed_s // 0] | min end) as $passed
| (if $plan.soak.mode == "alternating" then [$plan.rounds[] | [.flows[].id | $by_id[.].measured_s // 0] | min] | add
   else [$flows[].measured_s // 0] | min end) as $measured
| ([$flows[] | select(.soak_s != null) | .soak_s + .passed_s] | max) as $ends
| ([$plan.rounds[].flows[] | {key: .id, value: soak_bounds::of_flow($limits[0].limits // [])}] | from_entries) as $bounds
| { mode: $plan.soak.mode, duration_s: $plan.soak.duration_s, interval_s: $plan.soak.interval_s, stall_s: $plan.soak.stall_s,
    reconnect_s: $plan.soak.reconnect_s, turn_s: $plan.soak.turn_s,
    stall_limits_s: ([$bounds[] | soak_bounds::tightest("soak.stall_s").most | numbers] | unique),
    started: (if $facts.known then $facts.epoch | line::dated else null end),
    ended: (if $facts.known and $ends != null then $facts.epoch + $ends | line::dated else null end),
    passed_s: ($passed | c::rounded), measured_s: ($measured | c::rounded), $state, running: ($state == "running"),
    flows: [ $plan.rounds[].flows[].id | $by_id[.] | . as $flow
             | del(.found, .unusable, .offset, .begun, .in_file)
             | .stall_limit_s = ($bounds[$flow.flow] | soak_bounds::tightest("soak.stall_s").most)
             | .anomalies = ([$all[] | select(.flow == $flow.flow)] | length)
             | .drift = [ ($drift["\(.test)/\(.client)/\(.server)"] // [])[] | del(.found, .doubt, .binding)
                          | if .change != null then .change.at = (.change.at_s + $facts.epoch | line::dated) else . end ] ],
    hosts: [$hosts[] | del(.found, .watched, .links_read, .limits, .seen) | .processes |= map(del(.from, .to))],
    anomalies: [$shown | to_entries[] | {id: "a\(.key + 1)"} + (.value | shown)],
    anomaly_counts: $counts, anomalies_left_out: (($all | length) - ($shown | length)),
    blind: [{$plan, $flows, $hosts, $groups} | blind::all] } as $soak
| { $soak, checks: [{$plan, $bounds, $flows, $hosts, $groups, anomalies: $all, $state, passed_s: $passed} | checks::all] }
