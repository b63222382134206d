# counts -> the verdict (perch.verdict/1) but for its last checks and its word, which evaluate.jq adds. Input (-n): what count.jq
# made of the run's parts. $plan may lack its flows' commands; it, $hosts, $switches, $limits: one-element
# arrays (--slurpfile), $baseline likewise (perch.baseline/1, or null); $limits_fault: why there are none, or "".
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "checks" as checks;
import "host_status" as _;
import "words" as _;
import "host_facts" as host_facts;
import "remedies" as remedies;
import "tally" as tally;
import "agreement" as agreement;
import "limits" as _;
import "claims" as _;
import "shares" as _;
import "ceiling" as _;
import "figures" as _;
import "comparison" as comparison;
import "fabric" as fabric;
import "planned" as planned;
import "evaluated" as _;
import "common" as _;
import "bounds" as _;
import "repeats" as repeats;
import "tally_merge" as tally_merge;

# TCP between hosts of hardware, or of a run that was imported, is the baseline that RDMA is held against, and says nothing of what RDMA's figures are worth.
def is_baseline($hosts):
  (.scope | IN("software", "imported")) and (.backend == "tcp" or (.tool | IN("iperf", "iperf3")))
  and all(.client, .server; $hosts[.] | (.scope | IN("hardware", "imported")) and .fabric != "loopback");

# The least of all other flows names the whole, by the plan's word and by what the records show: one flow of RDMA's interface in
# software, or one that stayed inside a machine, keeps a run from reading like hardware.
def weakest_scope($plan):
  [$plan | planned::flows] as $flows
  | ([$flows[].scope, tally::seen(1)[].key] | planned::weakest) as $least
  | if $least != "software" or all($flows[]; .scope | IN("hardware", "imported") | not) then $least
    else
      ([$flows[] | select(is_baseline($plan.hosts)) | {key: .test, value: true}] | from_entries) as $beside
      | [ ($flows[] | select(is_baseline($plan.hosts) | not) | .scope),
          ( tally::entries("seen").parts
            | select(.[1] != "software" or $beside[.[0]] != true or (.[2] | IN("loopback", "shm"))) | .[1] ) ]
      | planned::weakest
    end;

# For evaluate.jq, a program of its own, as this one is long enough (README.md, "Time to begin").
def gathered($flows; $limits):
  ({counted, event, stale, skew, shape, outside, again} | map_values(. // []))
  + { required: [$limits[] | select(.severity == "required") | .id], pairs: ([$flows[] | [.test, .client, .server]] | unique | length),
      repeated: repeats::planned($flows) };

def no_limits($fault; $limits; $soak):
  ( [$limits[] | select(.severity == "required") | .id] as $required
    | [tally::entries("limit").value | select(.judged > 0) | select(.limit as $id | $required | index([$id]) != null)]
    | length > 0 ) as $judged
  | (if $fault != "" then $fault elif $judged then null else "no required limit judged any record" end) as $why
  | if $why == null then empty
  else checks::check("limits"; "Limits to judge by"; "inconclusive")
    + {measured: $why, source: checks::design("limits are copied to inputs/ when a run is planned"),
       remedy: ((if $fault == "" then $soak | remedies::for_soak else null end) // "Put the run's limits (perch.limits/1, as JSON) at inputs/limits.json and judge again")}
  end;

# How the fabric of the accepted run differs from what these records showed; "" where it does not, or nobody asks.
def foreign($plan; $baseline):
  if $baseline == null then ""
  else [fabric::differences($baseline.fabric; fabric::identity($plan; [tally::entries("end").value]; weakest_scope($plan)))] | .[0:3] | join("; ") end;

$plan[0] as $plan
| $hosts[0] as $hosts
| ($limits[0].limits // []) as $bounds
| tally_merge::merged_states(inputs) | tally::finished([$plan | planned::flows]; $bounds)
| foreign($plan; $baseline[0]) as $foreign
| comparison::build([tally::entries("cmp")]) as $comparison
| ([tally::entries("agree")] | {rows: agreement::rows(.; $bounds), alone: agreement::alone(.)}) as $agreement
| ([no_limits($limits_fault; $bounds; checks::soak_state($plan; $hosts))] + checks::all($plan; $hosts; $bounds; $foreign; $comparison; $agreement)
   + ($switches[0].checks // [])) as $checks
| { schema: "perch.verdict/1", run: $plan.run, verdict: null, scope: weakest_scope($plan),
    coverage: { planned: ([$plan | planned::flows | .expect | length] | add), measured: tally::measured,
                missing: [tally::entries("missing").value] },
    checks: $checks, comparison: $comparison, agreement: $agreement.rows }
  + ($switches[0].rows | if . == null then {} else {switches: .} end)
  + host_facts::section($plan; $hosts)
  + {gathered: gathered([$plan | planned::flows]; $bounds)}
