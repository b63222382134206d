# Readiness, criterion by criterion: each gathers the verdict's checks that speak of one thing, and is as good as the worst of
# them. It adds no judgement of its own: what no check judged is not judged.
import "first_screen" as first_screen;
import "format" as f;
import "measured" as measured;

# ids: the checks, by the beginning of their id. metrics: of the limits (inputs/limits.json) whose checks belong there.
# only_faults: there is a check only where something is wrong, or in a soak. An operator asks in this order.
def criteria:
  [ {id: "coverage", title: "Everything planned was measured", ids: ["coverage", "excluded", "nics", "hosts", "host/", "flow/", "plan", "soak/coverage", "soak/state", "soak/samples"]},
    {id: "limits", title: "There were limits to judge by", ids: ["limits"], only_faults: true},
    {id: "path", title: "The bytes took the path that they claim", ids: ["path/", "path", "simulated", "software", "imported"]},
    {id: "throughput", title: "Throughput", metrics: "^bandwidth\\.(gbit_s|messages_per_s)$", ids: ["like/", "peers/"]},
    {id: "possible", title: "No figure beyond what is possible", ids: ["ceiling"]},
    {id: "latency", title: "Latency", metrics: "^latency_us\\.(p50|mean|min)$"},
    {id: "tail", title: "Jitter and tail", metrics: "^(latency_us\\.(p9|max|stddev)|derived\\.p99)", ids: ["tail/"]},
    {id: "loss", title: "No loss", metrics: "^(derived\\.(loss_ppm|packets_lost_ppm|packets_retried_ppm|retransmissions)|tcp\\.retrans)", ids: ["switch/drops", "switch/drops-elsewhere"]},
    {id: "integrity", title: "No corruption", metrics: "^derived\\.packets_corrupted", ids: ["integrity", "switch/errors", "soak/integrity"]},
    {id: "stability", title: "Stable over time", metrics: "^(derived\\.stall_s|bandwidth\\.min_interval)", ids: ["interval/", "soak/gaps", "soak/stalls", "soak/interval", "soak/latency", "soak/drift", "soak/change", "soak/rate", "soak/reboots"]},
    {id: "leaks", title: "Nothing grows", ids: ["soak/memory", "soak/handles"], only_faults: true},
    {id: "repeatability", title: "Repeatable", ids: ["repeatability"]},
    {id: "drift", title: "As good as when it was accepted", ids: ["drift", "baseline"]},
    {id: "counters", title: "Counters clean", ids: ["counters", "soak/counters", "soak/links", "switch/pause-storms", "host_check/nic-port-errors", "host_check/nic-interface-errors",
                                                    "host_check/nic-pcie-errors", "host_check/machine-pcie-log", "host_check/machine-link-flaps"]},
    {id: "agreement", title: "Two tools agree", metrics: "^agreement\\.", ids: ["agreement/", "cross-check", "cross/"]},
    {id: "hosts", title: "Hosts configured as wanted", ids: ["host_check/"]},
    {id: "switches", title: "Switches configured as wanted", ids: ["switch/"]},
    {id: "evidence", title: "The evidence is whole", ids: ["manifest", "clock", "schema", "inputs", "soak"], only_faults: true} ];

