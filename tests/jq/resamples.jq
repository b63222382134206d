# Comparisons drawn by lot from real runs of one thing (tuning_pool.json): between them there is no difference but noise,
# unless one is made. Seeds are fixed, so that each run of the tests draws the same.
import "tuning_pool" as $pool;
import "tuning" as tuning;
import "student" as student;

# Park and Miller's minimal standard generator (Communications of the ACM 31, 1988): exact in doubles.
def next: . * 16807 % 2147483647;
def numbers($seed; $n): reduce range(0; $n) as $i ([$seed]; . + [.[-1] | next]) | .[1:];

# $n repeats of all figures: [{forth, back}, ...] for each column; tuned figures times $factor.
def drawn($seed; $n; $factor):
  $pool::pool[0].runs as $runs
  | [numbers($seed; 2 * $n + 10)[10:][] | $runs[. % ($runs | length)]] as $drawn
  | [ range(0; $runs[0] | length) as $column
      | { untuned: [range(0; 2 * $n; 2) as $i | $drawn[$i][$column]],
          tuned: [range(1; 2 * $n; 2) as $i | $drawn[$i][$column] * $factor] }
      | tuning::log_ratios ];

def verdicts($n; $factor):
  [range(1; 201) as $seed | drawn($seed * 7919; $n; $factor) | map(tuning::compared("lower"; 0.002).verdict)];

# Of 200 comparisons and all their figures, the part with this verdict.
def part($verdict): flatten | (map(select(. == $verdict)) | length) / length;
def called: part("better") + part("worse");

# The part of 200 comparisons whose statement at the head would claim a change: Holm's over its figures.
def claimed($n; $factor):
  [ range(1; 201) as $seed | drawn($seed * 7919; $n; $factor) | map(tuning::compared("lower"; 0.002)) | tuning::with_holm
    | any(.[]; .p_holm < 0.05 and .verdict != "no_effect") ]
  | (map(select(.)) | length) / 200;
