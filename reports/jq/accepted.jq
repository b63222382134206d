# A run that is accepted -> perch.baseline/1. Input (-n): its records, one by one. $plan, $verdict: --slurpfile. $accepted: when
# (ISO 8601, UTC); $called, $forced: texts, or "" for none; $id: the fabric's, made of planned_identity.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "fabric" as fabric;
import "planned" as _;
import "figures" as figures;
import "comparison" as _;
import "common" as _;

# The state is flat, each update one setpath with nothing else holding the state, as in tally.jq.
def updates:
  (select(.status == "ok") | fabric::ends | ["end\t" + tojson, .]),
  ( figures::terms as $terms | figures::of_record(figures::kept)
    | ["figure\t" + .key, {metric, unit, better, value, $terms}] );

def apply($u):
  .[$u[0]] as $old
  | [if $u[0] | startswith("end") then $u[1]
     elif $old == null then $u[1] + {values: [$u[1].value]}
     elif $old.terms != $u[1].terms then $old + {mixed: true}
     else $old | .values += [$u[1].value] end] as $new
  | setpath([$u[0]]; $new[0]);

reduce (inputs | updates) as $u ({}; apply($u))
| [to_entries[] | select(.key | startswith("end\t")) | .value] as $ends
# repeats that are not alike have no median, nor has a figure that only some of them report (a p99 that only the busiest had
# samples for)
| [ to_entries[] | select(.key | startswith("figure\t")) | .key |= .[7:]
    | select(.value.mixed != true and all(.value.values[]; . != null)) ] as $figures
| ([$figures[].value.terms] | unique) as $terms
| ($terms | to_entries | map({key: .value, value: .key}) | from_entries) as $number
| { schema: "perch.baseline/1", run: $plan[0].run, created: $plan[0].created, $accepted,
    label: (if $called == "" then null else $called end), forced: (if $forced == "" then null else $forced end),
    verdict: $verdict[0].verdict,
    fabric: ({$id} + fabric::identity($plan[0]; $ends; $verdict[0].scope)),
    $terms,
    figures: ($figures | map(.value = ({unit: .value.unit, better: .value.better} + (.value.metric as $metric | .value.values | figures::of_repeats + if $metric | figures::is_extreme then {value: max} else {} end)
                                       + {of: $number[.value.terms]})) | from_entries) }
