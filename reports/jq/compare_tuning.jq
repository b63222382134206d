# The comparison of a folder of sub-runs (perch.tuning/1). Input (-n): lines of tuning_run.jq.
# $asked: --slurpfile of inputs/tuning.json, what the playbook meant to do, and of inputs/outcome.json, what came of it.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "format" as f;
import "digits" as _;
import "words" as _;
import "planned" as planned;
import "tuning" as tuning;
import "student" as student;
import "series" as _;
import "transfer_rows" as _;
import "ceiling" as _;
import "comparison" as _;
import "common" as _;

def names($repeats):
  [ range(1; 2 * $repeats + 1) | "\(if . < 10 then "0" else "" end)\(.)-\(if . % 2 == 1 then "untuned" else "tuned" end)" ];

# The playbook's own words; whatever else stands there is none.
def asked: objects | {role: ((.role | strings) // null), settings: ((.settings | objects) // {} | map_values((objects) // {}))};
def outcome:
  objects
  | { stopped: (if .stopped == null then null else .stopped | tostring | sub("[. ]+$"; "") end),
      changes: (if .changes | type == "object" then .changes | map_values([arrays[] | tostring]) else null end),
      not_reverted: [.not_reverted | arrays[] | tostring] };

# One pass: lines by place, and what is known of each sub-run.
def collected:
  reduce inputs as $l ({};
    if $l.run != null then setpath(["run\t" + $l.name]; $l.run)
    else setpath([["line", $l.key, $l.name, $l.flow] | join("\t")]; $l) end);

def collected_runs: with_entries(select(.key | startswith("run\t")) | .key |= .[4:]);
def collected_lines($usable):
  [to_entries[] | select(.key | startswith("line\t")) | .value | select(.name as $n | $usable | index([$n]) != null)]
  | group_by(.key);

# What keeps the comparison from being whole, in words.
def gaps($runs; $flows; $pairs; $outcome):
  [ ($outcome.stopped // empty | "the comparison was stopped: \(tostring | sub("[. ]+$"; ""))"),
    ($outcome.not_reverted // [] | select(length > 0) | "these hosts were not reverted: \(f::names(20)); run playbooks/revert.yml"),
    (if $outcome.changes != null and all($outcome.changes[]; . == []) then "the tuning changed nothing on any host: both are the same" else empty end),
    ([$runs[] | select(.usable | not)] | group_by(.why)[] | "\(map(.name) | f::names(8)): \(.[0].why)"),
    ($runs[] | select(.usable and .measured < .planned) | "\(.name): \(.measured) of \(.planned) records measured"),
    ([$flows[] | select(.why != null)] | select(length > 0)
     | "\(length) of \($flows | length) flows and sizes cannot be compared, the first "
       + "\(.[0].test), \(.[0].client) to \(.[0].server), \(.[0].place): \(.[0].why)"),
    (if ($pairs | length) < 2 then "\($pairs | length | f::plural("whole pair")) of runs: an interval needs two"
     elif all($flows[].figures[]; .verdict == "not_compared") then "no figure could be compared"
     else empty end) ];

def count($figures; $verdict): [$figures[] | select(.verdict == $verdict)] | length;

# The statement at the head: by the figures over all flows that remain after Holm's correction; never of half a comparison.
def result($overall; $gaps):
  ([$overall[] | select(.p_holm != null and .p_holm < 0.05) | .verdict] | unique) as $sure
  | if $gaps != [] then "incomplete"
    elif $sure | index("better") != null and index("worse") != null then "mixed"
    elif $sure | index("better") != null then "better"
    elif $sure | index("worse") != null then "worse"
    else "no_effect" end;

([$asked[0].asked.tuning | asked][0]) as $tuning
| ([$asked[0].outcome | outcome][0]) as $outcome
| collected as $state
| (names($repeats)) as $names
| ($state | collected_runs | tuning::runs($names)) as $runs
| [range(0; $runs | length; 2) | $runs[.:. + 2] | select(all(.[]; .usable)) | map(.name)] as $pairs
| ([$runs[] | select(.usable) | .suite] | unique) as $suites
| (reduce ($runs[].titles // empty) as $t ({}; . + $t)) as $titles
| [ if ($pairs | length) < 2 then empty
    else $state | collected_lines($pairs | map(.[]))[] | tuning::flow($pairs; $titles) end ] as $measured
| ($measured | sort_by(.test, .client, .server, .size_bytes, .batch) | tuning::figures_with_holm) as $flows
| (tuning::overall($flows) | tuning::with_holm) as $overall
| [$flows[].figures[]] as $figures
| ( gaps($runs; $flows; $pairs; $outcome)
    + if ($suites | length) > 1 then ["the sub-runs are of different suites: \($suites | join(", "))"] else [] end ) as $gaps
| ([$figures[] | select(.verdict != "not_compared")] | length) as $compared
| { schema: "perch.tuning/1", run: $name, suite: ($suites[0] // null),
    title: ([$runs[].title | select(. != null)][0] // null), created: ([$runs[].created | select(. != null)][0] // null),
    scope: ([$runs[].scope | select(. != null)] | if . == [] then null else planned::weakest end),
    hosts: ([$runs[].hosts[]?] | unique),
    tuning: $tuning, outcome: $outcome,
    method: { statistic: "mean of the logarithms of tuned / untuned, neighbours in time; Student's t", confidence: 0.95,
              repeats: $repeats, pairs: ($pairs | length), correction: "Holm 1979",
              t_values: "NIST/SEMATECH e-Handbook 1.3.6.7.2" },
    result: result($overall; $gaps), gaps: $gaps,
    counts: { compared: $compared, better: count($figures; "better"), worse: count($figures; "worse"),
              no_effect: count($figures; "no_effect"), not_compared: count($figures; "not_compared"),
              by_chance: ($compared / 20),
              sure_better: count([$figures[] | select(.p_holm != null and .p_holm < 0.05)]; "better"),
              sure_worse: count([$figures[] | select(.p_holm != null and .p_holm < 0.05)]; "worse") },
    runs: [$runs[] | {name, phase, repeat, run, verdict, planned, measured, usable, why}],
    overall: $overall,
    flows: [$flows[] | .figures |= map(del(.ratios))] }
