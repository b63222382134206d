# State of tally.jq -> the checks of the verdict. Each check says what was looked at, what was found and what to do;
# one that cannot apply is `not_judged` with its reason in `measured`.
import "common" as c;
import "planned" as planned;
import "host_status" as host_status;
import "tally" as tally;
import "limits" as bounds;
import "remedies" as remedies;
import "words" as words;

def check($id; $title; $status):
  { id: $id, title: $title, status: $status, measured: null, limit: null, unit: null, source: null, evidence: [], remedy: null };

def design($section): "design, " + $section;

# Of a soak what its agents say of it as long as it is not over, or that it was stopped; else null.
def soak_state($plan; $hosts):
  if $plan.soak == null then null
  else [$plan.hosts | keys_unsorted[] | $hosts[.].agent.state] as $states | [("running", "stopped") | select(. as $s | $states | index([$s]) != null)][0] end;

def coverage($plan; $soak):
  ([$plan | planned::flows | .expect | length] | add) as $planned
  | tally::measured as $measured
  | ($plan | planned::idle_hosts) as $idle
  | check("coverage"; "Every planned record was measured" + (if $idle == [] then "" else ", on every host" end);
          if $measured == $planned and $planned > 0 and $idle == [] then "pass" else "inconclusive" end)
  + { measured: $measured, limit: {min: $planned, max: $planned}, unit: "records",
      source: design("coverage is counted in what the plan expects"),
      evidence: ($idle + ([tally::entries("missing").value.flow] | unique) | .[0:tally::evidence_max]),
      remedy: (if $idle != [] then "No flow uses \($idle[0:5] | join(", ")): see what was excluded, correct its perch_backends and perch_tools, "
                                   + "or take it out of the inventory"
               elif $measured == $planned then null else ($soak | remedies::for_soak) // "See the findings of the flows that are missing, and measure again" end) };

# What the hosts cannot do was left out of the plan: it is shown, and a plan of nothing else proves nothing.
def excluded($plan):
  ([$plan.excluded // [] | .[] | select(.nic == null).test] | unique) as $tests
  | any($plan | planned::flows; .backend != "null") as $real
  | if $tests == [] and $real then empty
    else
      check("excluded"; "Tests that were left out of the plan"; if $real then "not_judged" else "inconclusive" end)
      + { measured: ((if $real then "" else "nothing but the null backend was planned; left out: " end) + ($tests | join(", "))),
          source: design("what a suite asks beyond the hosts' means is listed"), evidence: ($tests | .[0:tally::evidence_max]),
          remedy: (if $real then null else "Give the hosts the backends and tools that the suite asks for, and plan again" end) }
    end;

# How many of its devices a host measures: always the first ones, a transfer as many as it has pairs. A flow that names none goes
# where the host's address lies, which is the first.
def nics_measured($plan):
  reduce ($plan | planned::flows | select(.backend != "null")) as $flow ({};
    ([$flow.expect[].pair | values] | max // 0 | . + 1) as $n
    | reduce ($flow.client, $flow.server) as $host (.; .[$host] = ([.[$host] // 0, $n] | max)));

def nics($plan):
  nics_measured($plan) as $measured
  | [$plan.hosts | to_entries[] | {host: .key, n: ($measured[.key] // 0), names: [.value.devices // [] | .[].name]} | select(.names != [])]
  | select(. != [])
  | (map(.names | length) | add) as $all
  | map(select(.n < (.names | length))) as $partly
  | check("nics"; "Every NIC was measured"; if $partly == [] then "pass" else "advisory" end)
  + { source: design("NICs that no flow uses are named"), evidence: ([$partly[].host] | .[0:tally::evidence_max]) }
  + if $partly == [] then {measured: $all, limit: {min: $all, max: null}, unit: "NICs"}
    else
      { measured: ([ $partly | group_by([.n, .names])[]
                     | "\(.[0].n) of \(.[0].names | length | words::plural("NIC")) measured on \([.[].host] | words::names(5)), "
                       + "not \(.[0].names[.[0].n:] | words::names(8))" ] | join("; ")),
        remedy: "Measure all of them with a suite of transfers (plan_suite=transfer-read-many-nics), or take them out of perch_devices" }
    end;

def host_check($host; $state; $is_soak):
  (if $state.agent == null then "its agent left no agent.json"
   elif $is_soak and $state.agent.state == "running" then "its agent still ran when its outputs were fetched" + ($state.agent.message | if . then ": \(.)" else "" end)
   elif $state.agent.state != "done" then
     "its agent ended in state \($state.agent.state)" + (if $state.agent.message then ": \($state.agent.message)" else "" end)
   elif $state.environment | not then "it left no environment.json"
   else null end) as $why
  | if $why == null then empty
    else check("host/" + $host; "Raw outputs of host \($host)"; "inconclusive")
      + {measured: $why, source: design("a verdict is drawn from the raw outputs of all hosts"), evidence: [$host],
         remedy: ((if $is_soak then $state.agent.state | strings else null end | remedies::for_soak)
                  // "Look at raw/\($host)/agent.log, or run the playbook again if the folder is missing")}
    end;

def is_imported($plan): any($plan | planned::flows; .import != null);

# Figures from elsewhere may fail a run, and never pass one: Perch saw neither path nor hosts, and cannot know what was kept back.
def imported($plan):
  [$plan | planned::flows | .import | select(. != null)] as $outputs
  | ([$outputs[].file] | unique) as $files
  | ([$outputs[].link | select(. != null)] | unique) as $links
  | if $outputs == [] then empty
    else
      check("imported"; "Perch measured everything itself"; "inconclusive")
      + { measured: ("\($outputs | length | words::plural("output")) of \($files | length | words::plural("file")) that nobody saw being measured: no path proof, "
                    + "no counters, no checks of hosts, and only what was handed in"
                    + ($links | map("; link of \(.rate_gbit_s) Gb/s (\(.source))") | join(""))),
          limit: {min: null, max: 0}, unit: "outputs", source: design("imported figures can fail a run, never pass it"),
          evidence: ($files | .[0:tally::evidence_max]),
          remedy: "Measure between the hosts with Perch (playbooks/site.yml) before they go into production" }
    end;

def hosts($plan; $hosts):
  [$plan.hosts | keys_unsorted[] | host_check(.; $hosts[.] // {}; $plan.soak != null)] as $bad
  | if is_imported($plan) then empty
    elif ($bad | length) > 0 then $bad[]
    else check("hosts"; "Raw outputs of every host"; "pass")
      + {measured: ($plan.hosts | length), limit: {min: ($plan.hosts | length), max: null}, unit: "hosts",
         source: design("a verdict is drawn from the raw outputs of all hosts")}
    end;

# A simulation of a device shows that Perch works, and nothing about the device: where the plan says hardware, it is none.
def simulation($plan):
  (reduce tally::entries("simulated") as $e ({}; .[$e.parts[0]] = true)) as $simulated
  | [$plan | planned::flows | select(.scope == "hardware" and $simulated[.id] != null) | .id] as $posing
  | if $simulated == {} then empty
    elif $posing == [] then
      check("simulated"; "Simulated results"; "not_judged")
      + { measured: "\($simulated | length | words::plural("flow")), all planned as simulated",
          source: design("software and simulated scopes are named") }
    else
      check("simulated"; "No simulation stands for hardware"; "inconclusive")
      + { measured: "\($posing | length | words::plural("flow")) planned as hardware ran on a simulated device",
          limit: {min: null, max: 0}, unit: "flows", source: design("scope: hardware, software, simulated"),
          evidence: ($posing | .[0:tally::evidence_max]),
          remedy: ("Unset FI_PROVIDER_PATH on the hosts and see that /sys/class/cxi lists the NIC, "
                   + "or plan these hosts with perch_scope: simulated") }
    end;

# Nor does software: where the plan says hardware and the output shows sockets or a soft device, no limit for hardware judged it. Sockets
# beside RDMA are planned as software, so records are counted, test by test: there are more of them than flows that were to be software.
def software($plan):
  (reduce ($plan | planned::flows | select(.scope != "hardware")) as $f ({}; .[$f.test] += ($f.expect | length))) as $planned
  | [ tally::entries("seen") | select(.parts[1] == "software" and .parts[4] == "ok") | {test: .parts[0], n: .value.n, evidence: .value.evidence} ]
  | [ group_by(.test)[] | {n: ((map(.n) | add) - ($planned[.[0].test] // 0)), evidence: [.[].evidence[]]} | select(.n > 0) ]
  | select(. != [])
  | check("software"; "No software stands for hardware"; "inconclusive")
  + { measured: "\(map(.n) | add | words::plural("record")) planned as hardware came over sockets or a device of software",
      limit: {min: null, max: 0}, unit: "records", source: design("scope: hardware, software, simulated"), evidence: (map(.evidence[]) | .[0:tally::evidence_max]),
      remedy: ("See which driver raw/HOST/environment.json names for the device (rdma_rxe and siw are software) and which provider the flow took; "
               + "name the card (perch_devices), or plan these hosts with perch_scope: software") };

# What does not apply to a host, in one check: a loopback has no link, an InfiniBand port no pause frames.
def not_applicable:
  select(length > 0)
  | check("host_check/not_applicable"; "Hosts: what does not apply to them"; "not_judged")
  + { measured: ([.[] | .id | gsub("-"; " ")] | unique | join(", ")),
      evidence: ([.[].host] | unique | .[0:tally::evidence_max]),
      source: design("a check that cannot apply is not judged, and shown") };

# One check for all hosts where all is well; one for each other thing that was found, with the hosts where it was.
def host_finding:
  .[0] as $one
  | ([.[].host] | unique) as $names
  | check("host_check/\($one.id)" + if $one.verdict == "pass" then ""
                                    else "/" + ([$names[0], $one.device | strings] | join("/")) end;
          "Hosts: \($one.id | gsub("-"; " "))"; $one.verdict)
  + { measured: (if $one.verdict == "pass" then "\($names | length | words::plural("host")): \($one.wanted // $one.found)"
                 else ($one | words::finding) + if $one.wanted == null then "" else "; wanted: \($one.wanted)" end end),
      source: "\($one.source): \($one.why)", evidence: ($names | .[0:tally::evidence_max]),
      remedy: (if $one.verdict == "pass" or $one.status == "info" then null else $one.remedy end) };

def host_findings($plan; $hosts):
  [ $plan.hosts | to_entries[] | .key as $host | .value.scope as $scope
    | ($hosts[$host].checks // [])[] | . + {host: $host, verdict: host_status::finding_status($scope)} ]
  | ([.[] | select(.status == "not_applicable" and .verdict == "not_judged")] | not_applicable),
    ( map(select(.status != "not_applicable" or .verdict != "not_judged"))
      | group_by([.id, .verdict, if .verdict == "pass" then "" else words::finding end])[] | host_finding );

# A host that owes checks, by the plan or by its fabric or the flows that use it, and left no answer, has been skipped.
def host_checks($plan; $hosts):
  ($plan | planned::cxi_hosts(planned::flows)) as $cxi
  | [ $plan.hosts | to_entries[] | select($hosts[.key].checks == null)
      | select($plan.host_checks == true or (.key as $name | .value + {cxi: $cxi[$name]} | planned::is_slingshot)) ] as $skipped
  | ( ($skipped | group_by(.value.scope == "hardware"))[]
      | check("host_check/skipped" + if .[0].value.scope == "hardware" then "" else "/simulated" end;
              "The hosts were checked";
              if .[0].value.scope == "hardware" then "inconclusive" else "not_judged" end)
      + { measured: ("no host_check.json of this run, of \(length | words::plural("host")): \(.[0].key): "
                    + ($hosts[.[0].key].unchecked // "there is none that can be read")),
          evidence: ([.[].key] | .[0:tally::evidence_max]),
          source: design("a verdict is drawn from the raw outputs of all hosts"),
          remedy: "Run the playbook with its role host_check, which leaves raw/HOST/host_check.json" } ),
    host_findings($plan; $hosts);

def flows($soak):
  ( tally::entries("flow")
    | check("flow/" + .parts[0]; "Flow \(.parts[0])"; .value.status)
    + { measured: ((if .value.code == null or .value.code == 0 or (.value.message | startswith("exit")) then "" else "code \(.value.code): " end) + .value.message),
        source: design("exit codes"), evidence: .value.evidence, remedy: ((if .value.code == null then $soak | remedies::for_soak else null end) // (.value.code | remedies::for_code)) } ),
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

# A required limit whose figure was not reported cannot pass; an advisory one only says so. Where there is no such thing (no
# ceiling of a loopback, no like flows) nothing is judged: the absolute limit beside a relative one is.
def limit_status($limit):
  if .broken > 0 then (if $limit.severity == "required" then "fail" else "advisory" end)
  elif .unknown > 0 and (.judged == 0 or $limit.severity == "required") then
    (if $limit.severity == "required" then "inconclusive" else "not_judged" end)
  elif .judged == 0 then "not_judged"
  else "pass" end;

def bound($limit): {min: $limit.bound.min, max: $limit.bound.max};

def limit_remedy($limit; $status):
  if $status == "pass" then null
  elif $status == "inconclusive" and $limit.bound.of == "ceiling" and .judged + .unknown > 0 and .why != null then
    "See that environment.json of both hosts tells rate_gbit_s of the interface (ethtool shows the speed; in a virtual machine nobody knows), and measure again"
  elif $status == "inconclusive" and $limit.bound.of == "baseline" then
    "Accept a run of this fabric as it is now (make accept RUN=), and measure again; until then only the absolute limits judge"
  else $limit.remedy end;

# Where a site's own file speaks in the set's place, the check's source says so, with what stood there before.
def origin($limit):
  def words: "\(.severity) \([.bound | (.min | values | "min \(.)"), (.max | values | "max \(.)")] | join(", "))"
             + (if .bound.of == null then "" else " of the \(.bound.of)" end) + " of \(.from)";
  if $limit.replaces == null then $limit.source
  else "\($limit.source) (the site's \($limit.from), in place of \($limit.replaces | words))" end;

def limit_check($limit; $foreign):
  ( if $limit.bound.of == "baseline" and $foreign != "" then
      .unknown += .judged | .judged = 0 | .broken = 0 | .why = "the baseline is of another fabric: \($foreign)"
    else . end )
  | limit_status($limit) as $status
  | check("limit/\($limit.id)/\(.test)"; "\($limit.title), test \(.test)"; $status)
  + { measured: (if .judged == 0 and .why != null then .why
                 elif .judged == 0 then "not reported by \(.unknown) records in scope"
                 elif $status == "inconclusive" then
                   "\(.unknown) of \(.unknown + .judged) records in scope do not report it" + if .why == null then "" else ": " + .why end
                 elif $limit.bound.of != null then .worst | c::rounded
                 else .worst end),
      limit: bound($limit), unit: $limit.unit, source: origin($limit),
      evidence: (if .broken > 0 then .evidence elif .at == null then [] else [.at] end),
      remedy: limit_remedy($limit; $status) };

# A site may take a limit out of its set. It is then not judged, and every verdict says so.
def removed_check:
  check("limit/" + .id; .title; "not_judged")
  + { measured: "removed by the site (\(.removed.file)): \(.removed.source)", limit: bound(.), unit,
      source: "\(.source) (\(.severity)\(if .from == null then "" else ", of \(.from)" end))",
      remedy: "Take it out of \(.removed.file) to have it judged again" };

# $foreign: how the accepted run's fabric differs from this one, or "".
def limits($limits; $foreign):
  ( tally::entries("limit").value | .limit as $id | limit_check(first($limits[] | select(.id == $id)); $foreign) ),
  ( ([tally::entries("limit").value.limit] | unique) as $used
    | $limits[]
    | if .removed != null then removed_check
      else
        select(bounds::is_agreement or bounds::is_soak | not) | select(.id as $id | $used | index([$id]) == null)
        | check("limit/" + .id; .title; "not_judged")
        + {measured: "no record in its scope", limit: bound(.), unit: .unit, source: origin(.)}
      end );

# A card has a rate that somebody can read: where nobody did, an impossible figure would not be seen. The sets for hardware
# have a required share of the ceiling, which is then INCONCLUSIVE.
def unknown_ceiling:
  first(tally::entries("ceiling").value) | .unknown | select(length > 0)
  | check("ceiling/unknown"; "Hardware whose ceiling is not known"; "not_judged")
  + { measured: "\(length)\(if length == tally::evidence_max then " or more" else "" end) records: neither the tool nor both hosts tell the link's rate (or its MTU)",
      source: design("ceiling of a link"), evidence: .,
      remedy: "See that environment.json of both hosts tells rate_gbit_s of the interface (ethtool shows the speed), and measure again" };

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
                   else "Treat \($unstable | length) of \(length) figures as unstable: stop other load, fix the CPU frequency "
                        + "and repeat" end) }
    end;

# Too few bytes on the device mean that they went another way, whatever the figures are worth. Too many mean that the
# device carried somebody else's, too: its counters then prove nothing on hardware, and elsewhere disturb at most.
# An RDMA device counts what it carries, a soft one, too: without its counters there is no proof in any scope.
def path_status($scope; $state; $rdma):
  if $state == "proven" then "pass"
  elif $state == "contradicted" then "fail"
  elif $scope == "hardware" or ($rdma and $state == "unknown") then "inconclusive"
  elif $state == "exceeded" then "advisory"
  else "not_judged" end;

def path_remedy($status; $scope; $state; $reason):
  if $state == "contradicted" then
    "Check route, device and provider of this flow (ip route get, --device, --provider): its bytes did not pass the claimed device"
  elif $state == "exceeded" then "Find what else uses the device on both hosts, stop it, and measure again"
  elif $reason // "" | startswith("nothing shows that") then
    "Do not accept the hardware on these figures. See why raw/HOST/environment.json has no driver of this device under rdma "
    + "(/sys/class/infiniband/DEVICE/device/driver on that host), and measure again"
  elif $status == "inconclusive" and $scope != "hardware" then
    "Name device and port (perch_devices), see that the agents can read /sys/class/infiniband/*/ports/*/{counters,hw_counters} "
    + "on both hosts, and measure again"
  elif $status == "inconclusive" then
    "Do not accept the hardware on these figures: nothing shows that the bytes used it. Name the devices (perch_devices), "
    + "look at /sys/class/infiniband/*/ports/*/counters on both hosts, and measure again"
  else null end;

# Who carried nothing has nothing to prove; a flow that is proven or cannot be is counted with its like.
def path_proof:
  [tally::entries("path") | {state: .parts[0], scope: .parts[1], rdma: (.parts[2] == "rdma"), value}] as $all
  | if $all == [] then
      check("path"; "The bytes took the claimed path"; "not_judged") + {measured: "no flow was measured", source: design("the path is proven")}
    else
      ( $all | group_by([.state, .scope])[] | select(.[0].state == "proven")
        | check("path/proven/\(.[0].scope)"; "The bytes took the claimed path (\(.[0].scope) scope)"; "pass")
        + {measured: (map(.value.n) | add), unit: "flows whose bytes both devices counted", source: design("the path is proven")} ),
      ( $all[] | select(.state != "proven")
        | path_status(.scope; .state; .rdma) as $status
        | check("path/" + (if $status == "not_judged" then "not_judged/" else "" end) + .value.evidence[0]; "The bytes took the claimed path (\(.scope) scope)"; $status)
        + { measured: ((if .state == "not_judged" then "\(.value.n | words::plural("flow")): " else "" end) + (.value.reason // .state)),
            source: design("the path is proven: claimed <= counted <= wire"), evidence: .value.evidence,
            remedy: path_remedy($status; .scope; .state; .value.reason) } )
    end;

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

# Both answered, and the limit that must be kept could not be: unlike settings, or a figure that one does not report.
def left_open($limits):
  map(select(.state == "not_judged" and .metric != "p99_us" and .limit != null
             and (.limit as $id | any($limits[]; .id == $id and .severity == "required"))));

# Of one operation and kind: the pair that is farthest apart, as a factor.
def agreement_check($rows; $limits):
  ($rows | map(select(.state != "not_judged"))) as $judged
  | ($judged | map(select(.state == "disagree"))) as $far
  | ($rows | left_open($limits)) as $open
  | $rows[0] as $one
  | "\($one.op) \($one.kind)\(if $one.bidirectional then ", both ways" else "" end), \($one.connection // "-")" as $what
  | check("agreement/\([$one.kind, $one.op, $one.connection // "-"] | join("-"))\(if $one.bidirectional then "-both" else "" end)";
          "The engine and \($one.peer // "perftest") agree: \($what)"; "not_judged")
  + if $far == [] and $open != [] then
      { status: "inconclusive", measured: $open[0].reason, source: design("a required limit that was not judged cannot pass"),
        evidence: ([$open[].evidence[]] | .[0:tally::evidence_max]),
        remedy: "Give both tests the same settings (the reason names them) and measure again" }
    elif $judged == [] then
      {measured: ($rows[0].reason), source: design("only equal definitions and settings are compared"), evidence: $rows[0].evidence}
    else
      ($judged | max_by([.ratio, 1 / .ratio] | max)) as $worst
      | first($limits[] | select(.id == $worst.limit)) as $limit
      | { status: (if $far == [] then "pass" elif $limit.severity == "required" then "fail" else "advisory" end),
          measured: $worst.ratio, limit: {min: $limit.bound.min, max: $limit.bound.max}, unit: $limit.unit, source: $limit.source,
          evidence: (if $far == [] then $worst.evidence else [$far[].evidence[]] | .[0:tally::evidence_max] end),
          remedy: (if $far == [] then null else $limit.remedy end) }
    end;

def agreement($agreement; $limits):
  ( $agreement.rows | group_by([.kind, .op, .connection, .bidirectional])[] | agreement_check(.; $limits) ),
  ( $agreement.alone[] | select(.side != "engine")
    | check("agreement/\(.kind)-\(.op)-alone";
            "The engine and \(if .side == "cxi" then "the cxi tools" else .side end) agree: \(.op) \(.kind)";
            "not_judged")
      + {measured: "the engine measured none between the same hosts with the same connection and size", source: design("cross-checks")} );

def definitions($comparison):
  check("definitions"; "Only equal definitions are compared"; if ($comparison.refused | length) == 0 then "pass" else "not_judged" end)
  + {measured: (if ($comparison.refused | length) == 0 then "\($comparison.rows | length) comparisons"
                else "not compared: " + ([$comparison.refused[].reason] | unique | join("; ")) end),
     source: design("records with different definitions are never compared")};

def all($plan; $hosts; $limits; $foreign; $comparison; $agreement):
  soak_state($plan; $hosts) as $soak
  | [ coverage($plan; $soak), imported($plan), excluded($plan), nics($plan), hosts($plan; $hosts), simulation($plan), software($plan), host_checks($plan; $hosts),
    flows($soak), integrity, limits($limits; $foreign), ceiling, unknown_ceiling, repeatability, path_proof, cross_check,
    agreement($agreement; $limits),
    definitions($comparison) ];
