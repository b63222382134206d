# Numbers as digits. Apart from format.jq, for those who need no more of it.
import "common" as c;

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

def whole: if c::is_finite then fixed(0) | grouped else "-" end;
