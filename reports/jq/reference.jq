# Published curves that a run has chosen (inputs/reference/*.json, perch.reference/1): which can be drawn, along what.
import "common" as c;

# A curve goes along one thing: sizes at one batch, or batches at one size.
def sweeps($key; $other):
  (map(.[$key]) | length >= 2 and . == unique) and (map(.[$other]) | unique | length == 1);
def along:
  .rows
  | if sweeps("size_bytes"; "batch") then "size" elif sweeps("batch"; "size_bytes") then "batch" else null end;

def row_faults:
  . as $row
  | ("size_bytes", "batch", "avg_gbyte_s") as $key
  | select(($row | type) != "object" or ($row[$key] | c::is_finite and . > 0 | not))
  | "a row of it has no positive \($key)";

# Texts of what is wrong; none means that it can be drawn.
def faults:
  if type != "object" or .schema != "perch.reference/1" then "it is no perch.reference/1 document"
  elif (.rows | type) != "array" or (.rows | length) < 2 then "it has no rows"
  else
    (("title", "source", "cite") as $key | select(.[$key] | type != "string" or . == "") | "it has no \($key)"),
    ([.rows[] | row_faults] as $faults
     | if $faults != [] then $faults[0]
       elif along == null then "its rows go neither along the size at one batch nor along the batch at one size"
       else empty end)
  end;

# $chosen, from the run's inputs: [{file, curve}]; what is no JSON comes as a curve of null.
def usable: [.[].curve | select([faults] == [])];
def unusable: [.[] | {file, why: ([.curve | faults] | .[0])} | select(.why != null)];

def legend: "\(.title) (\(.cite))";
