# The checks of a soak. Input: {plan, limits, flows, hosts, groups, anomalies, state, passed_s}; an anomaly's check says where it belongs.
import "common" as c;
import "digits" as digits;
import "words" as words;
import "bounds" as bounds;
import "remedies" as remedies;

def worst: if any(.[]; .severity == "fail") then "fail" elif any(.[]; .severity == "inconclusive") then "inconclusive" elif length > 0 then "advisory" else "pass" end;

def evidence: [.[].evidence[]] | unique | .[:bounds::evidence_max];

# Anomalies -> a check: what the gravest says, and how many more. $well: what is said where there is none.
def of($id; $title; $well; $source; $remedy):
  . as $found
  | (worst) as $status
  | ([$found[] | select(.severity == ($status | if . == "fail" or . == "inconclusive" then . else "advisory" end))]) as $first
  | bounds::check("soak/" + $id; $title; $status)
  + { measured: (if $found == [] then $well
                 else "\($first[0].flow // $first[0].host): \($first[0].text)" + (if $first[0].start == null then "" else " at \($first[0].start)" end)
                      + (if ($found | length) > 1 then "; and \($found | length - 1) more" else "" end) end),
      source: $source, evidence: ($found | evidence), remedy: (if $found == [] then null else $remedy end) };

def hours: if . == null then "0 s" elif . >= 7200 then "\(. / 3600 | digits::fixed(1)) h" else "\(digits::fixed(0)) s" end;

def state:
  .plan.soak as $soak
  | bounds::check("soak/state"; "The soak lasted as long as planned"; if .state == "done" then "pass" else "inconclusive" end)
  + { measured: ({running: "it still runs", stopped: "it was stopped", short: "it lacks time", none: "nothing of it is there", done: "done"}[.state]
                 + ": \(.passed_s | hours) of \($soak.duration_s | hours)"),
      limit: {min: $soak.duration_s, max: null}, unit: "s", source: bounds::design("a soak is judged over its whole time"),
      remedy: {running: ("running" | remedies::for_soak), stopped: ("stopped" | remedies::for_soak),
               short: "See agent.json and progress.jsonl of the hosts whose flows lack time", none: "See agent.log of the hosts: the soak never began there"}[.state] };

def tests: [.flows[].test] | reduce .[] as $t ([]; if index([$t]) == null then . + [$t] else . end) | .[];

