# One pass over the records of a part of the run (tally_merge.jq joins the parts): each record gives a few updates [key, fold, data], and each update folds its data into
# the value under its key. The state is one flat object, and an update is one setpath on it with nothing else holding
# the state: jq then changes it in place. Nested tables, `|=` or a `//` in the way would copy the whole state for every
# record, and the cost would grow with the square of their number.
import "common" as c;
import "limits" as limits;
import "ceiling" as ceiling;
import "comparison" as comparison;
import "agreement" as agreement;
import "claims" as claims;
import "shares" as shares;
import "fabric" as fabric;
import "evaluated" as evaluated;
import "repeats" as repeats;

def sep: "\t";

# Its place within the flow: the size; of a transfer size, batch and pair of devices, 1024x128/0 or 1024x128/sum.
def place:
  if .kind | IN("transfer", "sum") then
    "\(.params.size_bytes)x\(.params.batch)/\(if .kind == "sum" then "sum" else .transfer.pair end)"
  else .params.size_bytes | tostring end;

def record_id: .flow + "#" + place;

# Kept short: a check names the first offenders, coverage.missing lists every one.
def evidence_max: 20;
def add_evidence($id): if length < evidence_max then . + [$id] else . end;

# As the plan named it.
def expected:
  .params.size_bytes as $size_bytes
  | if .kind == "transfer" then {kind, $size_bytes, batch: .params.batch, pair: .transfer.pair}
    elif .kind == "sum" then {kind, $size_bytes, batch: .params.batch}
    else {$size_bytes} end;

