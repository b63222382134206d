# Numbers, units and text shared by all modules. Everything here runs alike under jq 1.6 and 1.7.

# jq 1.6 lets a `try` catch errors that are raised later, by whatever its result is passed to. The brackets close it.
def attempt(f; handler): [try f catch handler] | .[0];
def parsed: attempt(fromjson; null);

# A number that JSON can carry: jq reads `nan` and 1e999 without complaint, so they are refused here.
def is_finite: type == "number" and (isnan or isinfinite | not);

# The one way of rounding: six decimals. That is 1 ps of a microsecond and 1 kbit/s of a Gb/s, finer than any
# tool measures; the addition makes jq 1.7 forget the literal's spelling (1.50), as jq 1.6 always does.
def round_number: if . == floor then . + 0 else (. * 1e6 | round) / 1e6 end;
def rounded: if is_finite then round_number else null end;

def shown:
  if type == "number" and isnan then "nan"
  elif type == "number" and isinfinite then "inf"
  else tojson
  end;

def refuse(name): error(name + " is " + shown + ", which is no result");

# A result: zero, negative, nan and inf are faults of the measurement, never figures. (nan sorts below all numbers and
# jq reads inf as 1.8e308: two comparisons find both, and these functions run a few million times for a large run.)
def positive(name): if type == "number" and . > 0 and . < 1e300 then round_number else refuse(name) end;
def positive_or_null(name): if . == null then null else positive(name) end;

# Counts and costs may be zero (no retransmission, CPU time under the clock's grain).
def natural(name): if type == "number" and . >= 0 and . < 1e300 then round_number else refuse(name) end;
def natural_or_null(name): if . == null then null else natural(name) end;

def text_or_null: if type == "string" and . != "" then . else null end;

# Null-safe division for figures derived from two others, such as CPU seconds per gigabyte.
def ratio($a; $b):
  if ($a | is_finite) and ($b | is_finite) and $b > 0 then $a / $b | rounded else null end;

# GB are decimal, as the definitions say.
def per_gigabyte($seconds; $bytes): ratio($seconds; if $bytes == null then null else $bytes / 1e9 end);

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
    | { peak_gbit_s: (map(.gbit_s) | max | rounded),
        peak_definition: ("best_interval_" + interval_length),
        min_interval_gbit_s: (map(.gbit_s) | min | rounded) }
  end;

# No link of today carries 100 Tb/s to a host: a greater figure is a fault, and so is a rate that its own bytes deny.
def impossible_gbit_s: 1e5;
def possible_rate($elapsed; $tolerance):
  if .gbit_s > impossible_gbit_s then error("bandwidth of \(.gbit_s) Gb/s is impossible")
  elif (.bytes * 8 / $elapsed / 1e9 / .gbit_s - 1 | fabs) > $tolerance then
    error("\(.bytes) bytes in \($elapsed) s are not the \(.gbit_s) Gb/s that it says")
  else . end;

# Ten samples must lie above a percentile for it to be a figure.
def quantile_of: {p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, p99_9: 0.999, p99_99: 0.9999};
def supports($count; $q): $count * (1 - $q) >= 9.999999;

# What follows an option in a command line, or null: plan and tool are compared by it.
def option_value($names):
  . as $argv
  | [range(0; length - 1) | select($argv[.] as $a | $names | index([$a]) != null) | $argv[. + 1]]
  | last;

def tail_text($lines; $n):
  $lines | map(select(test("^\\s*$") | not)) | .[-$n:] | join("; ")
  | if length > 400 then .[0:400] + "..." else . end;
