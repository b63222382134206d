# A line of `perch transfer`, of kind "transfer" or "sum". What it says of itself must hold together before it is believed.
import "common" as c;
import "results" as result;
import "transfer" as transfer;

# Counts: a record with 1.5 pairs would be none.
def whole_or_null(name): result::natural_or_null(name) | if . == null or . == floor then . else result::refuse(name) end;
def counted_or_null(name): whole_or_null(name) | if . == 0 then result::refuse(name) else . end;

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
      window_s: (.window_s | result::natural_or_null("transfer.window_s")),
      numa_node: (.numa_node | whole_or_null("transfer.numa_node")),
      post_api: (.post_api | c::text_or_null) }
  end;

# What of the parameters is counted, too.
def counts: "threads", "devices", "queue_pairs", "outstanding", "warmup", "iterations", "buffer_bytes", "stride_bytes",
  "chunk_bytes", "chunks", "cross_rail";

# Why the figures of a line do not fit the time that it names. A lane goes on until its duration is over, so that only
# clocks and rounding are granted; and none is faster on the average than its fastest batch was.
def mistimed:
  .transfer.window_s as $window
  | .elapsed_s as $elapsed
  | .bandwidth as $b
  | .latency_us as $l
  | transfer::lanes(.transfer.pairs) as $lanes
  | if $window | transfer::near($elapsed; transfer::tolerance) | not then "its window of \($window) s is not the \($elapsed) s that it took"
    elif .params.duration_s != null and .params.duration_s > 1.02 * $window
      then "it lasted \($window) s of \(.params.duration_s) s"
    elif $b.messages_per_s * .params.size_bytes * 8e-9 | transfer::near($b.gbit_s; transfer::tolerance) | not
      then "\($b.messages_per_s) transfers a second are not \($b.gbit_s) Gb/s"
    elif $b.bytes * 8e-9 / $window | transfer::near($b.gbit_s; transfer::tolerance + transfer::grain / $window) | not
      then "\($b.gbit_s) Gb/s for \($window) s are not \($b.bytes) bytes"
    elif $b.peak_gbit_s != null and $lanes > 1 then "\($lanes) lanes have a peak, of which each has its own"
    elif $b.peak_gbit_s != null and (.transfer.batch_bytes * 8e-3 / $l.min | transfer::near($b.peak_gbit_s; transfer::tolerance) | not)
      then "\(.transfer.batch_bytes) bytes in \($l.min) us are no peak of \($b.peak_gbit_s) Gb/s"
    elif $b.peak_gbit_s != null and $b.gbit_s > $b.peak_gbit_s * (1 + transfer::tolerance) + transfer::grain
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
  if transfer::is_transfer | not then .
  elif .transfer == null or .latency_us == null or .bandwidth == null then
    error("a line of kind \(.kind) without transfer, latency_us or bandwidth")
  else ([limit(1; contradiction)] | .[0]) as $why | if $why == null then . else error($why) end end;
