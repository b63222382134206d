# The last step of a verdict: what evaluated.jq gathered -> checks of counters before and after, of the clocks of both ends, of
# intervals and tails; and the word, from all checks. Input: the verdict as verdict.jq leaves it, with `gathered`.
import "common" as c;
import "bounds" as bounds;
import "words" as words;
import "word" as word;

def title:
  { drops: "No device dropped a packet", errors: "No device saw a damaged packet",
    retransmissions: "RDMA sent next to nothing again", "out-of-sequence": "Next to no packet came out of order",
    link: "No link went down", pcie: "No PCIe error", pause: "Pauses for flow control", congestion: "Congestion marks and notices",
    "host-drops": "Packets that no program of the host took", "pcie-corrected": "PCIe errors that were corrected" };

# Pauses and marks are how a network shares; what the host's stack drops may be nobody's; what was corrected did no harm.
def shown_only: . == "pause" or . == "congestion" or . == "host-drops" or . == "pcie-corrected";

# What each device of a hardware flow must count, or nothing is known of the way. Not every driver knows the others.
def owed: ["drops", "errors", "retransmissions", "link"];

def remedy:
  { drops: "Give the lossless class buffer on this device and on every switch of the way (PFC, ECN), and see that the receiver keeps up",
    errors: "Clean or replace cable and transceiver of this port on both ends; measure again",
    retransmissions: "Look for drops on hosts and switches of the way (ethtool -S, rdma statistic show), and for hosts that are too busy to answer",
    "out-of-sequence": "Look for drops on the way, and for switches that spread one connection's packets over several paths",
    link: "See the kernel's log of that time; replace cable and transceiver, and see what the switch says of the port",
    pcie: "See dmesg for AER; reseat the card, try another slot, and compare the link's width and speed with the card's",
    pause: "Look who pauses whom: a receiver that is slow (PCIe, memory) or a switch that is full; a little is no fault",
    congestion: "Look for another sender into the same port; between two hosts alone, marks begin too early (ECN thresholds)",
    "host-drops": "See what arrives there beside the measurement (LLDP, VLANs that are not set up): tcpdump, nstat",
    "pcie-corrected": "See dmesg for AER; a correctable error now and then becomes a fatal one: reseat the card" };

# Flows by what was counted of them: [{scope, clock, classes, n, evidence}].
def counted: [.counted[] | {scope: .parts[0], clock: .parts[1], classes: (.parts[2] | fromjson), n: .value.n, evidence: .value.evidence}];

