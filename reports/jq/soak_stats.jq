# Slopes and steps of a figure over time, with what chance alone can make of them. Points are [time, value], in order of time.
import "common" as c;

# z of which the standard normal distribution exceeds $p: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.2.23 (|error| < 4.5e-4).
def normal_quantile($p):
  ((-2 * ($p | log)) | sqrt) as $t
  | $t - (2.515517 + 0.802853 * $t + 0.010328 * $t * $t) / (1 + 1.432788 * $t + 0.189269 * $t * $t + 0.001308 * $t * $t * $t);

# How often a soak without any fault is said to have drifted, stepped or leaked, all its tests together: each of m tests has a
# share of it (Bonferroni: O. J. Dunn, Journal of the American Statistical Association 56, 1961). site policy: one soak in a hundred.
def false_alarm: 0.01;

# Neighbouring intervals resemble each other, so that few batches of many say more of a slope than all of them: ten to thirty
# (B. Schmeiser, Operations Research 30, 1982). Each is the median of its values: a stall or a gap is an anomaly of its own.
def batches_most: 24;
def batches_least: 10;
def batched($most):
  length as $n
  | (if $n < $most then $n else $most end) as $k
  | . as $points
  | [range(0; $k) as $i | $points[($i * $n / $k | floor):(($i + 1) * $n / $k | floor)] | [(map(.[0]) | add / length), (map(.[1]) | c::median)]];

# How much neighbours resemble each other; 0 to 0.9. Input: residuals. Outliers count as three median deviations.
def likeness_of_neighbours:
  (map(fabs) | c::median) as $mad
  | if length < 3 or $mad == 0 then 0
    else
      map(if . > 4.5 * $mad then 4.5 * $mad elif . < -4.5 * $mad then -4.5 * $mad else . end)
      | . as $r
      | (map(. * .) | add) as $all
      | ([range(1; length) as $i | $r[$i] * $r[$i - 1]] | add) / $all
      | if . < 0 then 0 elif . > 0.9 then 0.9 else . end
    end;

# A difference of so many median deviations (seven standard deviations of a normal value) is none of chance's, however few values there are:
# ranks know no size, and bear no small p of few values. Of a slope's both ends together twice as many. site policy.
def deviations: 10;

def median_deviation: map(fabs) | c::median;

# The median of the slopes of all pairs, and its interval (P. K. Sen, Journal of the American Statistical Association 63, 1968), whose
# variance grows with the likeness of neighbours by (1 + r) / (1 - r) (K. H. Hamed and A. R. Rao, Journal of Hydrology 204, 1998, for r of
# the first order). Where so few points bear no such interval, it is that of the residuals' deviations. {slope, low, high}: a unit of value per
# unit of time; low and high null of too few points.
def theil_sen($alpha):
  . as $p
  | length as $n
  | [range(0; $n) as $i | range($i + 1; $n) as $j | select($p[$j][0] > $p[$i][0]) | ($p[$j][1] - $p[$i][1]) / ($p[$j][0] - $p[$i][0])]
  | sort
  | . as $slopes
  | length as $m
  | if $m == 0 then {slope: null, low: null, high: null}
    else
      c::median as $slope
      | ([$p[] | .[1] - $slope * .[0]] | c::median as $middle | map(. - $middle)) as $residuals
      | ($residuals | likeness_of_neighbours) as $r
      | (normal_quantile($alpha / 2) * ($n * ($n - 1) * (2 * $n + 5) / 18 * (1 + $r) / (1 - $r) | sqrt)) as $width
      | (($m - $width) / 2 | floor) as $first
      | if $n < batches_least then {$slope, low: null, high: null}
        elif $first < 0 then
          (2 * deviations * ($residuals | median_deviation) / ($p[-1][0] - $p[0][0])) as $half
          | {$slope, low: ($slope - $half), high: ($slope + $half)}
        else {$slope, low: $slopes[$first], high: $slopes[$m - 1 - $first]} end
    end;

def trend($alpha): batched(batches_most) | theil_sen($alpha);

# Ranks of values, those that are equal sharing theirs.
def ranks:
  . as $values
  | [range(0; length)] | sort_by($values[.]) as $order
  | ($order | length) as $n
  | [foreach range(0; $n) as $i ({}; if $i > 0 and $values[$order[$i]] == $values[$order[$i - 1]] then . else {from: $i} end; .from)] as $from
  | [foreach range($n - 1; -1; -1) as $i ({}; if $i < $n - 1 and $values[$order[$i]] == $values[$order[$i + 1]] then . else {to: $i} end; .to)] as $to
  | reduce range(0; $n) as $i ([range(0; $n) | 0]; setpath([$order[$i]]; ($from[$i] + $to[$n - 1 - $i]) / 2 + 1));

# How far the levels beside a place are apart, in median deviations of both. Input: values.
def window_most: 15;
def contrast($at):
  ([$at, length - $at, window_most] | min) as $w
  | .[$at - $w:$at] as $left | .[$at:$at + $w] as $right
  | ($left | c::median) as $before | ($right | c::median) as $after
  | ([$left[] - $before] + [$right[] - $after] | median_deviation) as $mad
  | ($after - $before | fabs) as $apart
  | if $apart == 0 then 0 elif $mad == 0 then infinite else $apart / $mad end;

# Where a series steps: Pettitt's test of one change (A. N. Pettitt, Applied Statistics 28, 1979), which knows no distribution, K squared
# being made smaller by the likeness of neighbours on both sides of the step. {at: index of the first value after it, p}. Input: values.
def step:
  . as $values
  | length as $n
  | ([foreach (ranks | .[:-1][]) as $rank ([0, 0]; [.[0] + 1, .[1] + $rank]; (2 * .[1] - .[0] * ($n + 1)) | fabs)]) as $u
  | ($u | max) as $most
  | (($u | index([$most])) + 1) as $at
  | ($values[:$at] | c::median) as $before
  | ($values[$at:] | c::median) as $after
  | ([$values[:$at][] - $before] + [$values[$at:][] - $after] | likeness_of_neighbours) as $r
  | { $at, p: (if ($values | contrast($at)) > deviations then 0
               else [1, 2 * (-6 * $most * $most * (1 - $r) / (1 + $r) / ($n * $n * $n + $n * $n) | exp)] | min end) };

# Shorter parts are no level of their own; their lowest interval is judged by itself.
def part_least: 5;

# All steps of a series by binary segmentation (A. J. Scott and M. Knott, Biometrics 30, 1974): the parts on both sides of a step are looked
# at again, three times at most. [{at, before, after, p}], in order, before and after being the medians of the parts beside it. Input: values.
def steps($alpha; $from; $depth):
  if $depth == 0 or length < 2 * part_least then empty
  else
    . as $values
    | step
    | select(.p < $alpha and .at >= part_least and ($values | length) - .at >= part_least)
    | .at as $at
    | ($values[:$at] | steps($alpha; $from; $depth - 1)), .at += $from, ($values[$at:] | steps($alpha; $from + $at; $depth - 1))
  end;
def steps($alpha):
  . as $values
  | [steps($alpha; 0; 3)]
  | map(.at) as $places
  | [ range(0; length) as $i
      | ($values[(if $i == 0 then 0 else $places[$i - 1] end):$places[$i]] | c::median) as $before
      | ($values[$places[$i]:$places[$i + 1]] | c::median) as $after
      | .[$i] + {$before, $after} ];
