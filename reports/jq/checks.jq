# State of tally.jq -> the checks of the verdict. Each check says what was looked at, what was found and what to do;
# one that cannot apply is `not_judged` with its reason in `measured`.
import "common" as c;
import "planned" as planned;
import "tally" as tally;
import "remedies" as remedies;

def check($id; $title; $status):
  { id: $id, title: $title, status: $status, measured: null, limit: null, unit: null, source: null, evidence: [], remedy: null };

def design($section): "design, " + $section;

def coverage($plan):
  ([$plan | planned::flows | .expect | length] | add) as $planned
  | tally::measured as $measured
  | ($plan | planned::idle_hosts) as $idle
  | check("coverage"; "Every planned record was measured" + (if $idle == [] then "" else ", on every host" end);
          if $measured == $planned and $planned > 0 and $idle == [] then "pass" else "inconclusive" end)
  + { measured: $measured, limit: {min: $planned, max: $planned}, unit: "records",
      source: design("coverage is counted in the plan's `expect`"),
      evidence: ($idle + ([tally::entries("missing").value.flow] | unique) | .[0:tally::evidence_max]),
      remedy: (if $idle != [] then "No flow uses \($idle[0:5] | join(", ")): see what was excluded, correct its perch_backends and perch_tools, "
                                   + "or take it out of the inventory"
               elif $measured == $planned then null else "See the findings of the flows that are missing, and measure again" end) };

