# tuning.json -> what the report of a comparison shows, as finished text.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "figure_words" as figure_words;
import "format" as f;
import "digits" as digits;
import "common" as _;
import "words" as _;
import "table" as table;
import "tuning_words" as words;

# Beyond ten times a percentage says nothing more.
def signed:
  if . == null then "-" elif . > 1000 then "> +1000 %" else (if . > 0 then "+" else "" end) + digits::fixed(1) + " %" end;
def interval: if .low_percent == null then "-" else "\(.low_percent | signed) to \(.high_percent | signed)" end;
def figure_value($unit): if . == null then "-" else "\(f::figure) \($unit | f::unit_sign)" end;
# A change of less than this in the wanted direction would have passed for chance.
def smallest: if .smallest_percent == null then "-" else "\(.smallest_percent | digits::fixed(1)) %" end;
def said: words::verdict + (if .why == null then "" else ": \(.why)" end) | f::cell;

def kind_words: {latency: "latency", sum: "transfers"};
def named: if .kind == "bandwidth" then "bandwidth" else "\(kind_words[.kind]), \(.title)" end;
def change_words: "\(named) \(.change_percent | signed) (\(interval))";

def overall_table:
  { columns: [table::left("Figure"), table::right("Flows and sizes"), table::right("Change"), table::right("95 % interval"),
              table::right("Least gain to be seen"), table::left("Verdict"), table::right("p (Holm)")],
    rows: [.overall[] | [named, (.flows | f::whole), (.change_percent | signed), interval, smallest, said, (.p_holm | f::figure)]] };

# A row a figure, as in the notes.
def flow_table:
  { columns: [table::right("Size"), table::left("Figure"), table::right("Untuned"), table::right("Tuned"), table::right("Change"),
              table::right("95 % interval"), table::right("Least gain to be seen"), table::left("Verdict")],
    rows: [ .[] | ((.size_bytes | f::size) + if .batch == null then "" else ", batch \(.batch)" end) as $size
            | if .why != null then [$size, "-", "-", "-", "-", "-", "-", ("not compared: \(.why)" | f::cell)]
              else .figures[] | [$size, .title, (.unit as $u | .untuned | figure_value($u)), (.unit as $u | .tuned | figure_value($u)),
                                 (.change_percent | signed), interval, smallest, said] end ] };

# Of a test's sizes those where its curve starts, bends and ends (of transfers, at a few batches); else the first ones.
def shown:
  (map(.size_bytes | select(. != null)) | figure_words::picked_sizes) as $sizes
  | map(select(.size_bytes as $s | $sizes | index([$s]) != null)) as $picked
  | (if $picked == [] then . else $picked end)[:6];

def tables_max: 60; # a page that can still be read; tuning.json has every figure
def flow_tables:
  [ .flows | group_by([.test, .client, .server])[]
    | shown as $shown
    | { title: "\(.[0].title | f::cell), \(.[0].client | f::cell) to \(.[0].server | f::cell)",
        note: ([.[].definition | strings][0] | figure_words::definition_words), more: (length - ($shown | length)) }
      + ($shown | flow_table) ];

# What the role said that it changed, when it tuned last.
def change_lines:
  [(.outcome.changes // {}) | to_entries[] | .key as $host | .value[]? | {host: $host, said: tostring}]
  | group_by(.said) | map("\(.[0].said | f::cell) (\(map(.host) | unique | f::names(8) | f::cell))") | .[:100];

def sure: [.overall[] | select(.p_holm != null and .p_holm < 0.05 and (.verdict == "better" or .verdict == "worse"))];
def changed: [sure[] | change_words] | f::names(6);

def headline:
  if .result == "incomplete" then
    "⚠️ **Incomplete**: the comparison is not whole, and nothing is claimed of the tuning: \(.gaps[0] | f::cell)."
  elif .result == "better" then "✅ **Better** over all flows: \(changed)."
  elif .result == "worse" then "❌ **Worse** over all flows: \(changed)."
  elif .result == "mixed" then "⚠️ **Mixed** over all flows: \(changed)."
  else "➖ **No effect seen** over all flows that \(.method.pairs | f::plural("repeat")) could tell from chance."
  end;

def scope_line:
  if .scope == "hardware" then "Scope: hardware."
  else "**Scope: \(.scope // "unknown" | f::cell). This comparison is no proof of hardware.**" end;

def counts_line:
  .counts | map_values(if . == floor then f::whole else digits::fixed(1) end)
  | "\(.compared) figures of single flows were compared: \(.better) better, \(.worse) worse, \(.no_effect) without an effect; "
    + "\(.not_compared) could not be. One interval in twenty misses by chance, here about \(.by_chance): of the changed ones "
    + "\(.sure_better) better and \(.sure_worse) worse remain after Holm's correction for all of them.";

def runs_table:
  { columns: [table::left("Run"), table::left("Phase"), table::right("Repeat"), table::left("Verdict"), table::right("Measured"),
              table::left("Remark")],
    rows: [ .runs[] | [ (if .verdict == null then .name else "[\(.name)](\(.name)/report.md)" end), .phase, (.repeat | tostring),
                        (.verdict // "-"), (if .planned == null then "-" else "\(.measured) of \(.planned)" end), (.why // "-" | f::cell) ] ] };

# What was tuned: the values asked for, one line for all hosts that have the same, and what the role said.
def setting_lines:
  [(.tuning.settings // {}) | to_entries[] | .key as $host | .value | to_entries[] | {host: $host, name: .key, value: .value}]
  | group_by([.name, .value])
  | map("\("\(.[0].name): \(.[0].value | tojson)" | f::code) on \(map(.host) | f::names(8) | f::cell)");

def what_line:
  "Suite *\(.title // .suite // "unknown" | f::cell)*, comparison \(.run | f::code): \(.hosts | f::names(8) | f::cell); "
  + "\(.method.repeats | f::plural("repeat")) of measuring untuned and tuned in turn.";

{ title: "Tuning report: \(.title // .suite // .run | f::cell)", headline: headline, scope_line: scope_line, what_line: what_line,
  counts_line: counts_line, gaps: (.gaps | map(f::cell)), role: (.tuning.role // "the tuning" | f::code),
  settings: setting_lines, changes: change_lines, overall: overall_table, runs: runs_table,
  flows: (flow_tables[:tables_max]), flows_more: ([(flow_tables | length) - tables_max, 0] | max),
  pairs: .method.pairs,
  summary: ( [headline, "", (.overall[] | "\(named): \(.change_percent | signed), 95 % interval \(interval): \(words::verdict)"
                             + (if .why == null then "" else ": \(.why)" end)),
              (if .gaps == [] then empty else "", (.gaps[] | "not whole: \(.)") end)] | map(gsub("\\*\\*"; ""))) }
