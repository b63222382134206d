# plan.json and the verdict -> {plan} (perch.plan/1): the repeats of what fell outside, or {why}: why there are none. Input (-n):
# the verdict; $plan: one-element array (--slurpfile).
import "retry_plan" as retry;
import "planned" as planned;

# Into the first round where both hosts are free: the same rule that plan.jq keeps.
def placed:
  reduce .[] as $f ([];
    ([range(0; length) as $i | select(all(.[$i][]; .client != $f.client and .client != $f.server and .server != $f.client and .server != $f.server)) | $i]
     | .[0]) as $free
    | if $free == null then . + [[$f]] else .[$free] += [$f] end);

input as $verdict
| $plan[0] as $plan
| ($verdict.outside // {pairs: 0, of: 1, first: []}) as $outside
| if $verdict.run != $plan.run then {why: "its verdict is of run \($verdict.run | tojson)", code: 3}
  elif $outside.pairs == 0 then {why: "nothing fell outside that a repeat could cure", code: 1}
  elif $outside.pairs > retry::most($outside.of) or $outside.pairs > ($outside.first | length) then
    { why: "\($outside.pairs) of \($outside.of) fell outside, more than a quarter: that is no outlier but the fabric, the hosts or the limits", code: 3 }
  else
    ($plan | retry::by_pair) as $planned
    | [ range(1; retry::repeats + 1) as $more | $outside.first[] | $planned["\(.test)/\(.client)/\(.server)"]
        | ((map(.repeat) | max) + $more) as $repeat
        | .[0] + {id: "\(.[0].test)/\(.[0].client)/\(.[0].server)/\($repeat)", $repeat} ]
    | placed as $rounds
    | { plan: ($plan | {schema, run, created, suite, limits, hosts, excluded: [], rounds: [$rounds[] | {flows: .}]}),
        said: ("\($outside.pairs) of \($outside.of) fell outside: " + ([$outside.first[0:3][] | "\(.test)/\(.client)/\(.server) (\(.why[0]))"] | join(", "))
              + if $outside.pairs > 3 then " and \($outside.pairs - 3) more" else "" end) }
  end
