# What is wrong with a set of limits: the one checker, when a run is planned (limit_sets.jq) and when it is judged (judge).
# A fault is {limit: id or null, key: where in the limit or null, says}.
import "common" as c;

# A key, value or metric that no record has would let a misspelt limit pass in silence.
def words:
  { tool: ["perch", "perftest", "cxi", "iperf", "iperf3", "mori"], backend: ["tcp", "ofi", "verbs", "cxi", "null"],
    op: ["send", "send-imm", "write", "write-imm", "read", "fetch-add", "compare-swap", "atomic-op", "fetch-atomic", "compare-atomic"],
    kind: ["latency", "bandwidth", "transfer", "sum"],
    definition: ["half_round_trip", "completion", "receiver_acknowledged", "initiator_completion", "receiver_payload", "sender_payload",
                 "batch_completion"],
    scope: ["hardware", "software", "simulated", "imported"], completion: ["busy", "event"],
    layer: ["roce", "ethernet", "infiniband", "slingshot", "loopback", "shm", "iwarp"], hop_class: ["same_switch", "same_group", "cross_group"] };
def names: ["provider", "test", "client", "server"];
def numbers: ["size_bytes", "queue_pairs", "batch", "devices"];

# Of soaks: soak_bounds.jq has what they are held against without a limit.
def soak_metrics:
  "soak\\.(gaps|stall_s|interval_share|interval_gbit_s|window_share|p99_times|p99_us|bandwidth_percent|p50_percent|p99_percent|leak_mb_per_hour|handles_per_hour|rate_percent|clock_s)";
# What the plan knows of a flow.
def soak_scopes: ["tool", "backend", "provider", "op", "kind", "test", "scope", "client", "server", "size_bytes"];

def metric_pattern:
  "^(" + soak_metrics + "|latency_us\\.(count|min|max|mean|stddev|p50|p90|p95|p99|p99_9|p99_99)|bandwidth\\.(gbit_s|peak_gbit_s|min_interval_gbit_s|messages_per_s)"
  + "|cpu\\.(client|server)(_system)?_s(_per_gb)?|tcp\\.(retransmissions|initial_rtt_us|window_bytes)"
  + "|derived\\.(p99_minus_p50_us|retransmissions_per_gb|stall_s|loss_ppm|packets_(lost|retried|corrupted)_ppm)|agreement\\.(p50_us|mean_us|gbit_s))$";

# The unit that a metric has in a record, as a pattern; what has none here is counted in the limit's own words.
def unit_of($metric):
  if $metric | test("^soak\\.[a-z0-9]*_us$|^latency_us\\.(?!count)|^derived\\.p99_minus_p50_us$|^tcp\\.initial_rtt_us$") then "us"
  elif $metric | test("^(bandwidth\\..*|soak\\.interval_)gbit_s$") then "Gb/s"
  elif $metric | test("^(derived\\.stall_s|soak\\.(stall|clock)_s|cpu\\.[a-z_]*_s)$") then "s"
  elif $metric == "tcp.window_bytes" then "bytes"
  else null end;

# What a bound may be relative to, and how its unit begins then.
def relative: {ceiling: "of the ceiling", peers: "of the median", baseline: "of the baseline"};
def of_ceiling: ["bandwidth.gbit_s", "bandwidth.min_interval_gbit_s"];

def keys_of_limit: ["id", "title", "scope", "metric", "bound", "unit", "source", "severity", "remedy"];
# What merging writes beside them.
def keys_of_merged: keys_of_limit + ["from", "replaces", "removed"];
def is_text: type == "string" and test("\\S");
def in_list($list): . as $x | $list | index([$x]) != null;
def fault($key; $says): {limit: null, $key, $says};
def each: if type == "array" then .[] else . end;
def is_range: type == "object";

def range_faults($key):
  ( keys_unsorted[] | select(in_list(["min", "max"]) | not) | fault("\($key).\(.)"; "unknown; a range has min, max or both") ),
  ( to_entries[] | select(.value | c::is_finite | not) | fault("\($key).\(.key)"; "no number") ),
  ( select((.min | c::is_finite) and (.max | c::is_finite) and .min > .max) | fault($key; "min \(.min) lies above max \(.max): it matches nothing") ),
  ( select(length == 0) | fault($key; "an empty range: it says nothing") );

def scope_faults:
  to_entries[]
  | "scope.\(.key)" as $at | .key as $key | .value
  | if (type == "array") and length == 0 then fault($at; "an empty list: it matches nothing")
    elif $key == "bidirectional" then select(type != "boolean") | fault($at; "neither true nor false: it matches nothing")
    elif $key | in_list(numbers) then
      if is_range then range_faults($at)
      else each | select((c::is_finite | not) or . < 0) | fault($at; "\(tojson) is no such number: it matches nothing") end
    elif $key | in_list(names) then each | select(is_text | not) | fault($at; "\(tojson) is no name: it matches nothing")
    elif words[$key] != null then
      each | select(in_list(words[$key]) | not) | fault($at; "no record has \(tojson); there are \(words[$key] | join(", "))")
    else fault($at; "unknown; a scope may have \([words, {provider: 0}] | add | keys | . + ["test", "client", "server", "bidirectional"] + numbers | unique | join(", "))") end;

