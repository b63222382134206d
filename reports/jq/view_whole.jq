# The parts that the programs of `prepare` made -> report.json. Input (--slurp): these parts. A column that says nothing goes
# here, from whatever table it is in.
import "table" as table;

def slimmed:
  if type == "array" then map(slimmed)
  elif type != "object" then .
  elif (.columns | type) == "array" and (.rows | type) == "array" then table::slim | map_values(if type == "object" then slimmed else . end)
  else map_values(slimmed) end;

add | .charts as $charts | .soak.charts as $soak | del(.charts, .soak.charts) | slimmed | .charts = $charts | if .soak == null then . else .soak.charts = $soak end
