# What passing.jq has made of the records, of one part of them or of several: rows and states -> all rows, one state.

def sep: "\t";

def sum($a; $b):
  if $a == null then $b elif $b == null then $a
  elif ($a | type) == "array" then [range(0; $a | length) as $i | sum($a[$i]; $b[$i])]
  elif ($a | type) == "object" then reduce ($b | keys_unsorted[]) as $k ($a; .[$k] = sum($a[$k]; $b[$k]))
  else $a + $b end;

# As passing.jq would have gone on from $a. Whatever the parts are, the result is the same.
def joined($kind; $a; $b):
  if $a == null or $b == null then sum($a; $b)
  elif $kind == "about" or $kind == "terms" or $kind == "end" then $a
  elif $kind == "spike" or $kind == "course" then if $b.rank < $a.rank then $b else $a end
  elif $kind == "odd" then [$a[0] + $b[0], $a[1] + $b[1]]
  elif $kind == "time" then [([$a[0], $b[0]] | map(values) | min), ([$a[1], $b[1]] | max), $a[2] + $b[2]]
  else sum($a; $b) end;

# Input: documents of passing.jq, in an array.
def state:
  [.[] | objects]
  | if . == [] then error("the records have not been read to their end") else . end
  | reduce .[1:][] as $part (.[0]; reduce ($part | keys_unsorted[]) as $k (.; .[$k] = joined($k | split(sep)[0]; .[$k]; $part[$k])));
def rows: [.[] | arrays];

# State -> [{key: parts of the key behind its first word, value}]
def entries($prefix): [to_entries[] | select(.key | startswith($prefix + sep)) | {key: (.key | split(sep)[1:]), value}];
