# A pair of hosts that fell outside and was repeated (plan.retry.json) is judged on the median over all of its repeats.
# Imported by tally.jq: what limits and shapes say of each repeat is kept until all have been heard.

def sep: "\t";

def pair: "\(.test)\t\(.client.host)\t\(.server.host)";

# {pair: {flows: ids of its repeats, first: the number of the first of them}} of the flows that judge has marked.
def planned($flows):
  reduce ($flows[] | select(.retry)) as $f ({};
    "\($f.test)\t\($f.client)\t\($f.server)" as $pair
    | (.[$pair] // {flows: [], first: $f.repeat}) as $old
    | .[$pair] = {flows: ($old.flows + [$f.id]), first: ([$old.first, $f.repeat] | min)});

def judged: .[1] | IN("limit", "shape", "step");

# What the repeats of one figure have in common; the last word of a step is its value's.
def figure: if .[1] == "step" then .[0] | split(sep)[:-1] | join(sep) else .[0] end;

# One update of a record of a repeated pair; only limits, shapes and steps of like flows wait.
def held_back($r; $place):
  if judged | not then .
  else [(["again", ($r | pair), $place, figure] | join(sep)), "again", {key: .[0], fold: .[1], repeat: $r.repeat, d: .[2]}] end;
def fold_again($new): . + [$new];

# What lies outside by itself, for `reports/retry`; what like flows say is known when all have been heard (tally.jq, look_again).
def outside($r): select(judged and .[2].broken) | ["outside" + sep + ($r | pair) + sep + .[0], "set", (.[2].hard != false)];

# Entries of all repeats of one figure -> the one that speaks for them: an unknown one, else the middle by how near each is to its
# bound; of an even number the worse of the two.
def spokesman:
  ([.[] | select(.d.v == null)][0]) // (sort_by([.d.broken, .d.strain]) | .[length / 2 | floor]);

# The updates that were kept back, one for each figure.
def settled: to_entries[] | select(.key | startswith("again" + sep)) | .value | spokesman | [.key, .fold, .d];
