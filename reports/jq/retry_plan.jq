# plan.retry.json against plan.json: is it a plan of repeats of this run? Input: the document. Alone, like plan_faults.jq.
import "planned" as planned;

# Two repeats more: where one of one was outside, three values have a median that a single stray cannot move.
def repeats: 2;

# Outliers are the exception: where more than a quarter lies outside, a quartile does, and no spread of single flows explains it
# (J. W. Tukey, Exploratory Data Analysis, 1977, counts as outside what lies beyond the quartiles). One flow may always be tried.
def most_share: 0.25;
def most($pairs): [most_share * $pairs, 1] | max;

def bare: del(.id, .repeat);

# {pair: [planned flows]}
def by_pair: reduce planned::flows as $f ({}; .["\($f.test)/\($f.client)/\($f.server)"] += [$f]);

def flow_faults($planned):
  . as $f
  | ("\(.test)/\(.client)/\(.server)") as $pair
  | $planned[$pair] as $own
  | if $own == null then "flow \(.id | tojson) repeats what was not planned"
    elif .id != "\($pair)/\(.repeat)" then "flow \(.id | tojson) is not named by its test, hosts and repeat"
    elif ($own | map(.repeat) | max) as $last | .repeat <= $last or .repeat > $last + repeats or .repeat != (.repeat | floor) then
      "flow \(.id | tojson) has a repeat that does not follow the planned ones"
    elif bare != ($own[0] | bare) then
      "flow \(.id | tojson) is not as it was planned: \([keys_unsorted[] as $k | select($own[0][$k] != .[$k] and ($k | IN("id", "repeat") | not)) | $k][0:3] | join(", "))"
    else empty end;

def faults($plan):
  if type != "object" or .schema != "perch.plan/1" or (.rounds | type) != "array" then "it is no perch.plan/1 document"
  elif .run != $plan.run then "it is of run \(.run | tojson), not \($plan.run)"
  elif .hosts != $plan.hosts then "its hosts are not those of the plan"
  else
    ($plan | by_pair) as $planned
    | ( planned::flows | flow_faults($planned) ),
      # one repeat that is named several times would outvote all others
      ( by_pair | to_entries[] | (.value | map(.repeat)) as $own | select(($own | length) != repeats or ($own | unique | length) != repeats)
        | "\(.key) is repeated \($own | length) times (\($own | map(tostring) | join(", "))), not \(repeats) times" ),
      ( [by_pair, $planned | length] | select(.[0] > most(.[1])) | "it repeats \(.[0]) of \(.[1]) pairs of hosts, more than a quarter" )
  end;

# The two as one, the repeats marked.
def joined($plan): . as $again | $plan | .rounds += [$again.rounds[] | .flows |= map(.retry = true)];
