# Figures that a tool prints: which of them are results, and what is made of them.
import "common" as c;

def refuse(name): error(name + " is " + c::shown + ", which is no result");

# A result: zero, negative, nan and inf are faults of the measurement, never figures. (nan sorts below all numbers and
# jq reads inf as 1.8e308: two comparisons find both, and these functions run a few million times for a large run.)
def positive(name): if type == "number" and . > 0 and . < 1e300 then c::round_number else refuse(name) end;
def positive_or_null(name): if . == null then null else positive(name) end;

# Counts and costs may be zero (no retransmission, CPU time under the clock's grain).
def natural(name): if type == "number" and . >= 0 and . < 1e300 then c::round_number else refuse(name) end;
def natural_or_null(name): if . == null then null else natural(name) end;

# Interval rates as every tool of ours is summarised: intervals shorter than 90 % of the longest are the ragged
# ends of a run (iperf3 writes some of 100 us) and would make both the peak and the minimum meaningless.
def whole_intervals:
  (map(.end_s - .start_s) | max) as $longest
  | map(select(.end_s - .start_s >= 0.9 * $longest));

def interval_length:
  (map(.end_s - .start_s) | max * 10 | round) / 10 | tostring + "s";

def interval_summary:
  if length == 0 then {peak_gbit_s: null, peak_definition: null, min_interval_gbit_s: null}
  else whole_intervals
    | { peak_gbit_s: (map(.gbit_s) | max | c::rounded),
        peak_definition: ("best_interval_" + interval_length),
        min_interval_gbit_s: (map(.gbit_s) | min | c::rounded) }
  end;

# No link of today carries 100 Tb/s to a host: a greater figure is a fault, and so is a rate that its own bytes deny.
def impossible_gbit_s: 1e5;
def possible_rate($elapsed; $tolerance):
  if .gbit_s > impossible_gbit_s then error("bandwidth of \(.gbit_s) Gb/s is impossible")
  elif (.bytes * 8 / $elapsed / 1e9 / .gbit_s - 1 | fabs) > $tolerance then
    error("\(.bytes) bytes in \($elapsed) s are not the \(.gbit_s) Gb/s that it says")
  else . end;
