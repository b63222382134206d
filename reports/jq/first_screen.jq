# What a reader sees first: the verdict, what it is worth, and the worst findings, each kind of thing once.
import "planned" as planned;
import "format" as f;
import "table" as table;

def status_words: {pass: "pass", fail: "FAIL", inconclusive: "INCONCLUSIVE", advisory: "advisory", not_judged: "not judged"};
def gravity: {fail: 0, inconclusive: 1, advisory: 2, not_judged: 3, pass: 4}[.];

def verdict_line:
  { PASS: "✅ **PASS**: every planned record was measured and lies within its limits.",
    FAIL: "❌ **FAIL**: a limit was missed, a payload was corrupted, or a peer was lost while it was measured.",
    INCONCLUSIVE: "⚠️ **INCONCLUSIVE**: something kept part of the plan from being measured or judged." }[.verdict];

# $flows: what plan_view.jq counted.
def what_line($plan; $flows):
  ($plan.hosts | keys_unsorted) as $hosts
  | "Suite *\($plan.suite.title // $plan.suite.name | f::cell)*, run `\($plan.run)`: \($hosts | f::names(8) | f::cell) "
    + "(\($hosts | length | f::plural("host")), \($flows.pairs | f::plural("pair")), "
    + "\($flows.flows | f::plural("flow"))), limits *\($plan.limits | f::cell)*.";

def coverage_line:
  "Coverage: \(.coverage.measured | f::whole) of \(.coverage.planned | f::whole) planned records measured"
  + (if (.coverage.missing | length) == 0 then "." else ", **\(.coverage.missing | length | f::whole) missing**." end)
  + ([.checks[] | select(.id == "nics" and .status != "pass") | " \(.measured | f::cell)."] | join(""));

def excluded_line($plan):
  ([$plan.excluded // [] | .[] | select(.nic == null).test] | unique) as $tests
  | if $tests == [] then "" else "**Left out of the plan**, for a host could not take part: \($tests | map(f::code) | f::names(8))." end;

# ---- checks ---------------------------------------------------------------------------------------------------------

def measured_text: .unit as $unit | .measured | f::value($unit);

def check_view:
  { id: .id, status: status_words[.status], title: (.title | f::cell), measured: (measured_text | f::cell),
    limit: (.unit as $unit | .limit | f::bound($unit) | f::cell), source: (.source | f::cell), remedy: (.remedy | f::cell),
    evidence: (.evidence | map(f::code) | f::names(3) | if . == "" then "-" else . end) };

# What is said of the hosts has a table of its own: it is long, and most of it only describes them.
def is_of_hosts: .id | startswith("host_check/");

def rows_max: 300;
def table_of_checks($of_hosts):
  [.checks[] | select(is_of_hosts == $of_hosts)] | sort_by(.status | gravity)
  | { columns: [ (if $of_hosts then "Status", "Check", "Found", "Limit", "Source and reason", "Hosts", "What to do"
                  else "Status", "Check", "Measured", "Limit", "Source of the limit", "Evidence", "What to do" end) | table::left(.) ],
      rows: (.[:rows_max] | map(check_view | [.status, .title, .measured, .limit, .source, .evidence, .remedy])),
      more: ([length - rows_max, 0] | max) };

# ---- findings -------------------------------------------------------------------------------------------------------

# Checks of one kind are one finding: a limit that many tests miss, a fault that many flows or hosts have. Flows are alike
# where their messages differ in numbers only.
def kind:
  (.id | split("/")) as $id
  | if $id[0] | IN("limit", "host_check", "switch", "counters") then $id[0:2]
    elif $id[0] == "flow" then ["flow", (.measured | tostring | gsub("[0-9]+"; "#"))]
    elif $id[0] == "path" then ["path", (.measured | tostring | gsub("[0-9]+"; "#"))]
    else $id[0:1] end;

# Of a figure that keeps its bound, how much of the room it takes, up to 1.
def nearness:
  if (.measured | type) != "number" or .limit == null then 0
  else [ (select(.limit.max != null and .limit.max > 0) | .measured / .limit.max),
         (select(.limit.min != null and .measured > 0) | .limit.min / .measured), 0 ] | max end;

# How far a figure stands from its bound, as a factor; 0 where there is none.
def strain:
  if (.measured | type) != "number" or .limit == null then 0
  elif .limit.max != null and .limit.max > 0 and .measured > .limit.max then .measured / .limit.max
  elif .limit.min != null and .measured < .limit.min then (if .measured > 0 then .limit.min / .measured else 1e300 end)
  else 0 end;

# A finding that only sums up others comes behind them.
def sums_up: .id | IN("coverage", "excluded");

def finding:
  length as $n
  | max_by(strain)
  | check_view
  # titles say what should be, but for drift's, which say what was found
  + { word: (if .status == "inconclusive" then "not judged" elif .id | startswith("drift/") then "found" else "not met" end),
      more: (if $n > 1 then "and \($n - 1) more like it" else "" end) };

# All that is not as it should be, each kind once, the worst first.
def findings:
  [.checks[] | select(.status == "fail" or .status == "inconclusive" or .status == "advisory")]
  | group_by([.status, kind])
  | sort_by((.[0].status | gravity), (.[0] | sums_up), (.[0] | is_of_hosts), -length)
  | map(finding);
