# Numbers and words that the findings on hosts and on switches share. Alike under jq 1.6 and 1.7.

# jq 1.6 lets a `try` catch errors that are raised later, by whatever its result is passed to. The brackets close it.
def attempt(f; handler): [try f catch handler] | .[0];
def parsed: attempt(fromjson; null);

# A number that JSON can carry: jq reads `nan` and 1e999 without complaint, so they are refused here.
def is_finite: type == "number" and (isnan or isinfinite | not);

# To six decimals. The addition makes jq 1.7 forget the literal's spelling (1.50), as jq 1.6 always does.
def rounded:
  if is_finite then (if . == floor then . + 0 else (. * 1e6 | round) / 1e6 end) else null end;

def ratio($a; $b):
  if ($a | is_finite) and ($b | is_finite) and $b > 0 then $a / $b | rounded else null end;

# jq prints 1e-05 and 1e+17 in its own way; digits are therefore laid out from an integer.
def fixed($decimals):
  (. < 0) as $minus
  | (if . < 0 then -. else . end) as $x
  | ($x * pow(10; $decimals) | round | tostring) as $digits
  | if $decimals == 0 then $digits
    else ("0" * ([$decimals + 1 - ($digits | length), 0] | max) // "") + $digits
      | .[:-$decimals] + "." + .[-$decimals:]
    end
  | (if $minus then "-" else "" end) + .;

# Groups of three digits: 12345 -> 12,345.
def grouped:
  (index(".") // length) as $point
  | .[:$point] as $whole | .[$point:] as $rest
  | ($whole | length) as $n
  | [range(($n - 1) % 3 + 1; $n + 1; 3) as $e | if $e <= 3 then $whole[:$e] else $whole[$e - 3:$e] end]
  | join(",") + $rest;

def whole: if is_finite then fixed(0) | grouped else "-" end;

# Three significant digits, as many as repeats of a network measurement agree in.
def figure:
  if is_finite | not then "-"
  elif . == 0 then "0"
  elif (. | fabs) >= 99.95 then fixed(0) | grouped
  elif (. | fabs) >= 9.995 then fixed(1)
  elif (. | fabs) >= 0.9995 then fixed(2)
  elif (. | fabs) >= 0.09995 then fixed(3)
  elif (. | fabs) >= 0.0009995 then fixed(4)
  elif (. | fabs) < 0.00001 then "< 0.00001"
  else fixed(5)
  end;

# A list of names that stays readable for hundreds of hosts.
def names($max):
  if length <= $max then join(", ") else (.[:$max] | join(", ")) + " and \(length - $max) more" end;

def plural($word): "\(.) \($word)" + (if . == 1 then "" else "s" end);