def class_check($class; $counted):
  ([$counted[] | select(.classes | index([$class]) != null) | .n] | add // 0) as $flows
  | [.event[] | select(.parts[0] == $class and .parts[2] == "") | {scope: .parts[1], value}] as $seen
  | [$seen[] | select(.value.bad > 0)] as $bad
  | ($bad | map(select(.scope == "hardware"))) as $hard
  | (if $hard != [] then $hard elif $bad != [] then $bad else $seen end | max_by(.value.worst)) as $worst
  | (if $bad == [] then (if $flows == 0 then "not_judged" else "pass" end)
     elif $hard != [] and ($class | shown_only | not) then "fail" else "advisory" end) as $status
  | bounds::check("counters/" + $class; title[$class]; $status)
  + ( if $status == "not_judged" then {measured: "no device of these flows counts it, or none was read"}
      else { measured: (if $worst == null then 0
                        else "\($worst.value.sum) in \($worst.value.n | words::plural("flow")), \($worst.value.at)"
                             + (if $worst.value.ppm then "; at most \($worst.value.worst) in a million packets" else "" end) end),
             limit: {min: null, max: (if $class | bounds::is_rare then bounds::rare_ppm else 0 end)},
             unit: (if $class | bounds::is_rare then "in a million packets" else "events" end) } end )
  + { source: (if $class | bounds::is_rare then "arithmetic: thirty times what a bit error ratio of 1e-12 damages (IEEE Std 802.3)"
               elif $class == "drops" then "site policy: lossless means no drop"
               elif $class | shown_only then "site policy: shown, as it explains other findings"
               else "IEEE 802.3, PCI Express: a healthy link has next to none within a run" end),
      evidence: ($bad | map(.value.evidence[]) | .[:bounds::evidence_max]),
      remedy: (if $bad == [] then null else remedy[$class] end) };

# Counters that went backwards, stand still or are not there prove nothing.
def reset:
  [.event[] | select(.parts[2] == "reset")] as $reset
  | if $reset == [] then empty
    else
      bounds::check("counters/reset"; "No counter was reset during a flow"; "inconclusive")
      + { measured: ([$reset[] | "\(.parts[0]): \(.value.at)"] | words::names(4)), evidence: ([$reset[].value.evidence[]] | unique | .[:bounds::evidence_max]),
          source: bounds::design("counters are differences over a flow"),
          remedy: "Clear no counters during a run, and those that are full before it (perfquery -R, or the driver); then measure again" }
    end;

def missing($counted):
  [ $counted[] | select(.scope == "hardware") | . + {without: (owed - .classes)} | select(.without != []) ] as $blind
  | if $blind == [] then empty
    else
      bounds::check("counters/missing"; "The devices count what goes wrong"; "inconclusive")
      + { measured: "\([$blind[].n] | add | words::plural("flow")) on hardware whose devices count no \([$blind[].without[]] | unique | words::names(4))",
          limit: {min: null, max: 0}, unit: "flows", evidence: ([$blind[].evidence[]] | .[:bounds::evidence_max]),
          source: bounds::design("never a PASS by omission"),
          remedy: "See that the agents can read /sys/class/infiniband/*/ports/*/{counters,hw_counters} and /sys/class/net/*/statistics on both hosts" }
    end;

def still($counted):
  [.stale[]] as $stale
  | ([$counted[] | select(.classes != []) | .n] | add // 0) as $flows
  | if $stale != [] then
      bounds::check("counters/still"; "Counters move with the traffic"; "inconclusive")
      + { measured: ($stale[0].value + if ($stale | length) > 1 then ", and \($stale | length - 1) more" else "" end),
          source: "arithmetic: no byte goes without a packet", evidence: ($stale | map(.parts[0]) | .[:bounds::evidence_max]),
          remedy: "Do not trust this device's counters: read them by hand beside a transfer (ip -s link, perfquery), and update its driver" }
    elif $flows == 0 then empty
    else
      bounds::check("counters/still"; "Counters move with the traffic"; "pass")
      + {measured: $flows, unit: "flows", source: "arithmetic: no byte goes without a packet"}
    end;

# Within which logs and readings of two hosts can be laid beside each other, as the hosts' own check has it
# (machine_clock.jq); and how far off a file can no longer be told from one of another run (host_check.jq).
def clock_s: 1;
def clock_lost_s: 300;

def clock($counted):
  ([$counted[] | select(.clock != "") | .n] | add // 0) as $told
  | [.skew[]] as $skew
  | ($skew | max_by(.value.v | fabs)) as $worst
  | ($worst.value.v // 0 | fabs) as $most
  | bounds::check("clock/ends"; "The clocks of a flow's ends agree";
      if $told == 0 then "not_judged" elif $most > clock_lost_s then "inconclusive" elif $most > clock_s then "advisory" else "pass" end)
  + ( if $told == 0 then {measured: "no flow's ends told their times"}
      elif $most > clock_s then
        {measured: "\($worst.parts[1]) is \($most) s \(if $worst.value.v > 0 then "ahead of" else "behind" end) \($worst.parts[0]), or one of them was set meanwhile"}
      else {measured: $most} end )
  + { limit: {min: null, max: clock_s}, unit: "s", source: "site policy, as of the hosts' clocks; beyond \(clock_lost_s) s nothing shows that the files are of this run",
      evidence: ($skew | map(select((.value.v | fabs) > clock_s) | .value.flow) | .[:bounds::evidence_max]),
      remedy: (if $most > clock_s then "Have one time server keep both hosts (systemctl enable --now chronyd), and measure again" else null end) };

# The worst interval and the longest tail of a test; on software advisory, where a machine's other work shows.
def shapes:
  .shape[]
  | .parts[0] as $name | .parts[1] as $test
  | (if $name == "interval" then
       { title: "No interval far below the others, test \($test)", limit: {min: bounds::least_share, max: null},
         unit: "of the median interval", source: "site policy: a link that stands still for half of an interval is a fault, no noise",
         remedy: "Look at that time into the logs of both hosts and of the switches (link, pause storms, other traffic); to have the time of it, give the test in the suite the key interval (interval: 1s) and measure again; of a soak each anomaly has it" }
     else
       { title: "No tail far above the median, test \($test)", limit: {min: null, max: bounds::most_tail},
         unit: "times the median, \(.value.of | sub("_"; "."))", source: "site policy: a tail within an order of magnitude of the median",
         remedy: "Look for other load, power saving and interrupts on both hosts, and for pause frames and retransmissions on the way" }
     end) as $words
  | .value
  | bounds::check("\($name)/\($test)"; $words.title; if .hard > 0 then "fail" elif .broken > 0 then "advisory" else "pass" end)
  + { measured: (.worst | c::rounded), limit: $words.limit, unit: $words.unit, source: $words.source,
      evidence: (if .broken > 0 then .evidence else [.at] end), remedy: (if .broken > 0 then $words.remedy else null end) };

# Classes that nobody counts are named in one check.
def all:
  counted as $counted
  | [title | keys_unsorted[]] as $classes
  | [$classes[] as $class | class_check($class; $counted)] as $judged
  | ($judged[] | select(.status != "not_judged")),
    ( [$judged[] | select(.status == "not_judged") | .id | ltrimstr("counters/")] | select(. != [])
      | bounds::check("counters/not_counted"; "What no device of these flows counts"; "not_judged")
        + {measured: join(", "), source: bounds::design("a check that cannot apply is not judged, and shown")} ),
    reset, missing($counted), still($counted), clock($counted), shapes;

# ---- repeats of what fell outside -----------------------------------------------------------------------------------------

def pair: "\(.[0])/\(.[1])/\(.[2])";

# The id of the check that a key of tally.jq leads to: limit ID TEST, shape NAME TEST.
def check_id: if .[0] == "limit" then "limit/\(.[1])/\(.[2])" else "\(.[1])/\(.[2])" end;

# Only what fails: a required limit, a shape of hardware.
def grave($required): . as $k | if $k[0] == "limit" then $required | index([$k[1]]) != null else true end;

# No flow of these is cured by another go: its payload was corrupted, it was lost in the middle, or its figure cannot be.
def final:
  [ .checks[] | select(.status == "fail")
    | if .id | startswith("flow/") then .id | ltrimstr("flow/") elif .id == "ceiling" then .evidence[] else empty end
    | split("#")[0] | split("/")[0:3] | join("/") ]
  | reduce .[] as $pair ({}; .[$pair] = true);

def lost: [.coverage.missing[] | select(.status == "not_measured" and .code == 4) | .flow] | unique;

# [{test, client, server, why: [ids of checks]}] of the pairs that a repeat may cure.
def outside:
  .gathered.required as $required
  | final as $final
  | [ (.gathered.outside[] | select(.value and (.parts[3:] | grave($required))) | {of: .parts[0:3], why: (.parts[3:] | check_id)}),
      (lost[] | {of: split("/")[0:3], why: "flow/\(.)"}) ]
  | group_by(.of)
  | [ .[] | select($final[.[0].of | pair] == null) | {test: .[0].of[0], client: .[0].of[1], server: .[0].of[2], why: ([.[].why] | unique)} ];

# What each repeat of a figure said, in order.
def told: sort_by(.repeat) | map(.d.v | if . == null then "nothing" else c::rounded | tostring end) | join(", ");

# Why a pair was repeated at all, by its planned repeats alone.
def reason($first; $required; $lost; $flow_prefix):
  any(.[]; (.parts[4:] | grave($required)) and any(.value[]; .repeat < $first and .d.broken and .d.hard != false))
  or any($lost[]; startswith($flow_prefix));

def repeat_check($key; $repeated; $required; $lost):
  ($key | split("\t")) as $names
  | ($names | pair) as $name
  | [.gathered.again[] | select(.parts[0:3] == $names)] as $figures
  | ($figures | reason($repeated.first; $required; $lost; $name + "/")) as $reason
  | [$figures[] | select(any(.value[]; .d.broken)) | "\(.parts[4:] | check_id) at \(.parts[3]): \(.value | told)"] as $values
  | bounds::check("retry/" + $name; "Repeated, and judged on the median of all repeats: \($name)"; if $reason then "advisory" else "inconclusive" end)
  + { measured: (if $reason | not then "nothing of it fell outside, and all the same it was repeated"
                 else ([$values[0:3][], ($lost[] | select(startswith($name + "/")) | "\(.): lost before traffic")] | join("; "))
                      + (if ($values | length) > 3 then "; and \($values | length - 3) more" else "" end) end),
      source: bounds::design("outliers are repeated once, and all repeats are judged"),
      evidence: ($repeated.flows + [$lost[] | select(startswith($name + "/"))] | .[:bounds::evidence_max]),
      remedy: (if $reason then "One of several repeats fell outside: see the logs of both hosts of that time before relying on this pair"
               else "Remove plan.retry.json and raw/*/retry, and let reports/retry make it from the verdict" end) };

def retry_fault:
  if $retry_fault == "" then empty
  else bounds::check("retry/plan"; "The repeats are those of this run's verdict"; "inconclusive")
    + { measured: ("plan.retry.json: " + $retry_fault), evidence: ["plan.retry.json"], source: bounds::design("plan.retry.json is made from the verdict"),
        remedy: "Remove plan.retry.json and raw/*/retry, judge, and let reports/retry make it anew" } end;

# A flow that was lost before traffic, and both of whose repeats were measured whole, no longer keeps the run from a verdict.
def excused:
  .gathered.repeated as $repeated
  | ([.coverage.missing[].flow] | unique) as $missing
  | [ lost[] as $flow
      | $repeated[$flow | split("/")[0:3] | join("\t")]
      | select(. != null and all(.flows[]; . as $id | $missing | index([$id]) == null)) | $flow ];

def with_excused($excused):
  if $excused == [] then .
  else
    ([.coverage.missing[].flow] | unique) as $missing
    | .checks |= map(
        if .status != "inconclusive" then .
        elif .id == "coverage" and $missing - $excused == [] and .evidence - $excused == [] then
          .status = "pass" | .remedy = null | .measured = "\(.measured), and in repeats what was lost of \($excused | length | words::plural("flow"))"
        elif (.id | startswith("flow/")) and (.id | ltrimstr("flow/") | IN($excused[])) then .status = "advisory"
        else . end)
  end;

. as $all
| .gathered.repeated as $repeated
| lost as $lost
| (if $repeated == {} then outside else [] end) as $outside
| with_excused(if $repeated == {} then [] else excused end)
| .checks += [($all.gathered | all), retry_fault,
              ($repeated | to_entries[] | .key as $key | .value as $r | $all | repeat_check($key; $r; .gathered.required; $lost))]
| .verdict = (.checks | word::word)
| (if $outside == [] then . else .outside = {pairs: ($outside | length), of: .gathered.pairs, first: $outside[:500]} end)
| del(.gathered)
