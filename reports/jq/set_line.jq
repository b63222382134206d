# Lines of an index or a history (-nR) -> the same with $line in place of that of $run, or at the end. What cannot be read stays.
import "common" as c;

def run: c::parsed | if type == "object" then .run else null end;

foreach (inputs, null) as $text ({done: false};
  if $text == null then .out = (if .done then null else $line | tojson end)
  elif ($text | run) == $run then (if .done then .out = null else {done: true, out: ($line | tojson)} end) # one line a run
  else .out = $text end;
  .out | values)
