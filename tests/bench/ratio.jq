# Input: one case with its pairs [[engine, peer], ...]. Adds medians, the median of the paired ratios, and the bound of its
# confidence interval that the goal is judged by.
#
# The interval is the distribution-free one of order statistics (the sign test turned round): on a noisy machine the ratios
# have outliers on both sides, and it assumes nothing of their distribution. With 15 pairs, the 12th smallest ratio lies above
# the median of all possible ratios in 98.2 % of experiments, the 11th in 94.1 %: the 12th is the upper 95 % bound.

def choose($n; $k): reduce range(0; $k) as $i (1; . * ($n - $i) / ($i + 1));

# null: so few that no rank does.
# The smallest rank (from 1) of n sorted values that lies above the true median in at least 95 % of experiments.
def upper_rank($n):
  first(range(1; $n + 1) | select(. as $r | ([range(0; $r) | choose($n; .)] | add) / pow(2; $n) >= 0.95)) // null;

def median: sort | length as $n | if $n % 2 == 1 then .[($n - 1) / 2] else (.[$n / 2 - 1] + .[$n / 2]) / 2 end;

([.pairs[] | .[0] / .[1]] | sort) as $ratios
| ($ratios | length) as $n
| upper_rank($n) as $rank
| . + {
    engine: ([.pairs[][0]] | median),
    peer_value: ([.pairs[][1]] | median),
    ratio: ($ratios | median),
    bound: (if $rank == null then null elif .goal == "max" then $ratios[$rank - 1] else $ratios[$n - $rank] end),
  }
# 3 %: what two runs of one program differ by here; the goal itself is 1.00.
| . + {met: (if .bound == null then null elif .goal == "max" then .bound <= 1.03 else .bound >= 0.97 end)}
