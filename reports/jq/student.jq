# Student's t: the interval of a mean of few values, and how often chance alone gives one as far from zero.

# Two-sided 95 % (the 0.975 quantile) for 1 to 29 degrees of freedom: NIST/SEMATECH e-Handbook of Statistical Methods,
# 1.3.6.7.2, "Critical Values of the Student's t Distribution". tests/jq/student.test holds each against p_value.
def table:
  [ 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045 ];
def most: table | length + 1;
def critical($n): table[$n - 2];

# How often |t| is exceeded by chance; $df whole. The finite series in cos^2 of Abramowitz and Stegun, Handbook of
# Mathematical Functions, 26.7.3 and 26.7.4 (as in stdtr of Moshier's Cephes library).
def p_value($t; $df):
  ($t | fabs) as $x
  | ($x / ($df | sqrt) | atan) as $angle
  | (1 / (1 + $x * $x / $df)) as $cos2
  | ( reduce range(if $df % 2 == 1 then 3 else 2 end; $df; 2) as $j ({term: 1, sum: 1};
        (.term * ($j - 1) / $j * $cos2) as $term | {$term, sum: (.sum + $term)})
      | .sum ) as $series
  | ( if $df == 1 then 2 / 3.141592653589793 * $angle
      elif $df % 2 == 1 then 2 / 3.141592653589793 * ($angle + $x / ($df | sqrt) * $cos2 * $series)
      else ($angle | sin) * $series end ) as $within
  | [1 - $within, 0] | max;

# Values -> {n, mean, half_width, p}: the 95 % interval is mean -+ half_width. It is never narrower than $resolution, which
# the values themselves are not known to: two repeats that agree in every digit prove nothing finer than a digit.
def interval($resolution):
  . as $values
  | length as $n
  | (add / $n) as $mean
  | ((map(. - $mean | . * .) | add) / ($n - 1) / $n | sqrt) as $error # of the mean
  | { n: $n, mean: $mean, half_width: ([critical($n) * $error, $resolution] | max),
      p: (if ($mean | fabs) <= $resolution then 1 elif $error == 0 then 0 else p_value($mean / $error; $n - 1) end) };

# Holm's step-down correction: p values -> those adjusted for all of them, in the same order. It holds whatever depends on
# what. Source: S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6 (1979).
def holm:
  length as $m
  | to_entries | sort_by(.value)
  | reduce range(0; $m) as $i (.; .[$i].value = ([.[$i].value * ($m - $i), if $i > 0 then .[$i - 1].value else 0 end, 0] | max))
  | map(.value = ([.value, 1] | min)) | sort_by(.key) | map(.value);