# What the hosts cannot do was left out of the plan: it is shown, and a plan of nothing else proves nothing.
def excluded($plan):
  ([$plan.excluded // [] | .[].test] | unique) as $tests
  | any($plan | planned::flows; .backend != "null") as $real
  | if $tests == [] and $real then empty
    else
      check("excluded"; "Tests that were left out of the plan"; if $real then "not_judged" else "inconclusive" end)
      + { measured: ((if $real then "" else "nothing but the null backend was planned; left out: " end) + ($tests | join(", "))),
          source: design("what a suite asks beyond the hosts' means is listed"), evidence: ($tests | .[0:tally::evidence_max]),
          remedy: (if $real then null else "Give the hosts the backends and tools that the suite asks for, and plan again" end) }
    end;

def host_check($host; $state):
  (if $state.agent == null then "its agent left no agent.json"
   elif $state.agent.state != "done" then
     "its agent ended in state \($state.agent.state)" + (if $state.agent.message then ": \($state.agent.message)" else "" end)
   elif $state.environment | not then "it left no environment.json"
   else null end) as $why
  | if $why == null then empty
    else check("host/" + $host; "Raw outputs of host \($host)"; "inconclusive")
      + {measured: $why, source: design("a verdict is drawn from the raw outputs of all hosts"), evidence: [$host],
         remedy: "Look at raw/\($host)/agent.log, or run the playbook again if the folder is missing"}
    end;

def hosts($plan; $hosts):
  [$plan.hosts | keys_unsorted[] | host_check(.; $hosts[.] // {})] as $bad
  | if ($bad | length) > 0 then $bad[]
    else check("hosts"; "Raw outputs of every host"; "pass")
      + {measured: ($plan.hosts | length), limit: {min: ($plan.hosts | length), max: null}, unit: "hosts",
         source: design("a verdict is drawn from the raw outputs of all hosts")}
    end;

def flows:
  ( tally::entries("flow")
    | check("flow/" + .parts[0]; "Flow \(.parts[0])"; .value.status)
    + { measured: ((if .value.code == null or (.value.message | startswith("exit")) then "" else "code \(.value.code): " end) + .value.message),
        source: design("exit codes"), evidence: .value.evidence, remedy: (.value.code | remedies::for_code) } ),
  ( tally::seen(0)[] | select(all(.entries[]; .parts[4:6] == ["ok", "clean"]))
    | check("flows/" + .key; "All flows of test \(.key)"; "pass")
    + {measured: .n, limit: {min: .n, max: null}, unit: "records", source: design("exit codes")} );

def integrity:
  (first(tally::entries("integrity").value) // {checked: 0, bad: 0, evidence: []}) as $i
  | check("integrity"; "Payloads arrived as they were sent";
          if $i.bad > 0 then "fail" elif $i.checked > 0 then "pass" else "not_judged" end)
  + ( if $i.checked == 0 and $i.bad == 0 then {measured: "no flow ran with --verify"}
      else {measured: $i.bad, limit: {min: null, max: 0}, unit: "corrupted bytes of \($i.checked) checked"} end )
  + { source: design("a corrupted payload fails a run"), evidence: $i.evidence,
      remedy: (if $i.bad > 0 then (5 | remedies::for_code) else null end) };

# A required limit whose figure was not reported cannot pass; an advisory one only says so.
def limit_status($limit):
  if .broken > 0 then (if $limit.severity == "required" then "fail" else "advisory" end)
  elif .judged == 0 or (.unknown > 0 and $limit.severity == "required") then
    (if $limit.severity == "required" then "inconclusive" else "not_judged" end)
  else "pass" end;

def limit_check($limit):
  limit_status($limit) as $status
  | check("limit/\($limit.id)/\(.test)"; "\($limit.title), test \(.test)"; $status)
  + { measured: (if .judged == 0 then "not reported by \(.unknown) records in scope"
                 elif $status == "inconclusive" then "\(.unknown) of \(.unknown + .judged) records in scope do not report it"
                 else .worst end),
      limit: {min: $limit.bound.min, max: $limit.bound.max}, unit: $limit.unit, source: $limit.source,
      evidence: (if .broken > 0 then .evidence elif .at == null then [] else [.at] end),
      remedy: (if $status == "pass" then null else $limit.remedy end) };

def limits($limits):
  ( tally::entries("limit").value | .limit as $id | limit_check(first($limits[] | select(.id == $id))) ),
  ( ([tally::entries("limit").value.limit] | unique) as $used
    | $limits[] | select(.id as $id | $used | index([$id]) == null)
    | check("limit/" + .id; .title; "not_judged")
    + {measured: "no record in its scope", limit: {min: .bound.min, max: .bound.max}, unit: .unit, source: .source} );

def ceiling:
  ([tally::seen(2)[].key] | join(", ")) as $layers
  | (first(tally::entries("ceiling").value) // {judged: 0, evidence: []})
  | (.evidence != []) as $broken
  | if .judged == 0 then
      check("ceiling"; "No bandwidth above what its link can carry"; "not_judged")
      + {measured: "no link rate and MTU is known on: \($layers); loopback and shm have no ceiling",
         source: design("ceiling of a link")}
    else
      check("ceiling"; "No bandwidth above what its link can carry"; if $broken then "fail" else "pass" end)
      + { measured: (.worst | c::rounded), limit: {min: null, max: (100 * tally::ceiling_tolerance)},
          unit: "% of the link's payload ceiling",
          source: design("ceiling of a link: rate x payload / (payload + headers), +0.5 %"),
          evidence: (if $broken then .evidence else [.at] end),
          remedy: (if $broken then "Do not use these figures: find what was timed wrongly, or correct the link's rate and MTU, "
                                   + "then measure again"
                   else null end) }
    end;

# 5 %: the coefficient of variation that draft-calabria-bmwg-ai-fabric-training-bench-02 recommends to stay under.
def unstable_percent: 5;

def cv: if .n < 2 or .mean == 0 then null else 100 * (.m2 / (.n - 1) | sqrt) / .mean end;

def repeatability:
  [tally::entries("cv") | select(.value.n >= 2)
   | {test: .parts[0], name: "\(.parts[0])/\(.parts[1])/\(.parts[2])#\(.parts[3])", cv: (.value | cv)}]
  | if length == 0 then
      check("repeatability"; "Repeats agree"; "not_judged")
      + {measured: "nothing was measured more than once", source: design("repeatability")}
    else
      group_by(.test)[]
      | (map(select(.cv > unstable_percent)) | sort_by(-.cv)) as $unstable
      | check("repeatability/" + .[0].test; "Repeats of test \(.[0].test) agree"; if $unstable == [] then "pass" else "advisory" end)
      + { measured: (map(.cv) | max | c::rounded), limit: {min: null, max: unstable_percent}, unit: "% coefficient of variation",
          source: (design("repeatability") + "; draft-calabria-bmwg-ai-fabric-training-bench-02: under 5 % recommended"),
          evidence: ($unstable | map(.name) | .[0:tally::evidence_max]),
          remedy: (if $unstable == [] then null
                   else "Treat \($unstable | length) of \(length) figures as unstable: stop other load, fix the CPU frequency, "
                        + "pin the engine (--cpu), and repeat" end) }
    end;

def path_status($scope; $state):
  if $scope != "hardware" then "not_judged"
  elif $state == "proven" then "pass"
  elif $state == "contradicted" then "fail"
  else "inconclusive" end;

# Bytes through memory of one host have no device whose counters could prove them.
def path_proof:
  [tally::entries("seen") | select(.parts[4] == "ok")] | group_by(.parts[1] + "/" + .parts[3])[]
  | {scope: .[0].parts[1], state: .[0].parts[3], n: (map(.value.n) | add), evidence: (map(.value.evidence[]) | .[:tally::evidence_max])}
  | path_status(.scope; .state) as $status
  | check("path/\(.scope)/\(.state)"; "The bytes took the claimed path (\(.scope) scope)"; $status)
  + { measured: (if $status == "not_judged" then "scope \(.scope): no device of a fabric carried these bytes, so no counter can prove them"
                 elif $status == "inconclusive" then "\(.n) records without device counters"
                 else "\(.n) records: \(.state)" end),
      source: design("the path is proven"),
      evidence: (if $status == "not_judged" or $status == "pass" then [] else .evidence end),
      remedy: (if $status == "inconclusive" then "Do not accept the hardware on these figures: nothing shows that the bytes used it"
               elif $status == "fail" then "Check routing, device and provider of these flows: their bytes did not pass the claimed device"
               else null end) };

# Our bandwidth within a factor of two of iperf3's: two programs on one path, whose sockets are tuned differently.
# Wider, and one of them measures something else.
def cross_factor: 2;

def cross_pairs:
  [tally::entries("cross") | {key: (.parts[0:3]), tool: .parts[3], mean: (.value.sum / .value.n), evidence: .value.evidence}]
  | group_by(.key)
  | map(select(length == 2)
        | {perch: (map(select(.tool == "perch"))[0]), iperf3: (map(select(.tool == "iperf3"))[0])}
        | {ratio: (.perch.mean / .iperf3.mean), evidence: (.perch.evidence[0:1] + .iperf3.evidence[0:1])});

def cross_check:
  cross_pairs as $pairs
  | if $pairs == [] then
      check("cross-check"; "The engine agrees with iperf3"; "not_judged")
      + {measured: "no flow of each with the same pair, size and one connection", source: design("cross-checks")}
    else
      ($pairs | map(select(.ratio > cross_factor or .ratio < 1 / cross_factor))) as $far
      | ($pairs | max_by([.ratio, 1 / .ratio] | max)) as $worst
      | check("cross-check"; "The engine's TCP bandwidth agrees with iperf3's"; if $far == [] then "pass" else "advisory" end)
      + { measured: ($worst.ratio | c::rounded), limit: {min: (1 / cross_factor), max: cross_factor}, unit: "engine / iperf3",
          source: "site policy: two programs on one path stay within a factor of two",
          evidence: (if $far == [] then $worst.evidence else [$far[].evidence[]] | .[0:tally::evidence_max] end),
          remedy: (if $far == [] then null
                   else "Compare both command lines (socket buffers, sizes) and repeat on an idle host before trusting either" end) }
    end;

def definitions($comparison):
  check("definitions"; "Only equal definitions are compared"; if ($comparison.refused | length) == 0 then "pass" else "not_judged" end)
  + {measured: (if ($comparison.refused | length) == 0 then "\($comparison.rows | length) comparisons"
                else "not compared: " + ([$comparison.refused[].reason] | unique | join("; ")) end),
     source: design("records with different definitions are never compared")};

def all($plan; $hosts; $limits; $comparison):
  [ coverage($plan), excluded($plan), hosts($plan; $hosts), flows, integrity, limits($limits), ceiling, repeatability, path_proof, cross_check,
    definitions($comparison) ];
