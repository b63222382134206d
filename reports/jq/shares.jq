# Bounds that are relative: a figure as a share of what its link can carry, of what its like have, or of what it was.
import "common" as c;
import "ceiling" as ceiling;
import "figures" as figures;

# A record's figure -> {share}, {unknown: why, where it should be known} or {none: why there is no such thing}.
def of_ceiling($value):
  . as $r
  | ($r | ceiling::of_record) as $top
  | if $top != null then {share: ($value / $top)}
    elif $r.scope == "hardware" then {unknown: "the rate or the MTU of its link is not known, so its ceiling is not"}
    else {none: "no ceiling: loopback, shared memory and devices of software have none that is known"} end;

# $baseline: {fault, document}; document is perch.baseline/1.
def of_baseline($value; $metric; $baseline):
  if $baseline.fault != null then {unknown: $baseline.fault}
  else
    figures::accepted($baseline.document; $metric) as $was
    | if $was == null then {unknown: "the accepted run \($baseline.document.run) has no such figure"}
      elif $was.value | c::is_finite and . > 0 | not then {unknown: "the baseline's figure is none"}
      else
        figures::unlike($was.terms; figures::terms) as $unlike
        | if $unlike != null then {unknown: "the accepted run \($baseline.document.run) measured it otherwise (\($unlike))"}
          else {share: ($value / $was.value)} end
      end
  end;

# ---- like flows -----------------------------------------------------------------------------------------------------

# So many pairs of hosts must have measured the same. With 5 hosts, 4 of the 10 pairs hold any one of them: a bad host spoils
# less than half, and the median stays that of good ones. With 4 hosts it spoils 3 of 6.
def fewest_peers: 10;

# Records of one test with these in common are like each other.
def like: [.kind, .op, .params.size_bytes, (if .kind | IN("transfer", "sum") then .params.batch else null end), .link.hop_class] | tojson;

# {"test<TAB>hop class": pairs of hosts that measure it}, by the plan: repeats of one pair are no peers.
def pairs($flows):
  reduce ($flows[] | [.test, (.hop_class // "" ), (.client, .server | tojson)] | {of: "\(.[0])\t\(.[1])", pair: (.[2:] | sort | join(" "))}) as $f
    ({}; .[$f.of][$f.pair] = true)
  | map_values(length);

# Values are counted in steps of a thousandth, so the state does not grow with the records; each step keeps its extremes.
def step: log * 1000 | floor;
def fold_step($new):
  (. // {n: 0, low: null, high: null})
  | .n += 1
  | if .low == null or $new.v < .low.v then .low = $new else . end
  | if .high == null or $new.v > .high.v then .high = $new else . end;

# Steps of one group, in order -> the middle of the step that holds the value of this rank (from 1).
def at_rank($rank):
  reduce .[] as $s ({before: 0, value: null};
    if .value == null and .before + $s.n >= $rank then .value = ($s.low.v + $s.high.v) / 2 else .before += $s.n end)
  | .value;
def median_of_steps:
  (map(.n) | add) as $n
  | (at_rank(($n + 1) / 2 | floor) + at_rank(($n + 2) / 2 | floor)) / 2;
