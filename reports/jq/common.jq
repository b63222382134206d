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
  elif type == "number" then . + 0 | tojson # without the literal's spelling, which jq 1.7 keeps (0.00)
  else tojson
  end;

# A word or number of an output within a sentence, without the literal's spelling.
def spoken: if type == "number" then shown else tostring end;

# A record -> its line. jq 1.7 writes a number that it has only read as decNumber does (1E-7, 0.00001), jq 1.6 as C does (1e-07, 1e-05):
# what may be such is calculated with. Looking at every number of every record would take as long as making it.
def spelt:
  tojson | if contains("0.0000") or contains("E-") or contains("E+") then fromjson | (.. | numbers) |= . + 0 | tojson else . end;

def text_or_null: if type == "string" and . != "" then . else null end;

# Of numbers; null of none. Where one that is missing must leave the others without a median, it is comparison.jq's.
def median: sort | length as $n | if $n == 0 then null elif $n % 2 == 1 then .[($n - 1) / 2] else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

# Null-safe division for figures derived from two others, such as CPU seconds per gigabyte.
def ratio($a; $b):
  if ($a | is_finite) and ($b | is_finite) and $b > 0 then $a / $b | rounded else null end;

# GB are decimal, as the definitions say.
def per_gigabyte($seconds; $bytes): ratio($seconds; if $bytes == null then null else $bytes / 1e9 end);

# Ten samples must lie above a percentile for it to be a figure.
def quantile_of: {p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, p99_9: 0.999, p99_99: 0.9999};
def supports($count; $q): $count * (1 - $q) >= 9.999999;

# Where an element stands in an array; jq looks for it in one step, and a command line is asked for some forty options.
def places($element): .[[$element]] // [] | .[];

# What follows an option in a command line, or null: plan and tool are compared by it. The last one counts.
def option_value($names):
  (length - 1) as $last
  | [places($names[]) | select(. < $last)] as $at
  | if $at == [] then null else .[($at | max) + 1] end;

# "86400s" -> 86400, as asked.jq has it for all that an engine understands; the planner writes nothing else.
def seconds_of: [strings | capture("^(?<n>[0-9]+([.][0-9]+)?)(?<u>ms|s|m|h)$") | (.n | tonumber) * {ms: 0.001, s: 1, m: 60, h: 3600}[.u]] | .[0];

def tail_text($lines; $n):
  $lines | map(select(test("^\\s*$") | not)) | .[-$n:] | join("; ")
  | if length > 400 then .[0:400] + "..." else . end;
