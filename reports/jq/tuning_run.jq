# One sub-run of a comparison -> a line for each record that can stand beside those of the others, and one of itself last.
# Input (-n): its records, one by one. $name: its folder; $plan, $verdict: --slurpfile.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "plan_faults" as plan_faults;
import "tally" as tally;
import "agreement" as _;
import "limits" as _;
import "claims" as _;
import "shares" as _;
import "ceiling" as _;
import "figures" as _;
import "comparison" as comparison;
import "fabric" as _;
import "planned" as planned;
import "evaluated" as _;
import "common" as c;
import "bounds" as _;
import "repeats" as _;

# An imported tool's percentiles may have no count, or too low a one, behind them.
def percentiles_with_samples:
  .count as $count
  | with_entries(if (c::quantile_of[.key] // null) == null then .
                 elif ($count | c::is_finite) and c::supports($count; c::quantile_of[.key]) then .
                 else .value = null end);

# What a figure's two sides must have in common. The path's MTU is not among it: that may be what was tuned.
def like:
  { definition, completion_level: (if comparison::times_completion then .completion_level else null end),
    tool: ([.tool.name, .tool.version] | map(strings) | join(" ")), backend, provider, scope, connection,
    bidirectional: (.params.bidirectional == true), verify: (.params.verify == true), settings: (comparison::terms | tojson) };

def about: {kind, op, definition, size_bytes: .params.size_bytes, batch: (if .kind == "sum" then .params.batch else null end)};

# A transfer's sum speaks for its pairs of devices.
def line:
  select(.kind != "transfer")
  | { name: $name, flow, key: ([.test, .client.host, .server.host, tally::place] | join("\t")),
      why: (if .status == "ok" then null else .error.message // .status end) }
    + if .status != "ok" then {}
      else { like: like, about: about,
             values: ((.latency_us // {} | percentiles_with_samples) + {gbit_s: .bandwidth.gbit_s}) } end;

def fault($plan; $verdict; $seen):
  ([$plan | planned::flows | .expect | length] | add) as $owed
  | if $verdict.schema != "perch.verdict/1" or $verdict.run != $plan.run then "verdict.json is not of this run: judge it again"
    elif $seen.strange > 0 then "records.jsonl has records of another run: judge it again"
    elif $seen.records != $owed then "records.jsonl has \($seen.records) of \($owed) records: judge it again"
    else null end;

$plan[0] as $p
| ($p | [plan_faults::faults] | .[0]) as $broken
| if $broken != null then {name: $name, run: {usable: false, why: "plan.json cannot be used: \($broken)"}}
  else
    foreach ((inputs | {record: .}), null) as $r ({records: 0, strange: 0, measured: 0};
      if $r == null then .
      else .records += 1
        | if ($r.record | type) != "object" then .strange += 1
          elif $r.record.schema != "perch.record/1" or $r.record.run != $p.run then .strange += 1
          elif $r.record.status == "ok" then .measured += 1 else . end
      end;
      . as $seen
      | if $r != null then $r.record | select($seen.strange == 0) | line
        else
          fault($p; $verdict[0]; $seen) as $why
          | { name: $name,
              run: { run: $p.run, suite: $p.suite.name, title: ($p.suite.title // $p.suite.name), created: $p.created,
                     hosts: ($p.hosts | keys_unsorted), scope: $verdict[0].scope, verdict: $verdict[0].verdict,
                     titles: (reduce ($p | planned::flows) as $f ({}; .[$f.test] = ($f.title // $f.test))),
                     planned: ([$p | planned::flows | .expect | length] | add), measured: $seen.measured,
                     usable: ($why == null), why: $why } }
        end)
  end
