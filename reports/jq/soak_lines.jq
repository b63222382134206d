# The lines of a soak's charts: points in time, thinned so that no extreme is lost, and anomalies above them.
import "common" as c;

# Of so many stretches of time, of some four pixels each, a line has the extremes.
def stretches: 150;
# Shapes that tell lines apart without their colour, on each line
def shapes: 8;

# Points [{x, v, from}] in time, where `from` is when what they speak of began, with a hole (v null) where more than half an
# interval is missing before one. A line breaks there.
def with_holes($interval):
  . as $all
  | [ range(0; length) as $i | $all[$i]
      | (if $i > 0 and .from != null and .from - $all[$i - 1].to > $interval / 2 then {x: .from, v: null} else empty end), {x, v} ];

# $keep: "min", "max" or "both"
def thinned($keep):
  if length <= 2 * stretches then .
  else
    (length / stretches | ceil) as $each | . as $all
    | [ range(0; length; $each) as $i | $all[$i:$i + $each]
        | (map(select(.v != null))) as $known
        | (map(select(.v == null)) | .[:1]) + (if $known == [] then [] else [($known | select($keep != "max") | min_by(.v)), ($known | select($keep != "min") | max_by(.v))] | unique end)
        | sort_by(.x)[] ] end;

# A point between two holes is no line, and would not be seen.
def marked:
  (length / shapes | ceil) as $each | . as $all
  | range(0; length) as $i | $all[$i]
  | select(.v != null and ($i % $each == ($each / 2 | floor)
                           or (($i == 0 or $all[$i - 1].v == null) and ($i + 1 == ($all | length) or $all[$i + 1].v == null))));

# Points -> values of one line. $of: {series, figure}
def line($of; $keep; $interval):
  (sort_by(.x) | with_holes($interval) | thinned($keep) | map({x: (.x | floor), v: (.v | c::rounded)})) as $points
  | ($points[] | {role: "line"} + $of + .), ($points | marked | {role: "shape"} + $of + .);

# What all charts begin and end with, so that times stand below each other.
def frame($span): {role: "frame", x: 0}, {role: "frame", x: $span};
# A vertical axis that reaches so far at least, so that noise does not fill it.
def frame_to($span; $v): {role: "frame", x: 0, v: 0}, {role: "frame", x: $span, v: $v};
def unit($text): {role: "unit", $text};

# ---- anomalies, above the lines ----

def lanes_max: 5;
# A lane of few has a line down through the plot at each.
def few: 6;
# Where marks are closer than this share of the width, the first has its number.
def apart: 0.045;
# Bars that are nearer to each other than this share, two pixels, are one.
def one_bar: 0.003;

# Anomalies of the verdict and rows ["x", test, kind, start, end] of its silences -> [{kind, id (null of a row), x, x2}]
def placed($rows; $span):
  [ (.[] | select(.start_s != null) | {id, kind, x: (.start_s * 1000 | floor), x2: ((.end_s // .start_s) * 1000 | ceil)}),
    ($rows[] | {id: null, kind: .[2], x: .[3], x2: .[4]}) ]
  | map(.x = ([[.x, 0] | max, $span] | min) | .x2 = ([[.x2, .x] | max, $span] | min));

def bars($span):
  sort_by(.x)
  | reduce .[] as $a ([]; if length > 0 and $a.x - .[-1].x2 <= one_bar * $span then .[-1].x2 = ([.[-1].x2, $a.x2] | max) else . + [{x: $a.x, x2: $a.x2}] end) | .[];
def numbers($span):
  [.[] | select(.id != null)] | sort_by(.x)
  | reduce .[] as $a ({last: null, of: []}; if .last == null or $a.x - .last >= apart * $span then .last = $a.x | .of += [$a] else . end) | .of[];

# -> {role: bar | number | lane | rule}; lanes count up from the plot's edge, in pixels.
def marks($rows; $span):
  placed($rows; $span)
  | (reduce .[].kind as $k ([]; if index([$k]) != null then . else . + [$k] end)) as $kinds
  | ($kinds | if length > lanes_max then .[:lanes_max - 1] + ["others"] else . end) as $lanes
  | map(.lane = (.kind as $k | $lanes | index($k) // (length - 1)))
  | ( group_by(.lane)[] | (-12 - 18 * .[0].lane) as $y | [bars($span)] as $bars
      | ( $bars[] | {role: "bar", x, x2, y: $y} ),
        ( numbers($span) | {role: "number", x, y: ($y - 3), text: .id} ),
        ( select($bars | length <= few) | $bars[] | select(.x2 - .x < $span / 4) | {role: "rule", x} ) ),
    ( $lanes | to_entries[] | {role: "lane", y: (-12 - 18 * .key), text: .value} );