# A figure that records of these kinds never have.
def kind_faults:
  (.metric | split(".")) as $m
  | [.scope.kind | each // empty] as $kinds
  | ( if $m[0] == "bandwidth" or $m[1] == "gbit_s" then ["bandwidth", "transfer", "sum"]
      elif $m[0] == "latency_us" or $m[1] == "p99_minus_p50_us" then ["latency", "transfer", "sum"]
      elif $m[0] == "agreement" then ["latency"] else null end ) as $having
  | select($having != null and $kinds != [] and all($kinds[]; in_list($having) | not))
  | fault("scope.kind"; "no record of kind \($kinds | join(", ")) has \(.metric): it matches nothing");

# What of a flow no limit of its soak can ask for: it is held before any record is.
def soak_faults:
  select(.metric | startswith("soak."))
  | ( .scope | objects | keys_unsorted[] | select(in_list(soak_scopes) | not) | fault("scope.\(.)"; "a limit of a soak may have \(soak_scopes | join(", "))") ),
    ( .bound | objects | select(has("of")) | fault("bound.of"; "a limit of a soak is not relative to anything but the flow itself") );

def bound_faults:
  .metric as $metric
  | .bound
  | if type != "object" then fault("bound"; "no bound")
    else
      ( keys_unsorted[] | select(in_list(["min", "max", "of"]) | not) | fault("bound.\(.)"; "unknown; a bound has min, max or both, and may be relative (of)") ),
      # jq reads -inf as the least number that it has, which every figure keeps
      ( ("min", "max") as $k | select(has($k) and (.[$k] | c::is_finite and fabs < 1e300 | not)) | fault("bound.\($k)"; "no number") ),
      ( select((.min | c::is_finite | not) and (.max | c::is_finite | not)) | fault("bound"; "no bound: neither min nor max is a number") ),
      ( select((.min | c::is_finite) and (.max | c::is_finite) and .min > .max) | fault("bound"; "min \(.min) lies above max \(.max): nothing can keep it") ),
      ( select(has("of"))
        | if .of | in_list(relative | keys) | not then fault("bound.of"; "\(.of | tojson) is none of \(relative | keys | join(", "))")
          else
            ( (.min, .max) | select(c::is_finite and . <= 0) | fault("bound"; "a share must be above 0, such as 0.9") ),
            ( select(.of == "ceiling")
              | ( select($metric | in_list(of_ceiling) | not) | fault("bound.of"; "only \(of_ceiling | join(" and ")) have a ceiling") ),
                ( select((.min | c::is_finite) and .min > 1) | fault("bound.min"; "no figure can lie above its ceiling; 1 is all of it") ) ),
            ( select(.of != "ceiling" and ($metric | type == "string" and test("^(latency_us|bandwidth)\\.") | not))
              | fault("bound.of"; "only figures of latency_us and bandwidth, which are never 0, have a share of others") )
          end )
    end;

def unit_faults:
  (if .bound.of? != null then relative[.bound.of | tostring] else unit_of(.metric) end) as $unit
  | .unit as $said
  # "Gb/s, both ways"
  | select($unit != null and ($said | is_text)
           and ($said == $unit or ($said | startswith($unit + ",")) or ($unit | startswith("of ")) and ($said | startswith($unit)) | not))
  | fault("unit"; "\($said | tojson) is not the unit of \(.metric), which is \"\($unit)\"");

def removal_faults:
  .removed
  | select(. != null)
  | select((.source | is_text | not) or (.file | is_text | not)) | fault("removed"; "who removes a limit says in which file and why (source)");

def limit_faults($keys):
  if type != "object" then fault(null; "a limit is an object, and this one is \(type)")
  else
    ( keys_unsorted[] | select(in_list($keys) | not) | fault(.; "unknown; a limit has \(keys_of_limit | join(", "))") ),
    ( select((.id | type) != "string" or (.id | test("^[A-Za-z0-9_][A-Za-z0-9._-]*$") | not)) | fault("id"; "no id of letters, digits, '.', '_' and '-'") ),
    ( ("title", "unit", "remedy") as $k | select(.[$k] | is_text | not) | fault($k; "no \($k)") ),
    ( select(.source | is_text | not) | fault("source"; "no source: a document that someone can check, or site policy") ),
    ( select(.severity | in_list(["required", "advisory"]) | not) | fault("severity"; "neither required nor advisory") ),
    ( if .scope | type == "object" then .scope | scope_faults else fault("scope"; "no scope; {} is every record") end ),
    ( if (.metric | type) != "string" then fault("metric"; "no metric")
      elif .metric | test(metric_pattern) | not then fault("metric"; "no record has \(.metric | tojson)")
      else unit_faults, soak_faults, (select(.scope | type == "object") | kind_faults) end ),
    bound_faults, removal_faults
  end;

# ---- relative limits and their partners ---------------------------------------------------------------------------------

def lowest: if is_range then .min // -1e300 else [each] | min end;
def highest: if is_range then .max // 1e300 else [each] | max end;

# Whether a scope's value takes in all of another's.
def takes_in($wide; $narrow):
  if $narrow == null then false
  elif $wide | is_range then
    ($narrow | lowest) >= ($wide | lowest) and ($narrow | highest) <= ($wide | highest)
  elif $narrow | is_range then false
  else [$wide | each] as $all | all($narrow | each; in_list($all)) end;

# A fabric that is bad everywhere is like its peers and like its past: only beside an absolute bound may a relative one speak.
def partner_faults($limits):
  select(.bound.of? != null and .removed == null)
  | . as $one
  | ("min", "max") as $side
  | select(.bound[$side] != null and (.bound.of != "ceiling" or $side == "min"))
  | select(all($limits[];
      (.removed == null and .bound.of? == null and (.bound | type) == "object" and .bound[$side] != null and .metric == $one.metric
       and (.severity == "required" or $one.severity == "advisory") and (.scope | type) == "object"
       and (.scope | to_entries | all(.[]; .key as $k | takes_in(.value; $one.scope[$k])))) | not))
  | fault("bound.of"; "relative, and no \(if .severity == "required" then "required " else "" end)absolute limit of \(.metric) with a \($side) speaks of all its scope; "
                      + "a fabric that is bad everywhere would keep it");

# ---- a whole document ---------------------------------------------------------------------------------------------------

def name_of: if type == "object" and (.id | type) == "string" then .id else null end;

def document_faults($keys):
  if type != "object" then fault(null; "it is no perch.limits/1 document")
  elif .schema != "perch.limits/1" then fault("schema"; "it is \(.schema | tojson), not perch.limits/1")
  elif (.limits | type) != "array" or .limits == [] then fault("limits"; "no list of limits")
  else ( keys_unsorted[] | select(in_list($keys) | not) | fault(.; "unknown; a set has schema, name, title, limits") ) end;

def findings($document_keys; $limit_keys; $partners):
  [document_faults($document_keys)] as $of_document
  | $of_document[],
    if any($of_document[]; .key == null or .key == "schema" or .key == "limits") then empty
    else
      .limits as $all
      | ( [$all[] | name_of | values] | group_by(.)[] | select(length > 1) | {limit: .[0], key: "id", says: "\(length) limits have this id"} ),
        ( $all | to_entries[] | .key as $at | .value
          | (name_of // "number \($at + 1)") as $name
          | ( limit_faults($limit_keys), (objects | select($partners) | partner_faults($all | map(objects))) ) | .limit = $name )
    end;

# A file as people write it, whole in itself.
def file_findings: findings(["schema", "name", "title", "limits"]; keys_of_limit; true);
# A site's own file: the partners of its relative limits may stand in the set.
def site_findings: findings(["schema", "name", "title", "limits"]; keys_of_limit; false);
# inputs/limits.json: the same, or what limit_sets.jq made of two files.
def run_findings: findings(["schema", "name", "title", "limits", "files"]; keys_of_merged; true);

def said: (if .limit == null then "" else "limit \(.limit | tojson)" + if .key == null then ": " else ", " end end)
          + (if .key == null then "" else "\(.key): " end) + .says;
def faults: run_findings | said;

# ---- where it stands ----------------------------------------------------------------------------------------------------

# The line of a fault in the file's text, counted from 1; null where it cannot be told. A limit begins with its id in YAML as
# in JSON, or within a few lines of it; the key's last part is the first of its name from there on.
def line($text):
  def quoted: gsub("(?<c>[.^$*+?()\\[\\]{}|\\\\-])"; "\\\(.c)");
  def first_match($lines; $from; $pattern): first(range($from; $lines | length) | select($lines[.] | test($pattern))) // null;
  ($text | split("\n")) as $lines
  | .key as $key
  | ( if .limit == null then 0
      elif .limit | startswith("number ") then null
      else first_match($lines; 0; "(^|[\\s{,\"-])id\"?\\s*:\\s*[\"']?\(.limit | quoted)[\"']?\\s*(,|}|#|$)") end ) as $limit
  | if $limit == null then null
    elif $key == null or $key == "id" then if .limit == null then null else $limit + 1 end
    else
      ($key | split(".") | last | quoted) as $word
      | (first_match($lines; $limit + 1; "^\\s*-?\\s*(\\{\\s*)?\"?id\"?\\s*:") // ($lines | length)) as $next
      | first_match($lines; $limit; "(^|[\\s{,\"'-])\($word)[\"']?\\s*:") as $at
      | (if $at != null and (.limit == null or $at < $next) then $at elif .limit == null then null else $limit end)
      | if . == null then null else . + 1 end
    end;

def at($file; $text): line($text) as $line | "\($file)\(if $line == null then "" else ":\($line)" end): \(said)";
