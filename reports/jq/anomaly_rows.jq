# What was out of the ordinary in the records, with its time and flow: stalls, bad intervals, lost peers, corrupted payloads.
import "format" as f;

def sep: "\t";

# One transport timeout at the default exponent of 14, 4.096 us x 2^14: what stands still for longer has lost a packet and
# waited for it (InfiniBand Architecture Specification 1.7, section 9.9.2.1.1; limits/roce.yml judges by the same).
def stall_s: 0.067;
# An interval below this share of the flow's own average. Source: site policy; the verdict has limits of its own.
def dip: 0.8;
# A single message that took so many medians, the rarest of which a mean still shows. Source: site policy.
def spike: 100;

# "2026-11-21T14:08:06.381Z" and seconds -> that much later, in whole seconds; null where the start is not known.
def later($seconds):
  if . == null then null
  else ([sub("\\.[0-9]+Z$"; "Z") | try fromdateiso8601 catch null] | .[0]) as $start
    | if $start == null then null else $start + ($seconds // 0) | floor | todate end end;

# ---- while the records pass (passing.jq) -----------------------------------------------------------------------------

def place: .flow + (if .params.size_bytes == null then "" else "#\(.params.size_bytes)" end);

def odd($kind; $when; $what): [$kind, {$kind, when: $when, test, where: place, flow, $what}];

def dips:
  .bandwidth.gbit_s as $average
  | (.intervals // []) as $all
  | if $average == null or ($all | length) < 3 then []
    else (($all[0].end_s - ($all[0].start_s // 0)) / 2) as $least # the last interval may be a short one
      | [$all[] | select(.gbit_s != null and .gbit_s < dip * $average and .end_s - (.start_s // 0) >= $least)] end;

def updates:
  . as $r
  | ( select((.stall.longest_s // 0) >= stall_s)
      | odd("stall"; .stall.began // (.started | later($r.stall.start_s)); "nothing was completed for \(.stall.longest_s | f::figure) s") ),
    ( dips | select(length > 0) | . as $dips
      | ($dips | min_by(.gbit_s)) as $worst
      | $r | odd("interval"; .started | later($worst.start_s);
                 "\($dips | length | f::plural("interval")) below \(100 * dip) % of the flow's average, the lowest \($worst.gbit_s | f::figure) of "
                 + "\($r.bandwidth.gbit_s | f::figure) Gb/s, \($worst.start_s // 0 | f::figure) s after its start") ),
    ( select(.error.code == 5 or .error.code == 1 or (.error.code == 4 and .error.traffic == true))
      | odd("error"; .started; .error.message) ),
    ( select((.latency_us.p50 // 0) > 0 and (.latency_us.max // 0) > spike * .latency_us.p50)
      | (.latency_us.max / .latency_us.p50) as $times
      # of a test only the worst: every long measurement has one
      | odd("spike"; .started; null) | [.[0], .[1] + ($r.latency_us | {count, max, $times}), 1 / $times] );

# The report shows so many at most, of all kinds together, each kind's in this order; of the rest their number.
def shown_max: 60;
def in_order: sort_by(.when // "~", .where);

# Of each kind what could be shown stays, in a list that is cut when it is twice as long, and how many there were.
def fold($u):
  if $u[2] != null then
    ("spike" + sep + $u[1].test) as $key | .[$key] as $old
    | if $old == null or $u[2] < $old.rank then setpath([$key]; $u[1] + {rank: $u[2]}) else . end
  else
    ("odd" + sep + $u[0]) as $key | .[$key] as $old
    | [[ $old[0] + 1, ($old[1] + [$u[1]] | if length < 2 * shown_max then . else in_order[:shown_max] end) ]] as $new
    | setpath([$key]; $new[0]) end;

def spike_words: "one of \(.count | f::whole) messages took \(.max | f::figure) µs, \(.times | f::figure) times the median";

# ---- state -> {rows: [{kind, when, test, where, flow, what}], more: how many more there were} ----
def of_records:
  [to_entries[] | select(.key | startswith("odd" + sep)) | .value] as $odd
  | { rows: ([$odd[][1][]] + [to_entries[] | select(.key | startswith("spike" + sep)) | .value | .what = spike_words]),
      more: ([$odd[] | .[0] - (.[1] | length)] | add // 0) };
