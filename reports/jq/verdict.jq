# records -> verdict.json (perch.verdict/1). Input (-n): the records, one by one. $plan, $hosts, $switches, $limits: one-element
# arrays (--slurpfile); $limits_fault: why there are no limits, or "".
import "planned" as planned;
import "tally" as tally;
import "checks" as checks;
import "comparison" as comparison;
import "agreement" as agreement;

# The least of all flows names the whole, by the plan's word and by what the records show: one flow in software keeps a
# run from reading like hardware.
def weakest_scope($plan):
  [($plan | planned::flows | .scope), tally::seen(1)[].key] | planned::weakest;

def word($checks):
  if any($checks[]; .status == "fail") then "FAIL"
  elif any($checks[]; .status == "inconclusive") then "INCONCLUSIVE"
  else "PASS" end;

def no_limits($fault; $limits):
  ( [$limits[] | select(.severity == "required") | .id] as $required
    | [tally::entries("limit").value | select(.judged > 0) | select(.limit as $id | $required | index([$id]) != null)]
    | length > 0 ) as $judged
  | (if $fault != "" then $fault elif $judged then null else "no required limit judged any record" end) as $why
  | if $why == null then empty
  else checks::check("limits"; "Limits to judge by"; "inconclusive")
    + {measured: $why, source: checks::design("limits are copied to inputs/ when a run is planned"),
       remedy: "Put the run's limits (perch.limits/1, as JSON) at inputs/limits.json and judge again"}
  end;

$plan[0] as $plan
| $hosts[0] as $hosts
| ($limits[0].limits // []) as $bounds
| tally::tally(inputs; [$plan | planned::flows]; $bounds)
| comparison::build([tally::entries("cmp")]) as $comparison
| ([tally::entries("agree")] | {rows: agreement::rows(.; $bounds), alone: agreement::alone(.)}) as $agreement
| ([no_limits($limits_fault; $bounds)] + checks::all($plan; $hosts; $bounds; $comparison; $agreement)
   + ($switches[0].checks // [])) as $checks
| { schema: "perch.verdict/1", run: $plan.run, verdict: word($checks), scope: weakest_scope($plan),
    coverage: { planned: ([$plan | planned::flows | .expect | length] | add), measured: tally::measured,
                missing: [tally::entries("missing").value] },
    checks: $checks, comparison: $comparison, agreement: $agreement.rows }
  + ($switches[0].rows | if . == null then {} else {switches: .} end)