def limit_of($bounds; $metric): [$bounds[] | .[$metric] // [] | .[]] | unique_by([.bound, .severity]);
def words_of: map((if .bound.min != null then "at least \(.bound.min)" else "at most \(.bound.max)" end) + (if .severity == "advisory" then " (shown)" else "" end) + ": \(.source)") | unique | join("; ");

def coverage($all; $test):
  [.flows[] | select(.test == $test)] as $flows
  | ([$flows[].flow]) as $ids
  | [$all[] | select(.check == "coverage" and (.flow as $f | $ids | index([$f]) != null))] as $found
  | ([$flows[] | select(.state != "done")]) as $open
  | ($found | of("coverage/" + $test; "Every moment of test \($test) is in an interval or a gap";
      "\($flows | length | words::plural("flow")), \([$flows[].intervals] | add | words::plural("interval")), \([$flows[].passed_s // 0] | add | hours) measured";
      bounds::design("intervals and gaps follow each other, and together they are the planned time");
      "See the lines that are named, and agent.json of that host; measure again"))
  | if .status == "pass" and $open != [] then
      .status = "inconclusive" | .measured = "\($open | length) of \($flows | length | words::plural("flow")) not measured to the end: \($open[0].flow) is \($open[0].state)"
      | .evidence = ([$open[].flow] | .[:bounds::evidence_max]) | .remedy = (($open[0].state | if . == "waiting" then "running" else . end | remedies::for_soak) // "See agent.json and progress.jsonl of the hosts, and measure again")
    else . end;

# One check of everything that a flow's lines are held against; not judged where no flow has it.
def by_test($all; $bounds; $check; $test; $title; $metrics; $has; $remedy):
  [.flows[] | select(.test == $test)] as $flows
  | ([$flows[].flow]) as $ids
  | select(any($flows[]; .figures[$has] != null))
  | ([$flows[] | .flow as $f | $bounds[$f]]) as $of
  | ([$metrics[] | limit_of($of; .)[]]) as $limits
  | [$all[] | select(.check == $check and (.flow as $f | $ids | index([$f]) != null))]
  | of("\($check)/\($test)"; $title; (if $has == "bandwidth" then "lowest interval \([$flows[].figures.bandwidth.lowest_interval | select(. != null)] | min) Gb/s"
                                      else "highest p99 \([$flows[].figures.latency.p99_highest | select(. != null)] | max // "of no interval has samples enough")" end);
      (if $limits == [] then "no limit" else $limits | words_of end); $remedy)
  | if $limits == [] then .status = "not_judged" | .measured = "no limit speaks of it" else . end;

def course($all; $bounds; $test):
  [.groups[] | select(.group | startswith($test + "/"))] as $groups
  | [.flows[] | select(.test == $test)] as $flows
  | ([$flows[].flow]) as $ids
  | ([$flows[] | .flow as $f | $bounds[$f]]) as $of
  | (["soak.bandwidth_percent", "soak.p50_percent", "soak.p99_percent"] | map(limit_of($of; .)[]) | words_of) as $source
  | ([$groups[].drift[] | select(.judged)]) as $judged
  | ([$groups[].drift[] | select(.doubt != null)] | sort_by(.binding | not)) as $doubts
  | ([$groups[].drift[] | select(.judged | not)]) as $unjudged
  | any($flows[]; .scope == "hardware") as $hard
  | ( ("drift", "change") as $check
      | [$all[] | select(.check == $check and (.flow as $f | $ids | index([$f]) != null))]
      | of("\($check)/\($test)"; (if $check == "drift" then "No figure of test \($test) drifts" else "No figure of test \($test) steps" end);
          "\($judged | length | words::plural("course")) within their limits";
          $source + "; P. K. Sen 1968, A. N. Pettitt 1979, one false alarm in a hundred soaks (Bonferroni)";
          "Look at what changed at that time: logs of hosts and switches, temperatures, other load, routes")
      | if .status == "pass" and $judged == [] then
          .status = (if $hard then "inconclusive" else "not_judged" end) | .measured = ($unjudged[0].why // "no interval has a figure")
          | .remedy = (if $hard then "Soak for longer, or with a shorter interval" else null end)
        elif .status == "pass" and $check == "drift" and $doubts != [] then
          # where the limit is only shown, so is that nobody knows
          .status = (if $doubts[0].binding then "inconclusive" else "not_judged" end)
          | .measured = "\($doubts[0].doubt): cannot be told from a drift beyond its limit"
          | .remedy = (if $doubts[0].binding then "Soak for longer: the interval of a slope narrows with time" else null end)
        else . end );

def all_of($all; $check): [$all[] | select(.check == $check)];

def samples($all):
  .plan as $plan
  | .hosts as $hosts
  | .passed_s as $passed
  | [ $plan.hosts | keys_unsorted[] as $h | ([$hosts[] | select(.host == $h)][0]) as $told
      | if ($told.samples // 0) == 0 then "\($h) left no sample"
        elif $told.first_s > 2 * $plan.soak.interval_s + 5 or $told.last_s < $passed - 2 * $plan.soak.interval_s - 5 then
          "\($h) has samples from \($told.first_s) to \($told.last_s) s only"
        else empty end ] as $bad
  | all_of($all; "samples")
  | of("samples"; "Every host was looked at, all the time"; "\([$hosts[].samples] | add) samples of \($hosts | length | words::plural("host"))";
      bounds::design("counters, memory, links and temperatures once an interval"); "See agent.json (samples_dropped) and progress.jsonl of that host")
  | if $bad != [] then .status = "inconclusive" | .measured = ($bad | words::names(3)) | .evidence = ($bad | map(split(" ")[0]))
      | .remedy = "See agent.json (samples_dropped) and progress.jsonl of that host" else . end;

# Growth that could not be told in any one process is none that was not there. Handles need no time for it, as few come and go.
def growth($all; $id; $title; $source):
  [.hosts[].processes[] | .told = if $id == "memory" then .judged else .handles_low != null end] as $processes
  | ([$processes[] | select(.told)]) as $judged
  # of those that were not told the one that has most room to grow unseen
  | ([$processes[] | select(.told | not)] | max_by(.role == "measurer" or .role == "job")) as $least
  | all_of($all; $id)
  | of($id; $title; "\($judged | length) of \($processes | length) processes lived long enough to tell"
       + (if $judged == [] or $id != "memory" then "" else ", the steepest \([$judged[].mb_per_hour] | max) MB/h" end); $source;
       "Take the engine's version and the lines that are named to its developers; restart what grows")
  | if .status != "pass" or ($processes != [] and $least == null) then .
    else
      .status = "not_judged"
      | .measured = (if $processes == [] then "no process was seen" else .measured + "; \($least.role): \($least.why // "too few samples")" end)
    end;

def classes: { drops: "No device dropped a packet in the soak", errors: "No device saw a damaged packet in the soak", retransmissions: "RDMA sent next to nothing again in the soak",
  "out-of-sequence": "Next to no packet came out of order in the soak", link: "No link counted a fall in the soak", pcie: "No PCIe error in the soak",
  "tcp-retransmissions": "TCP sent less than one segment in a hundred again" };

# A silence is a stall from a length on that the suite says. Where a limit that must be kept is below it, nobody knows.
def stalls($all):
  .plan.soak.stall_s as $least
  | ([.bounds[] | .["soak.stall_s"] // [] | .[] | select(.severity == "required") | .bound.max | numbers] | min) as $limit
  | all_of($all; "stalls")
  | of("stalls"; "No flow stood still"; 0; "site policy: soak.stall_s, see docs/soak.md"; "See counters, pauses and logs at that time; other work on a core of software")
  | if .status == "fail" or .status == "inconclusive" or $limit == null or $least <= $limit then .
    else
      .status = "inconclusive" | .measured = "the limit is \($limit) s, and what is shorter than \($least) s was not told"
      | .remedy = "Give the suite a soak.stall of at most \($limit) s"
    end;

def counters($all):
  .hosts as $hosts
  | [$all[] | select(.check | startswith("counters/"))] as $found
  | ( ([$found[].check] | unique[]) as $check
      | ($check | ltrimstr("counters/")) as $class
      | [$found[] | select(.check == $check)]
      | of($check; classes[$class] // "Counters of \($class)"; ""; "IEEE 802.3, PCI Express: a healthy link has next to none within a soak; retransmissions: thirty times what a bit error ratio of 1e-12 damages";
           "See the other end of that time: switch ports, cables, and the other hosts") ),
    ( bounds::check("soak/counters"; "Counters of trouble, interval by interval"; if any($hosts[]; .samples > 1) then (if $found == [] then "pass" else "not_judged" end) else "not_judged" end)
      + { measured: (if $found != [] then "see the classes that moved" elif any($hosts[]; .samples > 1) then "none moved" else "no two samples of a host" end),
          source: "IEEE 802.3, PCI Express: a healthy link has next to none within a soak" } );

def all:
  .anomalies as $all
  | .bounds as $bounds
  | state,
    ( tests as $test | coverage($all; $test) ),
    ( all_of($all; "gaps") | of("gaps"; "No connection was lost"; 0; "site policy: a connection that is lost in a soak will be lost in production";
        "See the logs of both hosts and of the switches at that time") ),
    stalls($all),
    ( tests as $test
      | by_test($all; $bounds; "interval"; $test; "No interval of test \($test) far below the others"; ["soak.interval_share", "soak.window_share", "soak.interval_gbit_s"]; "bandwidth";
          "Look at that time into the logs of both hosts and of the switches (link, pause storms, other traffic)"),
        by_test($all; $bounds; "latency"; $test; "No tail of an interval of test \($test) far above the others"; ["soak.p99_us", "soak.p99_times"]; "latency";
          "Look for other load and pauses at that time on both hosts, and for retransmissions"),
        course($all; $bounds; $test) ),
    growth($all; "memory"; "No process of Perch grows by more than 1 MB/h"; "design, a process that grows by more does not last"),
    growth($all; "handles"; "No process of Perch gathers handles"; "design, handles that only grow run out"),
    counters($all),
    ( any(.flows[]; .figures.checked_bytes != null) as $verified
      | all_of($all; "integrity") | of("integrity"; "No payload was corrupted in the soak"; 0; bounds::design("one bad byte is a failure"); "Take the offset, the time and the pattern to whoever knows NIC, memory and switches; do not use this fabric")
      | if $verified or .status != "pass" then . else .status = "not_judged" | .measured = "no flow verifies its payload" end ),
    ( any(.hosts[]; .samples > 1) as $seen | all_of($all; "links") | of("links"; "No link changed its state"; 0; "IEEE 802.3: a link that is well stays up"; "Replace cable and transceiver of that port, and see what the switch says of it")
      | if $seen or .status != "pass" then . else .status = "not_judged" | .measured = "no two samples of a host" end ),
    ( all_of($all; "clock") | of("clock"; "No clock was set during the soak"; 0; "RFC 5905: a clock that is off by 128 ms is stepped"; "Have one time server keep the hosts (systemctl enable --now chronyd): dates of logs and of anomalies do not fit together there") ),
    ( all_of($all; "reboots") | of("reboots"; "No host was booted anew"; 0; "site policy: a host of a fabric stays up"; "See why it went down (journalctl -b -1)") ),
    ( all_of($all; "rate") | of("rate"; "The pace that was asked for was kept"; "within 1 %"; bounds::design("a bandwidth cap is kept within 1 %"); "Report it with the lines that are named; where less was sent, the fabric could not carry the pace") ),
    ( . as $all_of_it | all_of($all; "sum") | of("sum"; "The whole of each flow is the sum of its intervals"; "\([$all_of_it.flows[] | select(.state == "done" or .state == "stopped")] | length | words::plural("flow"))"; bounds::design("nothing is averaged away"); "Files were edited, damaged or mixed up: measure again") ),
    ( ([.flows[].in_file] | add) as $n | all_of($all; "lines") | of("lines"; "Every line of the flows can be used"; "\($n) lines"; bounds::design("a half line at the end is tolerated, no other"); "See the named lines; was the disk full (dropped lines)?") ),
    samples($all);
