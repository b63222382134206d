# A run against the accepted run of its fabric -> checks, as an array. Input (-n): the run's records, one by one. $plan, $verdict
# (for its scope), $baseline: --slurpfile, found in order by baseline_faults.jq.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "fabric" as fabric;
import "planned" as _;
import "figures" as figures;
import "comparison" as _;
import "common" as c;
import "student" as student;
import "words" as words;

# How far a figure may move, in percent. binding: beyond it the run is not a PASS on hardware. The medians of RDMA are what a
# site promises; tails and the worst interval move by themselves from run to run, sockets with the hosts' cores, and a verified
# payload is timed with its check: those are shown. Other bounds are a site's to set, as limits with a bound `of: baseline`.
def policy:
  { "bandwidth.gbit_s": {percent: 5, binding: true}, "latency_us.p50": {percent: 10, binding: true},
    "latency_us.mean": {percent: 20, binding: false}, "latency_us.p99": {percent: 25, binding: false},
    "latency_us.p99_9": {percent: 50, binding: false}, "bandwidth.min_interval_gbit_s": {percent: 20, binding: false} };
def policy_source:
  "site policy: bandwidth within 5 % of the accepted run (draft-calabria-bmwg-ai-fabric-training-bench-02 wants repeats within 5 %), "
  + "median latency 10 %, mean and worst interval 20 %, p99 25 %, p99.9 50 %; beyond the noise of both runs' repeats (Student's t, 95 %, Bonferroni)";

def binds: test("(^| )(tool=iperf3?|backend=tcp|verify=true)( |$)") | not;

def check($id; $title; $status):
  { id: $id, title: $title, status: $status, measured: null, limit: null, unit: null, source: policy_source, evidence: [], remedy: null };

def evidence_max: 20;

# ---- one pass over the records; the state is flat, as in tally.jq ----

def updates:
  .flow as $flow
  | (select(.status == "ok") | fabric::ends | ["end\t" + tojson, .]),
    ( figures::terms as $terms | figures::of_record
      | ["figure\t" + .key, {test: $flow | split("/")[0], metric, better, value, $terms, at: ($flow + "#" + (.key | split("/")[3]))}] );

def apply($u):
  .[$u[0]] as $old
  | [ if $u[0] | startswith("end") then $u[1]
      elif $old == null then $u[1] + {values: [$u[1].value]}
      elif $old.terms != $u[1].terms then $old + {unlike: "the repeats of this run are not alike (\(figures::unlike($old.terms; $u[1].terms)))"}
      else $old | .values += [$u[1].value] end ] as $new
  | setpath([$u[0]]; $new[0]);

# ---- noise ----

