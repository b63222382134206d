# Lines of `perch transfer`: one of kind "transfer" for each pair of devices and one of kind "sum", for each size and
# batch. What they say of themselves must hold together before it is believed.
import "common" as c;

def is_transfer: .kind == "transfer" or .kind == "sum";

# Where a part, or an `expect` entry of the plan, stands within its flow.
def place:
  "kind \(.kind), pair \(.transfer.pair // .pair), batch \(.params.batch // .batch), "
  + (.params.size_bytes // .size_bytes | tostring);

# Counts: a record with 1.5 pairs would be none.
def whole_or_null(name): c::natural_or_null(name) | if . == null or . == floor then . else c::refuse(name) end;
def counted_or_null(name): whole_or_null(name) | if . == 0 then c::refuse(name) else . end;

# What the engine states; pair is null in the sum, asked in duration mode, numa_node where it is not known. What failed
# may have completed nothing, and has no window then; or more than its batches have: whole transfers of the last one.
def stated:
  if type != "object" then null
  else
    { pair: (.pair | whole_or_null("transfer.pair")), pairs: (.pairs | counted_or_null("transfer.pairs")),
      batches: (.batches | whole_or_null("transfer.batches")),
      completed: (.completed | whole_or_null("transfer.completed")),
      asked: (.asked | whole_or_null("transfer.asked")),
      batch_bytes: (.batch_bytes | counted_or_null("transfer.batch_bytes")),
      lists: (.lists | whole_or_null("transfer.lists")),
      window_s: (.window_s | c::natural_or_null("transfer.window_s")),
      numa_node: (.numa_node | whole_or_null("transfer.numa_node")),
      post_api: (.post_api | c::text_or_null) }
  end;

# What of the parameters is counted, too.
def counts: "threads", "devices", "queue_pairs", "outstanding", "warmup", "iterations", "buffer_bytes", "stride_bytes",
  "chunk_bytes", "chunks", "cross_rail";

# A hundredth: the line's figures are rounded apart. The grain is half of the last of the six decimals that are kept.
def tolerance: 0.01;
def grain: 5e-7;

def near($other; $tolerance):
  . != null and $other != null and (. - $other | fabs) <= $tolerance * ($other | fabs) + grain;

# Lanes of $pairs pairs: of one pair's record its own, of the sum all. Batches of a lane come one after another.
def lanes($pairs):
  ([.params.threads // 1, $pairs] | max) as $all | if .kind == "sum" then $all else $all / $pairs end;

# Why the figures of a line do not fit the time that it names. A lane goes on until its duration is over, so that only
# clocks and rounding are granted; and none is faster on the average than its fastest batch was.
def mistimed:
  .transfer.window_s as $window
  | .elapsed_s as $elapsed
  | .bandwidth as $b
  | .latency_us as $l
  | lanes(.transfer.pairs) as $lanes
  | if $window | near($elapsed; tolerance) | not then "its window of \($window) s is not the \($elapsed) s that it took"
    elif .params.duration_s != null and .params.duration_s > 1.02 * $window
      then "it lasted \($window) s of \(.params.duration_s) s"
    elif $b.messages_per_s * .params.size_bytes * 8e-9 | near($b.gbit_s; tolerance) | not
      then "\($b.messages_per_s) transfers a second are not \($b.gbit_s) Gb/s"
    elif $b.bytes * 8e-9 / $window | near($b.gbit_s; tolerance + grain / $window) | not
      then "\($b.gbit_s) Gb/s for \($window) s are not \($b.bytes) bytes"
    elif $b.peak_gbit_s != null and $lanes > 1 then "\($lanes) lanes have a peak, of which each has its own"
    elif $b.peak_gbit_s != null and (.transfer.batch_bytes * 8e-3 / $l.min | near($b.peak_gbit_s; tolerance) | not)
      then "\(.transfer.batch_bytes) bytes in \($l.min) us are no peak of \($b.peak_gbit_s) Gb/s"
    elif $b.peak_gbit_s != null and $b.gbit_s > $b.peak_gbit_s * (1 + tolerance) + grain
      then "its average of \($b.gbit_s) Gb/s is above its peak of \($b.peak_gbit_s) Gb/s"
    elif $l.count * $l.mean / 1e6 > 1.05 * $window * $lanes + 1e-5
      then "batches sum up to \($l.count * $l.mean / 1e6 | c::rounded) s of \($window) s"
    else empty end;

# Why a line cannot be what it says; first reason only, empty when it can.
def contradiction:
  .transfer as $t
  | .bandwidth as $b
  | .latency_us as $l
  | (.params.batch * .params.size_bytes) as $batch_bytes
  | ([("pairs", "batches", "completed", "batch_bytes", "window_s") | select($t[.] == null or $t[.] <= 0)] | .[0])
    as $lacking
  | ([.params | counts as $k | select(.[$k] | . != null and (type != "number" or . < 0 or . != floor)) | $k] | .[0])
    as $odd
  | if $lacking != null then "transfer has no \($lacking)"
    elif $odd != null then "\($odd) is \(.params[$odd] | c::shown), which is no whole number"
    elif (.kind == "sum") != ($t.pair == null) or ($t.pair != null and $t.pair >= $t.pairs)
      then "a line of kind \(.kind) is of pair \($t.pair)"
    elif $t.batch_bytes != $batch_bytes
      then "a batch of \(.params.batch) x \(.params.size_bytes) bytes is not \($t.batch_bytes)"
    # more than asked: all go on until the last pair has its batches
    elif $t.asked != null and $t.completed < $t.asked then "\($t.completed) of \($t.asked) transfers were completed"
    elif $t.completed != $t.batches * .params.batch
      then "\($t.completed) transfers are not \($t.batches) batches of \(.params.batch)"
    elif $l.count != $t.batches then "\($t.batches) batches have \($l.count) times"
    elif $b.bytes != $t.completed * .params.size_bytes
      then "\($b.bytes) bytes are not those of \($t.completed) transfers"
    elif .params.verify == true and (.integrity.checked_bytes // 0) < $t.completed * .params.size_bytes
      then "--verify checked \(.integrity.checked_bytes // 0) of \($t.completed * .params.size_bytes) bytes"
    else mistimed end;

def possible:
  if is_transfer | not then .
  elif .transfer == null or .latency_us == null or .bandwidth == null then
    error("a line of kind \(.kind) without transfer, latency_us or bandwidth")
  else ([limit(1; contradiction)] | .[0]) as $why | if $why == null then . else error($why) end end;

# ---- all lines of a flow --------------------------------------------------------------------------------------------

def total($pairs; f): [$pairs[] | f] | if any(.[]; . == null) then null else add end;

def extreme($each; f): [$each[] | f] | sort;

# Each percentile with the one above it. A histogram's rank is rounded to the nearest sample: of two pairs that have
# rounded down the sum may lie one sample above both, but never under both. The one above it bounds it for certain.
def percentiles_with_next:
  ["p50", "p90"], ["p90", "p95"], ["p95", "p99"], ["p99", "p99_9"], ["p99_9", "p99_99"], ["p99_99", "max"];

# The standard deviation of all samples together, about their $mean.
def deviation($each; $mean):
  total($each; (.count - 1) * .stddev * .stddev + .count * (.mean - $mean) * (.mean - $mean)) as $squares
  | $squares / ([total($each; .count) - 1, 1] | max) | sqrt;

# The sum's times are those of its pairs together. Its extremes, mean and deviation come from exact sums.
def unlike_times($l; $each):
  total($each; .count) as $n
  | (total($each; .count * .mean) / $n) as $mean
  | (extreme($each; .min) | .[0]) as $min
  | (extreme($each; .max) | .[-1]) as $max
  | ( select($l.min != $min) | "the sum's fastest batch took \($l.min) us, that of its pairs \($min) us" ),
    ( select($l.max != $max) | "the sum's slowest batch took \($l.max) us, that of its pairs \($max) us" ),
    ( select($l.mean | near($mean; tolerance) | not)
      | "a batch of the sum took \($l.mean) us, of its pairs \($mean | c::rounded) us" ),
    ( deviation($each; $mean) as $d | select($l.stddev | near($d; tolerance) | not)
      | "the sum's batches deviate by \($l.stddev) us, those of its pairs by \($d | c::rounded) us" ),
    ( percentiles_with_next as [$k, $next]
      | select($l[$k] != null and all($each[]; .[$k] != null))
      | (extreme($each; .[$k]) | .[0]) as $least
      | (extreme($each; .[$next] // .max) | .[-1]) as $most
      | select($l[$k] < $least * (1 - tolerance) or $l[$k] > $most * (1 + tolerance))
      | "the sum's \($k) of \($l[$k]) us is not between \($least) and \($most) us, as its pairs' are" );

# The sum is that of its pairs: all of their transfers, in the longest of their times, which have one start. Its own
# figures hold together already, so that its bandwidth is right with these.
def unlike_sum($sum; $pairs):
  ( ("batches", "completed") as $k | total($pairs; .transfer[$k]) as $n
    | select($sum.transfer[$k] != $n) | "the sum has \($sum.transfer[$k]) \($k), its pairs have \($n)" ),
  ( (extreme($pairs; .transfer.window_s) | .[-1]) as $s | $sum.transfer.window_s as $w
    | select($w < $s - 2 * grain or ($w | near($s; tolerance) | not))
    | "the sum took \($w) s, the slowest pair \($s)" ),
  unlike_times($sum.latency_us; [$pairs[].latency_us]);

# Input: a flow's parts in the order of its `expect`, pairs before their sum.
def summed($flow):
  if $flow.kind != "transfer" then .
  else
    . as $parts
    | ([$flow.expect[].pair | select(. != null)] | max // 0 | . + 1) as $n
    | reduce (range($n; length) | select($flow.expect[.].kind == "sum")) as $i (.;
        $parts[$i - $n:$i] as $pairs
        | if any($pairs[], $parts[$i]; .status != "ok") then .
          else ([limit(1; unlike_sum($parts[$i]; $pairs))] | .[0]) as $why
            | if $why == null then . else .[$i] += {status: "error", error: {code: 6, message: $why, traffic: true}} end
          end)
  end;
