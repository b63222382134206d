# The sum of a transfer held against its pairs.
import "common" as c;
import "transfer" as transfer;

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
    ( select($l.mean | transfer::near($mean; transfer::tolerance) | not)
      | "a batch of the sum took \($l.mean) us, of its pairs \($mean | c::rounded) us" ),
    ( deviation($each; $mean) as $d | select($l.stddev | transfer::near($d; transfer::tolerance) | not)
      | "the sum's batches deviate by \($l.stddev) us, those of its pairs by \($d | c::rounded) us" ),
    ( percentiles_with_next as [$k, $next]
      | select($l[$k] != null and all($each[]; .[$k] != null))
      | (extreme($each; .[$k]) | .[0]) as $least
      | (extreme($each; .[$next] // .max) | .[-1]) as $most
      | select($l[$k] < $least * (1 - transfer::tolerance) or $l[$k] > $most * (1 + transfer::tolerance))
      | "the sum's \($k) of \($l[$k]) us is not between \($least) and \($most) us, as its pairs' are" );

# The sum is that of its pairs: all of their transfers, in the longest of their times, which have one start. Its own
# figures hold together already, so that its bandwidth is right with these.
def unlike_sum($sum; $pairs):
  ( ("batches", "completed") as $k | total($pairs; .transfer[$k]) as $n
    | select($sum.transfer[$k] != $n) | "the sum has \($sum.transfer[$k]) \($k), its pairs have \($n)" ),
  ( (extreme($pairs; .transfer.window_s) | .[-1]) as $s | $sum.transfer.window_s as $w
    | select($w < $s - 2 * transfer::grain or ($w | transfer::near($s; transfer::tolerance) | not))
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