# Figures of one test and metric have one noise: the squared coefficients of variation of all, weighted by n - 1, so that two
# repeats of many flows say more than two repeats of one. Input: [{cv_percent, n}] -> {cv (a part, not percent), df}.
def pooled:
  map(select(.cv_percent != null)) | (map(.n - 1) | add // 0) as $df
  | {df: $df, cv: (if $df == 0 then null else (map((.n - 1) * .cv_percent * .cv_percent) | add) / $df | sqrt / 100 end)};

# The variance of the median of n normal values is pi / 2 of their mean's (asymptotically); of one or two it is their mean.
def of_median($n): if $n > 2 then 3.141592653589793 / 2 else 1 end;

# The error of ln(now / was), or null where neither run repeated anything. No figure is quieter than its like.
def error($was; $now; $pools):
  if $pools.was.df + $pools.now.df == 0 then null
  else
    ($pools.was.cv // $pools.now.cv) as $a
    | ($pools.now.cv // $pools.was.cv) as $b
    | ([($was.cv_percent // 0) / 100, $a] | max) as $x
    | ([($now.cv_percent // 0) / 100, $b] | max) as $y
    | $x * $x / $was.n * of_median($was.n) + $y * $y / $now.n * of_median($now.n) | sqrt
  end;

# Does chance alone give such a change, among $m of them? true, false, or null: nobody knows. Bonferroni: O. J. Dunn, "Multiple
# Comparisons Among Means", Journal of the American Statistical Association 56 (1961).
def significant($error; $df; $m):
  if $error == null then null
  elif $error == 0 then true
  else $m * student::p_value((. | log) / $error; [$df, 200] | min) < 0.05 end;

# ---- figures, then checks ----

# Input: [{key, was, now}] of one test and metric, comparable -> each with change (%), state and noise.
def judged($binding_scope):
  length as $m
  | {was: (map(.was) | pooled), now: (map(.now) | pooled)} as $pools
  | policy[.[0].metric] as $policy
  | map( (.now.value / .was.value) as $ratio
         | error(.was; .now; $pools) as $error
         | (100 * ($ratio - 1) | c::rounded) as $change
         | (if .better == "higher" then -$change else $change end) as $worse
         | ($ratio | significant($error; $pools.was.df + $pools.now.df; $m)) as $real
         | . + { $change, $worse, $policy,
                 state: (if $worse > $policy.percent then
                           (if $policy.binding and $binding_scope and (.terms | binds) then (if $real then "fail" else "inconclusive" end)
                            else "advisory" end)
                         elif $worse < -$policy.percent and $real != false then "better"
                         else "pass" end),
                 doubt: (if $real == null then "nothing was repeated, so that nobody knows how noisy it is"
                         elif $real then null else "the noise of the repeats can make such a change" end) } );

def rank: {fail: 4, inconclusive: 3, advisory: 2, better: 1, pass: 0}[.];

def remedy($n):
  if .state == "better" then "Find out what has changed since then before you trust it, and accept a newer run if it is meant (make accept)"
  else "\($n | words::plural("figure")) worse than accepted: see what has changed since then (cables, routes, firmware, tuning, other load)"
       + (if .doubt == null then "" else "; and measure again with more repeats: \(.doubt)" end)
  end;

# Of one test and metric: what is not within its bound.
def group_check($run):
  (map(select(.state != "pass")) | sort_by(-(.state | rank), -(.worse | fabs))) as $off
  | $off[0]
  | select(. != null)
  | .state as $state
  | ($off | map(select(.state == $state))) as $like
  | check("drift/\(.test)/\(.metric)"; "Drift of test \(.test), \(.metric): \(if .state == "better" then "better" else "worse" end) than the accepted run";
          if .state == "better" then "advisory" else .state end)
  + { measured: .change, limit: {min: (-.policy.percent), max: .policy.percent}, unit: "% of change against run \($run)",
      evidence: ($like | map(.at) | .[0:evidence_max]), remedy: remedy($like | length) };

def held($run; $baseline):
  select(length > 0)
  | check("drift"; "Figures are as in the accepted run"; "pass")
  + { measured: ("\(length | words::plural("figure")) within their bounds of run \($run), accepted \($baseline.accepted)"
                 + (if $baseline.label == null then "" else " as \($baseline.label | tojson)" end)
                 + (if $baseline.forced == null then "" else ", by force: \($baseline.forced)" end)) };

# What stands on one side only is shown; where nothing stands on both, nothing was compared.
def alone($run; $now; $was; $common):
  ([$was[] | select($now[.] == null)]) as $gone
  | ([$now | keys_unsorted[] | select($common[.] == null)]) as $new
  | if ($now | length) > 0 and ($common | length) == 0 then
      check("drift/missing"; "The accepted run has this run's figures"; "inconclusive")
      + { measured: "run \($run) and this one have no figure in common", evidence: ($new | .[0:evidence_max]),
          remedy: "Plan again with the accepted run's suite, or with plan_baseline=none, and accept that run" }
    elif $gone == [] and $new == [] then empty
    else
      check("drift/missing"; "Figures that only one of the two runs has"; "not_judged")
      + { measured: "\($gone | length) of run \($run) only, \($new | length) of this one only",
          evidence: ($gone + $new | .[0:evidence_max]) }
    end;

def unlike_check($run):
  select(length > 0)
  | check("drift/unlike"; "Only like figures are held against the accepted run"; "inconclusive")
  + { measured: "\(length | words::plural("figure")) of run \($run) were measured otherwise, the first: \(.[0].unlike)",
      source: "design, records with different definitions or levels are never compared", evidence: (map(.at) | .[0:evidence_max]),
      remedy: "Measure as then; or plan with plan_baseline=none, and accept that run as the new baseline" };

def fabric_check($differences; $run):
  check("drift/fabric"; "The accepted run is of this fabric"; "inconclusive")
  + { measured: "run \($run) was measured on another fabric: \($differences | join("; "))",
      source: "design, relative limits against an accepted run of the same devices, rates, MTU, limits and scope",
      remedy: "Plan with plan_baseline=none, and accept that run if the fabric is meant to be so" };

$baseline[0] as $b
| reduce (inputs | updates) as $u ({}; apply($u))
| [to_entries[] | select(.key | startswith("end\t")) | .value] as $ends
| (with_entries(select((.key | startswith("figure\t")) and (.value.values | all(. != null))) | .key |= .[7:])) as $now
| [fabric::differences($b.fabric; fabric::identity($plan[0]; $ends; $verdict[0].scope))] as $differences
| ($verdict[0].scope | IN("software", "simulated") | not) as $binding_scope
| if $differences != [] then [fabric_check($differences; $b.run)]
  else
    [ $now | to_entries[] | .key as $key | $b.figures[$key] as $was | select($was != null)
      | .value | {$key, $was, metric, better, test, at, terms, now: (.values | figures::of_repeats),
                  unlike: (.unlike // figures::unlike($b.terms[$was.of]; .terms))} ] as $pairs
    | ([$pairs[] | {key, value: true}] | from_entries) as $common
    | ($pairs | map(select(.unlike == null)) | group_by([.test, .metric]) | map(judged($binding_scope))) as $groups
    | ($b.figures | keys_unsorted | map(select(policy[split("/")[4]] != null))) as $was
    | [ ($groups | map(.[]) | map(select(.state == "pass")) | held($b.run; $b)),
        ($groups[] | group_check($b.run)),
        ($pairs | map(select(.unlike != null)) | unlike_check($b.run)),
        alone($b.run; $now; $was; $common) ]
  end
