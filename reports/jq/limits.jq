# inputs/limits.json (perch.limits/1) against records: which limit speaks of which record, and is it kept.
import "common" as c;

def within($range):
  c::is_finite and ($range.min == null or . >= $range.min) and ($range.max == null or . <= $range.max);

# A scope's value is one value, a list of them, or a range of numbers.
def fits($value):
  . as $wanted
  | if type == "array" then any(.[]; . == $value)
    elif type == "object" then $value | within($wanted)
    else . == $value
    end;

# What a scope's key means in a record.
def facet($key):
  # under another tool's name it is Perch that measured
  if $key == "tool" then .tool.name | if . == "perch-personality" then "perch" else . end
  elif $key == "client" or $key == "server" then .[$key].host
  elif $key == "layer" or $key == "hop_class" then .link[$key]
  elif $key | IN("size_bytes", "completion", "queue_pairs", "bidirectional", "batch", "devices") then .params[$key]
  else .[$key]
  end;

# A limit of two records beside each other: agreement.jq judges it.
def is_agreement: .metric // "" | startswith("agreement.");

# A limit of a soak's intervals: soak_bounds.jq holds them.
def is_soak: .metric // "" | startswith("soak.");

# Most of a scope is settled by the plan, before any record: {test: [limits that may apply, each with the `open` rest]}.
def by_test($flows; $limits):
  reduce $flows[] as $f ({};
    if .[$f.test] != null then .
    else # a flow of transfers has records of two kinds
      ($f | {tool, op, kind: (if .kind == "transfer" then null else .kind end), test}) as $known
      | .[$f.test] =
          [ $limits[] | select((is_agreement or is_soak | not) and .removed == null) | (.scope | to_entries) as $scope
            | select($scope | all(.[]; .key as $k | $known[$k] == null or (.value | fits($known[$k]))))
            | . + {open: [$scope[] | select($known[.key] == null)]} ]
    end);

# Nor does a limit speak of a record that cannot have its figure: a pause that was asked for is no stall, and a flow
# without an RDMA device of its own has no packets of it.
def can_have($metric):
  if $metric == "derived.stall_s" then .stall != null
  elif $metric == "derived.loss_ppm" then .loss != null
  elif $metric // "" | test("^derived\\.packets_") then .packets != null
  # the time of a verified transfer has the checking in it, that of its batches has not
  elif $metric // "" | startswith("bandwidth.") then .transfer == null or .params.verify != true
  else true end;

# What --rate allows at most, in Gb/s; null where nothing caps it.
def cap_gbit_s:
  (.params.rate // null) as $rate
  | if ($rate | type) != "object" or ($rate.asked | c::is_finite | not) then null
    elif $rate.unit == "Gb/s" then $rate.asked
    elif $rate.unit == "messages/s" and (.params.size_bytes | c::is_finite) then $rate.asked * .params.size_bytes * 8 / 1e9
    else null end;

# A flow that was asked for less than a limit wants cannot have it; whether it kept its own rate is another check.
def may_reach($bound; $metric):
  $metric != "bandwidth.gbit_s" or $bound.min == null or (cap_gbit_s | . == null or . >= $bound.min);

def speaks_of($record):
  .metric as $metric
  | .bound as $bound
  | ($record | can_have($metric) and may_reach($bound; $metric))
    and (.open | all(.[]; .key as $k | .value
           # a figure from elsewhere that misses a bound of hardware must not slip by; that it keeps it is no PASS (checks.jq, imported)
           | fits($record | facet($k)) or ($k == "scope" and $record.scope == "imported" and fits("hardware"))));

def in_a_million($count): if .sent == null then null else c::ratio($count; .sent / 1e6) end;

# Figures that are made of a record's own.
def derived($name):
  if $name == "p99_minus_p50_us" then
    .latency_us | if .p99 == null or .p50 == null then null else .p99 - .p50 end
  elif $name == "retransmissions_per_gb" then
    c::ratio(.tcp.retransmissions; if .bandwidth.bytes == null then null else .bandwidth.bytes / 1e9 end)
  elif $name == "stall_s" then .stall.longest_s
  elif $name == "loss_ppm" then c::ratio(.loss.lost_messages; if .loss == null then null else .loss.sent_messages / 1e6 end)
  elif $name == "packets_lost_ppm" then .packets | in_a_million(.lost)
  elif $name == "packets_retried_ppm" then .packets | in_a_million(.retries)
  elif $name == "packets_corrupted_ppm" then .packets | in_a_million(.corrupted)
  else null end;

# An imported percentile is judged only where ten samples lie above it.
def supported($field; $count):
  c::quantile_of[$field] as $q
  | $q == null or $count == null or c::supports($count; $q);

def value($metric):
  ($metric | split(".")) as $path
  | if $path[0] == "derived" then derived($path[1])
    elif $path[0] == "latency_us" and (supported($path[1]; .latency_us.count) | not) then null
    else getpath($path)
    end
  | if c::is_finite then . else null end;

def broken_by($value): .bound as $b
  | ($b.max != null and $value > $b.max) or ($b.min != null and $value < $b.min);

# How far a value stands from breaking the limit, as a factor: the worst value of many is the one with the greatest.
def strain($value): .bound as $b
  | [ (if $b.max != null and $b.max > 0 then $value / $b.max else empty end),
      (if $b.min != null then (if $value > 0 then $b.min / $value else 1e300 end) else empty end) ]
  | max // 0;
