# The states of several parts of a run (tally.jq, counted) -> that of the whole, as one pass over all records would have made it.
# A fold of tally.jq must have its like here; the first word of a key says which fold made its value. Values that are summed
# as floating-point numbers would depend on the parts, so those stay lists until tally.jq's finished().

def first_ones: .[0:20]; # tally.jq, evidence_max

def fold_of:
  { seen: "ids", flow: "flow", integrity: "integrity", limit: "limit", like: "step", cv: "list", ceiling: "ceiling", path: "path",
    cross: "mean", missing: "set", cmp: "set", agree: "set", simulated: "set", end: "set", counted: "path", skew: "worst", event: "event", stale: "set", shape: "shape",
    outside: "set", again: "list" };

def worst_of($new; $by): if $new[$by] > .[$by] then . + ($new | {worst, at} + {($by): .[$by]}) else . end;

# One key's value in the parts before, and in the next one, which is later in the run.
def merged($fold; $new):
  if $fold == "set" then $new
  elif $fold == "list" then . + $new
  elif $fold == "worst" then if ($new.v | fabs) > (.v | fabs) then $new else . end
  else
    ((.evidence // []) + ($new.evidence // []) | first_ones) as $evidence
    | if $fold == "ids" then {n: (.n + $new.n), $evidence}
    elif $fold == "mean" then {values: (.values + $new.values), $evidence}
    elif $fold == "integrity" then {checked: (.checked + $new.checked), bad: (.bad + $new.bad), $evidence}
    elif $fold == "flow" then (if .status == "inconclusive" and $new.status == "fail" then $new else . end) + {$evidence}
    elif $fold == "path" then {n: (.n + $new.n - if .last == $new.last then 1 else 0 end), last: $new.last, reason, $evidence}
    elif $fold == "step" then
      {n: (.n + $new.n), low: (if $new.low.v < .low.v then $new.low else .low end), high: (if $new.high.v > .high.v then $new.high else .high end)}
    elif $fold == "ceiling" then
      worst_of($new; "worst") + {judged: (.judged + $new.judged), unknown: (.unknown + $new.unknown), $evidence}
    elif $fold == "limit" then
      worst_of($new; "strain")
      + { judged: (.judged + $new.judged), unknown: (.unknown + $new.unknown), none: (.none + $new.none), broken: (.broken + $new.broken),
          why: (.why // $new.why), $evidence }
    elif $fold == "event" then
      { n: (.n + $new.n), bad: (.bad + $new.bad), last: $new.last, sum: (.sum + $new.sum),
        worst: (if .worst == null or ($new.worst != null and $new.worst > .worst) then $new.worst else .worst end),
        ppm: (.ppm or $new.ppm),
        at: (if .at == null or ($new.worst != null and .worst != null and $new.worst > .worst) then $new.at else .at end), $evidence }
    elif $fold == "shape" then
      (if $new.strain > .strain then . + ($new | {strain, worst, at, of}) else . end)
      + {judged: (.judged + $new.judged), broken: (.broken + $new.broken), hard: (.hard + $new.hard), $evidence}
    else error("the parts of a run cannot be joined by the fold \($fold | tojson)") end
  end;

def merged_states(states):
  fold_of as $fold_of
  | reduce states as $state (null;
      if . == null then $state
      else
        reduce ($state | keys_unsorted[]) as $key (.;
          .[$key] as $old
          | (if $old == null then $state[$key]
             else [$key | split("\t")[0]] as [$what]
               | [$old | merged($fold_of[$what] // $what; $state[$key])][0] end) as $value
          | setpath([$key]; $value))
      end)
  | . // {};
