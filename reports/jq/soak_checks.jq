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

# The bound that must be kept, and where bounds come from. Input: limits.
def most_of: [.[] | select(.severity == "required") | .bound.max | numbers] | min;
def sources: map(.source) | unique | join("; ");

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
  # a p99 needs its samples: flows of which no interval has one
  | ([$flows[] | select(.figures[$has] != null and (if $has == "bandwidth" then .figures.bandwidth.lowest_interval else .figures.latency.p99_highest end) == null) | .flow]) as $without
  | any($flows[]; .scope == "hardware") as $hard
  | [$all[] | select(.check == $check and (.flow as $f | $ids | index([$f]) != null))]
  | of("\($check)/\($test)"; $title; (if $has == "bandwidth" then "lowest interval \([$flows[].figures.bandwidth.lowest_interval | select(. != null)] | min) Gb/s"
                                      else "highest p99 \([$flows[].figures.latency.p99_highest | select(. != null)] | max)" end);
      (if $limits == [] then "no limit" else $limits | words_of end); $remedy)
  | if $limits == [] then .status = "not_judged" | .measured = "no limit speaks of it"
    # what was found in other flows stays
    elif $without != [] and (.status == "pass" or ($hard and .status == "advisory")) then
      .measured = (if .status == "advisory" then "\(.measured); " else "" end) + "no interval of \($without | words::names(3)) has \(if $has == "bandwidth" then "a figure" else "samples enough for a p99" end)"
      | .status = (if $hard then "inconclusive" else "not_judged" end) | .evidence = ($without | .[:bounds::evidence_max])
      | .remedy = (if $hard then "Give the suite a longer interval, or latency a higher rate: a p99 needs 1,000 samples" else null end)
    else . end;

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
def growth($all; $id; title):
  [.hosts[].processes[] | .told = if $id == "memory" then .judged else .handles_low != null end] as $processes
  | ([$processes[] | select(.told)]) as $judged
  # of those that were not told the one that has most room to grow unseen
  | ([$processes[] | select(.told | not)] | max_by(.role == "measurer" or .role == "job")) as $least
  | ([.hosts[].limits[$id] // [] | .[]] | unique) as $limits
  | ($limits | most_of) as $most
  | all_of($all; $id)
  | of($id; ($most | title); "\($judged | length) of \($processes | length) processes lived long enough to tell"
       + (if $judged == [] or $id != "memory" then "" else ", the steepest \([$judged[].mb_per_hour] | max) MB/h" end); $limits | sources;
       "Take the engine's version and the lines that are named to its developers; restart what grows")
  | if .status != "pass" or ($processes != [] and $least == null and $most != null) then .
    else
      .status = "not_judged"
      | .measured = (if $most == null then "no limit must be kept" elif $processes == [] then "no process was seen"
                     elif $id == "handles" and $least.handles_last == null then .measured + "; \($least.role): its handles were not read"
                     else .measured + "; \($least.role): \($least.why // "too few samples")" end)
    end;

def classes: { drops: "No device dropped a packet in the soak", errors: "No device saw a damaged packet in the soak", retransmissions: "RDMA sent next to nothing again in the soak",
  "out-of-sequence": "Next to no packet came out of order in the soak", link: "No link counted a fall in the soak", pcie: "No PCIe error in the soak",
  "tcp-retransmissions": "TCP sent less than one segment in a hundred again" };

# A silence is a stall from a length on that the suite says. Where a limit that must be kept is below it, nobody knows.
def stalls($all):
  .plan.soak.stall_s as $least
  | limit_of([.bounds[]]; "soak.stall_s") as $limits
  | ($limits | most_of) as $most
  | ([.flows[].stalls] | add // 0) as $n
  | ([.flows[].stall_s // 0] | add // 0) as $s
  | all_of($all; "stalls")
  | of("stalls"; "No flow stood still"; (if $n == 0 then 0 else "\($n | words::plural("stall")) of \($s | digits::fixed(3)) s together, none as long as its limit" end);
      ($limits | words_of) + "; docs/soak.md"; "See counters, pauses and logs at that time; other work on a core of software")
  | .title += (if $n == 0 or .status != "pass" then "" else " for as long as its limit" end)
  | if .status == "fail" or .status == "inconclusive" or $most == null or $least <= $most then .
    else
      .status = "inconclusive" | .measured = "the limit is \($most) s, and what is shorter than \($least) s was not told"
      | .remedy = "Give the suite a soak.stall of at most \($most) s"
    end;

def gaps($all):
  limit_of([.bounds[]]; "soak.gaps") as $limits
  | ([.flows[].gaps] | add // 0) as $n
  | ([.flows[].gap_s // 0] | add // 0) as $s
  | all_of($all; "gaps")
  | of("gaps"; (if $n > 0 and . == [] then "No more connections were lost than a flow may lose" else "No connection was lost" end);
      (if $n == 0 then 0 else "\($n) lost, \($s | digits::fixed(1)) s without one" end); $limits | words_of;
      "See the logs of both hosts and of the switches at that time");

# A pace has a limit for each flow that was asked for one.
def rate($all):
  limit_of([.bounds[]]; "soak.rate_percent") as $limits
  | all_of($all; "rate")
  | ([$limits[].bound.max | numbers] | min) as $most
  | of("rate"; "The pace that was asked for was kept"; "within \($most) %"; $limits | words_of;
      "Report it with the lines that are named; where less was sent, the fabric could not carry the pace")
  | if $most == null and .status == "pass" then .status = "not_judged" | .measured = "no limit speaks of it" else . end;

# Hosts that were looked at, and showed nothing of a kind (n of it): what nobody reads cannot move. {names, hard: whether one is of hardware}.
def unread(n): .plan.hosts as $of | [.hosts[] | select(.samples > 1 and n == 0) | .host] | {names: ., hard: any(.[]; $of[.].scope == "hardware")};
def unread_remedy: "See raw/HOST/samples.jsonl and agent.log there: are the inventory's perch_devices those that carry the traffic?";
def unread_status: if .hard then "inconclusive" else "not_judged" end;

def counters($all):
  .hosts as $hosts
  | unread(.watched) as $unread
  | [$all[] | select(.check | startswith("counters/"))] as $found
  | ( ([$found[].check] | unique[]) as $check
      | ($check | ltrimstr("counters/")) as $class
      | [$found[] | select(.check == $check)]
      | of($check; classes[$class] // "Counters of \($class)"; ""; "IEEE 802.3, PCI Express: a healthy link has next to none within a soak; retransmissions: thirty times what a bit error ratio of 1e-12 damages";
           "See the other end of that time: switch ports, cables, and the other hosts") ),
    ( bounds::check("soak/counters"; "Counters of trouble, interval by interval";
        if $unread.hard then "inconclusive" elif $found != [] or $unread.names != [] or any($hosts[]; .samples > 1) == false then "not_judged" else "pass" end)
      + { measured: (if $unread.names != [] then "none was ever read of \($unread.names | words::names(4))" elif $found != [] then "see the classes that moved"
                     elif any($hosts[]; .samples > 1) then "none of \([$hosts[].watched] | add) moved" else "no two samples of a host" end),
          source: "IEEE 802.3, PCI Express: a healthy link has next to none within a soak",
          remedy: (if $unread.hard then unread_remedy else null end) } );

def links($all):
  any(.hosts[]; .samples > 1) as $seen
  | unread(.links_read) as $unread
  | all_of($all; "links")
  | of("links"; "No link changed its state"; 0; "IEEE 802.3: a link that is well stays up"; "Replace cable and transceiver of that port, and see what the switch says of it")
  | if .status != "pass" and .status != "advisory" then .
    elif $unread.names != [] then
      .status = ($unread | unread_status) | .measured = "none was ever read of \($unread.names | words::names(4))" | .remedy = (if $unread.hard then unread_remedy else null end)
    elif $seen then . else .status = "not_judged" | .measured = "no two samples of a host" end;

def all:
  .anomalies as $all
  | .bounds as $bounds
  | state,
    ( tests as $test | coverage($all; $test) ),
    gaps($all),
    stalls($all),
    ( tests as $test
      | by_test($all; $bounds; "interval"; $test; "No interval of test \($test) far below the others"; ["soak.interval_share", "soak.window_share", "soak.interval_gbit_s"]; "bandwidth";
          "Look at that time into the logs of both hosts and of the switches (link, pause storms, other traffic)"),
        by_test($all; $bounds; "latency"; $test; "No tail of an interval of test \($test) far above the others"; ["soak.p99_us", "soak.p99_times"]; "latency";
          "Look for other load and pauses at that time on both hosts, and for retransmissions"),
        course($all; $bounds; $test) ),
    growth($all; "memory"; "No process of Perch grows" + if . == null then "" else " by more than \(.) MB/h" end),
    growth($all; "handles"; "No process of Perch gathers " + if . == 0 or . == null then "handles" else "more than \(.) handles an hour" end),
    counters($all),
    ( any(.flows[]; .figures.checked_bytes != null) as $verified
      | all_of($all; "integrity") | of("integrity"; "No payload was corrupted in the soak"; 0; bounds::design("one bad byte is a failure"); "Take the offset, the time and the pattern to whoever knows NIC, memory and switches; do not use this fabric")
      | if $verified or .status != "pass" then . else .status = "not_judged" | .measured = "no flow verifies its payload" end ),
    links($all),
    ( all_of($all; "clock") | of("clock"; "No clock was set during the soak"; 0; "RFC 5905: a clock that is off by 128 ms is stepped"; "Have one time server keep the hosts (systemctl enable --now chronyd): dates of logs and of anomalies do not fit together there") ),
    ( all_of($all; "reboots") | of("reboots"; "No host was booted anew"; 0; "site policy: a host of a fabric stays up"; "See why it went down (journalctl -b -1)") ),
    rate($all),
    ( . as $all_of_it | all_of($all; "sum") | of("sum"; "The whole of each flow is the sum of its intervals"; "\([$all_of_it.flows[] | select(.state == "done" or .state == "stopped")] | length | words::plural("flow"))"; bounds::design("nothing is averaged away"); "Files were edited, damaged or mixed up: measure again") ),
    ( ([.flows[].in_file] | add) as $n | all_of($all; "lines") | of("lines"; "Every line of the flows can be used"; "\($n) lines"; bounds::design("a half line at the end is tolerated, no other"); "See the named lines; was the disk full (dropped lines)?") ),
    samples($all);