# Each record is counted once, under all that checks count by.
def status_updates($id):
  [(["seen", .test, .scope, (.link.layer // "unknown"), (.path.state // "unknown"), .status,
     (if .error == null then "clean" else "error" end)] | join(sep)), "ids", $id],
  if .status == "ok" then empty
  else ["missing" + sep + $id, "set",
        { flow, expect: expected, status, code: .error.code, message: .error.message }]
  end;

# FAIL: a limit on the command line (1), corruption (5), a peer lost after traffic (4). All else kept it unmeasured.
def finding:
  if .code == 1 or .code == 5 or (.code == 4 and .traffic == true) then "fail" else "inconclusive" end;

def flow_updates($id):
  if .error == null then empty
  else ["flow" + sep + .flow, "flow",
        {status: (.error | finding), code: .error.code, message: .error.message, test, evidence: [$id]}]
  end;

# One finding a flow; a failure outranks what merely kept later sizes from being measured.
def fold_flow($new):
  if . == null then $new
  else (.evidence | add_evidence($new.evidence[0])) as $evidence
    | (if .status == "inconclusive" and $new.status == "fail" then $new else . end) + {evidence: $evidence}
  end;

def integrity_updates($id):
  # a transfer's sum has checked nothing that its pairs have not
  if .integrity == null or .kind == "sum" then empty else ["integrity", "integrity", (.integrity + {id: $id})] end;

def fold_integrity($new):
  (. // {checked: 0, bad: 0, evidence: []})
  | { checked: (.checked + $new.checked_bytes), bad: (.bad + $new.bad_bytes),
      evidence: (if $new.bad_bytes > 0 then .evidence | add_evidence($new.id) else .evidence end) };

# A stall is of use only with its time: other logs of that moment say why.
def dated($limit; $r): if $limit.metric == "derived.stall_s" and $r.stall.began != null then " at \($r.stall.began)" else "" end;

# What a limit holds of a record, as fold_limit takes it. $found: {share}, {unknown} or {none}; why there is no figure.
def held($limit; $r; $id; $found):
  ["limit" + sep + $limit.id + sep + $r.test, "limit",
   {limit: $limit.id, test: $r.test, id: ($id + dated($limit; $r)), v: $found.share, why: ($found.unknown // $found.none), none: ($found.none != null),
    strain: (if $found.share == null then null else $limit | limits::strain($found.share) end),
    broken: ($found.share != null and ($limit | limits::broken_by($found.share)))}];

# Relative limits cost what they ask: the ceiling, the accepted figure, or a step of the counted values of like flows.
def relative_updates($limit; $id; $v; $baseline):
  if $v == null then held($limit; .; $id; {unknown: null})
  elif $limit.bound.of == "ceiling" then held($limit; .; $id; shares::of_ceiling($v))
  elif $limit.bound.of == "peers" then
    if $v > 0 then
      [ (["like", $limit.id, .test, shares::like, ($v | shares::step | tostring)] | join(sep)), "step",
        {$v, $id, strain: (if $limit.bound.min != null then -$v else $v end)} ]
    else held($limit; .; $id; {unknown: null}) end
  else
    held($limit; .; $id; shares::of_baseline($v; $limit.metric; $baseline)),
    (fabric::ends | ["end" + sep + tojson, "set", .])
  end;

def limit_updates($id; $limits; $baseline):
  . as $r
  | ($limits[$r.test] // [])[]
  | select(limits::speaks_of($r))
  | . as $limit
  | ($r | limits::value($limit.metric)) as $v
  | if $limit.bound.of == null then held($limit; $r; $id; {share: $v})
    else $r | relative_updates($limit; $id; $v; $baseline) end;

def fold_limit($new):
  (. // {limit: $new.limit, test: $new.test, judged: 0, unknown: 0, none: 0, broken: 0, strain: -1, worst: null, at: null, why: null, evidence: []})
  | if $new.v == null then .why = (.why // $new.why) | if $new.none then .none += 1 else .unknown += 1 end
    else .judged += 1
      | (if $new.strain > .strain then .strain = $new.strain | .worst = $new.v | .at = $new.id else . end)
      | if $new.broken then .broken += 1 | .evidence |= add_evidence($new.id) else . end
    end;

def repeat_updates:
  (if .kind == "latency" then (.latency_us.p50 // .latency_us.mean) else .bandwidth.gbit_s end) as $v
  | if $v == null then empty
    else [(["cv", .test, .client.host, .server.host, place] | join(sep)), "spread", $v]
    end;

# The values themselves: repeats of one thing lie far apart in the stream, and each part of a large run holds some of them.
def fold_spread($v): . // [] | . + [$v];

# Half a percent over the ceiling is granted for the clocks of two hosts (docs/definitions.md).
def ceiling_tolerance: 1.005;

def ceiling_updates($id):
  if .bandwidth == null then empty
  else ceiling::of_record as $top
    | ["ceiling", "ceiling", {id: $id, hardware: (.scope == "hardware"), percent: (if $top == null then null else 100 * .bandwidth.gbit_s / $top end)}]
  end;

def fold_ceiling($new):
  (. // {judged: 0, unknown: [], worst: 0, at: null, evidence: []})
  | if $new.percent == null then if $new.hardware then .unknown |= add_evidence($new.id) else . end
    else .judged += 1
      | (if $new.percent > .worst then .worst = $new.percent | .at = $new.id else . end)
      | if $new.percent > 100 * ceiling_tolerance then .evidence |= add_evidence($new.id) else . end
    end;

def fold_ids($id): (. // {n: 0, evidence: []}) | {n: (.n + 1), evidence: (.evidence | add_evidence($id))};

# The proof is the flow's, and every size carries it: a flow is counted once, as its records stand together.
def path_updates:
  if .path == null then empty
  else (if .path.state == "proven" then "" elif .path.state == "not_judged" then .path.reason else .flow end) as $which
    | [(["path", .path.state, .scope, (if claims::is_rdma then "rdma" else "sockets" end), $which] | join(sep)), "path", {flow, reason: .path.reason}]
  end;

def fold_path($new):
  (. // {n: 0, last: null, reason: $new.reason, evidence: []})
  | if .last == $new.flow then .
    else {n: (.n + 1), last: $new.flow, reason, evidence: (.evidence | add_evidence($new.flow))} end;

# The yardstick beside our own bandwidth: one connection, one way, the same message size.
def cross_updates($id):
  if .client.host == "unknown" or .kind != "bandwidth" or .params.queue_pairs != 1 or .params.bidirectional == true or .params.verify == true
     or (.tool.name == "perch" and (.backend != "tcp" or .params.completion != "busy")) then empty
  elif .tool.name == "perch" or .tool.name == "iperf3" then
    [(["cross", .client.host, .server.host, (.params.size_bytes | tostring), .tool.name] | join(sep)), "mean",
     {v: .bandwidth.gbit_s, id: $id}]
  else empty end;

def fold_mean($new):
  (. // {values: [], evidence: []}) | {values: (.values + [$new.v]), evidence: (.evidence | add_evidence($new.id))};

def comparison_updates($id):
  comparison::entry as $e | if $e == null then empty else ["cmp" + sep + $e.key + sep + $id, "set", $e.values] end;

# Which flows were only simulated: the plan says of which that is no surprise.
def simulated_updates: if .scope == "simulated" then ["simulated" + sep + .flow, "set", true] else empty end;

def agreement_updates($id):
  agreement::entry as $e | if $e == null then empty else ["agree" + sep + $e.key + sep + $id, "set", $e.values] end;

def updates($limits; $baseline; $wanted; $repeated):
  record_id as $id
  | status_updates($id), flow_updates($id), integrity_updates($id), path_updates, simulated_updates, evaluated::flow_updates,
    ( select(.status == "ok")
      | ( . as $r
          | ($repeated != {} and $repeated[repeats::pair] != null) as $waits
          | (evaluated::record_updates($id), limit_updates($id; $limits; $baseline))
          | if $waits then repeats::held_back($r; $r | place) else ., repeats::outside($r) end ),
        repeat_updates, ceiling_updates($id), cross_updates($id), (select($wanted.comparison) | comparison_updates($id)),
        (select($wanted.agreement) | agreement_updates($id)) );

def folded($fold; $data):
  if $fold == "set" then $data
  elif $fold == "flow" then fold_flow($data)
  elif $fold == "integrity" then fold_integrity($data)
  elif $fold == "limit" then fold_limit($data)
  elif $fold == "spread" then fold_spread($data)
  elif $fold == "ceiling" then fold_ceiling($data)
  elif $fold == "ids" then fold_ids($data)
  elif $fold == "step" then shares::fold_step($data)
  elif $fold == "path" then fold_path($data)
  elif $fold == "shape" then evaluated::fold_shape($data)
  elif $fold == "event" then evaluated::fold_event($data)
  elif $fold == "again" then repeats::fold_again($data)
  elif $fold == "worst" then evaluated::fold_worst($data)
  else fold_mean($data)
  end;

# The brackets make jq finish with the old value (and drop every fork that a `//` leaves) before the state is touched.
def apply($u): .[$u[0]] as $old | [$old | folded($u[1]; $u[2])] as $new | setpath([$u[0]]; $new[0]);

# The flat state sorted out once: {prefix: [{parts, value}]}, the parts being the rest of each key.
def sections:
  [to_entries[] | (.key | split(sep)) as $k | {prefix: $k[0], parts: $k[1:], value: .value}]
  | group_by(.prefix)
  | map({key: .[0].prefix, value: .})
  | from_entries;

def entries($prefix): (.[$prefix] // [])[];

# Like flows, group by group: [{key, limit, test, steps, median}], or {none: why there is no median}. The steps are in order.
def like_groups($limits; $pairs):
  [ .like | group_by(.parts[0:3])[]
    | .[0].parts as [$id, $test, $like]
    | (sort_by(.parts[3] | tonumber) | map(.value)) as $steps
    | ($pairs["\($test)\t\($like | fromjson | .[4] // "")"] // 0) as $n
    | {key: ([$id, $test, $like] | join(sep)), limit: first($limits[] | select(.id == $id)), $test, $steps}
      + if $n < shares::fewest_peers then {none: "\($n) pairs of hosts measured it alike, and \(shares::fewest_peers) are needed for a median to stand by"}
        else {median: ($steps | shares::median_of_steps)} end ];

# The second look at a group: its values against its median. Of a step its two extremes are judged.
def look_again:
  . as $group
  | if .none != null then held(.limit; .; .steps[0].low.id; {none})
    else .steps[] | .low, (select(.high.id != .low.id) | .high) | held($group.limit; $group; .id; {share: (.v / $group.median)}) end;

# The repeats of one figure, as shares: {parts, value} as of any other limit.
def again_of_like($groups):
  .parts as $parts
  | ($groups[$parts[5:8] | join(sep)]) as $group
  | .parts = $parts[0:4] + ["limit"] + $parts[5:7]
  | .value |= map(.d |= (if $group.median == null then {v: null, broken: false}
                         else (.v / $group.median) as $v | {$v, broken: ($group.limit | limits::broken_by($v))} end));

def with_peers($limits; $pairs):
  if .like == null then .
  else
    . as $sections
    | like_groups($limits; $pairs) as $groups
    | [$groups[] | look_again] as $updates
    | (reduce $updates[] as $u ([$sections.limit // [] | .[] | {key: (["limit"] + .parts | join(sep)), value: .value}] | from_entries; apply($u))
       | sections.limit) as $limit
    | [ $updates[] | select(.[2].broken)
        | {prefix: "outside", parts: ((.[2].id | split("#")[0] | split("/")[0:3]) + (.[0] | split(sep))), value: true} ] as $outside
    | $sections + {$limit}
    | (if $outside == [] then . else .outside += $outside end)
    | if .again == null then .
      else ($groups | map({key, value: .}) | from_entries) as $by_key
        | .again |= map(if .parts[4] == "like" then again_of_like($by_key) else . end) end
  end;

# A part of the run, counted: the flat state. $baseline: {fault, document}, as shares.jq takes it. $wanted: {comparison, agreement},
# whether the plan has two sides that could be compared; who stands alone is not kept, for each record of it costs 3 KB.
def counted(records; $flows; $limits; $baseline; $wanted):
  limits::by_test($flows; $limits) as $by_test
  | repeats::planned($flows) as $repeated
  | reduce (records | updates($by_test; $baseline; $wanted; $repeated)) as $u ({}; apply($u))
  # flows that were repeated stand in one part with their repeats (judge, read_retry)
  | if $repeated == {} then . else reduce repeats::settled as $u (.; apply($u)) end;

# Welford's mean and variance, in the order of the records.
def spread:
  reduce .[] as $v ({n: 0, mean: 0, m2: 0};
    (.n + 1) as $n
    | ($v - .mean) as $d
    | (.mean + $d / $n) as $mean
    | {n: $n, mean: $mean, m2: (.m2 + $d * ($v - $mean))});

# The state of all parts (tally_merge.jq) -> its sections, as checks.jq asks for them.
def finished($flows; $limits):
  sections
  | if .cv == null then . else .cv |= map(.value |= spread) end
  | if .cross == null then . else .cross |= map(.value |= {n: (.values | length), sum: (.values | add), evidence}) end
  | with_peers($limits; if .like == null then {} else shares::pairs($flows) end);

# Counts of records by one of the parts of their "seen" key: 0 test, 1 scope, 2 layer, 3 path state, 4 status, 5 error.
def seen($part):
  [entries("seen")] | group_by(.parts[$part])
  | map({key: .[0].parts[$part], n: (map(.value.n) | add), evidence: (map(.value.evidence[]) | .[:evidence_max]), entries: .});
def measured: [seen(4)[] | select(.key == "ok") | .n] | add // 0;