# $metrics: {limit id: metric}
def belongs($check; $metrics):
  ($check.id | split("/")) as $parts
  | any((.ids // [])[]; . as $id
        | if endswith("/") then $check.id | startswith($id)
          else $check.id == $id or ($check.id | startswith($id + "/")) end)
    or (.metrics != null and $parts[0] == "limit" and ($metrics[$parts[1] // ""] != null) and (.metrics as $m | $metrics[$parts[1]] | test($m)));

# A check is the first criterion's that it belongs to.
def place($metrics): . as $check | first(criteria[] | select(belongs($check; $metrics)) | .id) // "other";

def worst: min_by(.status | first_screen::gravity);

# A criterion is met where something was judged and nothing was found wanting. What TCP met speaks of RDMA's fabric only where
# nothing else was measured.
def state:
  if length == 0 then "not judged"
  else
    map(.status) as $all
    | if $all | index(["fail"]) != null then "not met"
      elif $all | index(["inconclusive"]) != null then "not judged"
      elif $all | index(["advisory"]) != null then "not met"
      elif any(.[]; .status == "pass" and .beside != true) then "met"
      else "not judged" end
  end;

def told: "\(.title): \(.unit as $unit | .measured | f::value($unit))" + (if .limit == null then "" else " (limit: \(.unit as $unit | .limit | f::bound($unit)))" end);

# What the verdict's words are worth: an advisory finding does not change it, and the criterion is not met all the same.
def evidence($state):
  if length == 0 then "no check of this run speaks of it"
  else
    (map(select(.status == "pass")) | length) as $passed
    | (map(select(.status == "not_judged")) | length) as $open
    | ( if $state == "met" then
          # the one that came closest to its bound
          (map(select(.status == "pass" and .beside != true)) | (map(select(.limit != null and (.measured | type) == "number")) | max_by(first_screen::nearness)) // .[0]) | told
        else worst | told + (if .status == "advisory" then "; advisory" else "" end) end )
      + (if $passed + $open > 1 or $state != "met" then "; \($passed) of \(length) checks passed" + (if $open > 0 then ", \($open) not judged" else "" end) else "" end)
  end;

# How near to what is possible, beside whether a bound was kept: the best of RDMA's interface.
def beside($id; $measured):
  if $id != "throughput" then ""
  else
    ($measured | measured::best_bandwidth) as $best
    | if $best == null then "" else
        $best | measured::of_ceiling
        | if . == null then "; no ceiling of the link is known" else "; the best flow reached \(f::figure) % of its link's ceiling" end end
  end;

# Tests of TCP that stand beside RDMA's: {test: true}. A check's id ends in its test's name.
def beside_tests($measured):
  [$measured | measured::tests[] | {name, rdma: (.about // {} | measured::is_rdma)}] as $tests
  | if any($tests[]; .rdma) then [$tests[] | select(.rdma | not) | {key: .name, value: true}] | from_entries else {} end;

# $limits: inputs/limits.json. $measured: of view_measured.jq. -> [{id, title, state, evidence, advisory, checks}]
def judged($checks; $limits; $measured):
  ($limits.limits // [] | map({key: .id, value: .metric}) | from_entries) as $metrics
  | beside_tests($measured) as $beside
  | ($checks | map(. + {criterion: place($metrics), beside: any(.id | split("/")[1:][]; $beside[.] == true)})
     | group_by(.criterion) | map({key: .[0].criterion, value: .}) | from_entries) as $of
  | [ criteria[] | ($of[.id] // []) as $mine
      | select($mine != [] or .only_faults != true)
      | ($mine | state) as $state
      | { id, title, state: $state, evidence: (.id as $id | $mine | evidence($state) + beside($id; $measured) | f::cell),
          advisory: ($state == "not met" and all($mine[]; .status != "fail")) } ];

# Words alone: signs are empty boxes where a printer or browser has no font for them.
def sign: {"met": "met", "not met": "**not met**", "not judged": "not judged"}[.];

# The same words in every scope would let a loopback read like hardware.
def state_words($scope):
  (.state | sign) + (if .state == "met" and $scope != "hardware" then ", in \($scope) only" else "" end)
  + (if .advisory then " (advisory)" else "" end);

def headline($verdict):
  [.[] | select(.state == "not met") | .title | ascii_downcase] as $unmet
  | [.[] | select(.state == "not judged") | .title | ascii_downcase] as $open
  | ([.[] | select(.state == "met")] | length) as $met
  | if $verdict.scope != "hardware" then
      "**Not judged: this run is no proof of hardware** (scope \($verdict.scope)). What follows says how far it went."
    elif $unmet != [] or $verdict.verdict == "FAIL" then
      "**Not ready**: \($met) of \(length) criteria are met; not met: \($unmet | f::names(6))."
      + if $verdict.verdict == "PASS" then " What is not met is advisory: the verdict asks for what is required, readiness for all." else "" end
    elif $verdict.verdict != "PASS" then "**Not judged**: \($met) of \(length) criteria are met, and something kept the rest from being judged."
    elif $open != [] then "**Nothing speaks against it, and not everything was asked**: \($met) of \(length) criteria are met; not judged: \($open | f::names(6))."
    else "**Ready**: all \(length) criteria are met." end;
