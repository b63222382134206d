# A chart of the report: what draw.py draws, and what stands beside it in words.
import "format" as f;

def series: map(.series | select(. != null)) | reduce .[] as $s ([]; if index([$s]) != null then . else . + [$s] end);

# For whoever cannot see the picture: what it draws, by name. No bracket may end a link's text.
def alternative($title; $series):
  $title + (if $series == [] then "" else ": " + ($series | f::names(8)) end) | gsub("[\\[\\]]"; "") | f::cell;

def chart($name; $spec; $title; $caption; $values):
  select(($values | length) > 0)
  | ($values | series) as $series
  | {name: $name, spec: $spec, title: ($title | f::cell), caption: $caption, alternative: alternative($title; $series), series: $series, values: $values};
