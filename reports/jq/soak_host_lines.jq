# Anomalies that single samples of a host show: holes, boots, the clock, links, counters. Input: the samples, in order.
import "common" as c;
import "digits" as digits;
import "bounds" as bounds;
import "words" as words;
import "events" as events;
import "soak_bounds" as limits;

def anomaly($kind; $check; $severity): {$kind, $check, $severity, flow: null, s: null, e: null, since_soak: true, messages: null, value: null, unit: null, lines: []};
def fact($kind; $check; $severity; $d): anomaly($kind; $check; $severity) + {s: $d.start_s, e: $d.end_s, lines: [$d.line]};

# A half line at the end is what a power cut leaves.
def faults($all):
  ($all | length) as $n
  | range(0; $n) as $i | $all[$i]
  | select(.kind == "fault" and ($i == $n - 1 and .why == "no line of JSON" | not))
  | anomaly("damaged"; "samples"; "inconclusive") + {lines: [.line], text: "line \(.line) of its samples cannot be used: \(.why)"};

# One sample an interval; where one is missing, nobody knows what counters and memory did when.
def holes($interval):
  .[] | select(.end_s - .start_s > 2 * $interval + 1 and (.reset | not))
  | fact("host"; "samples"; "inconclusive"; .) + {value: (.end_s - .start_s | c::rounded), unit: "s", text: "no sample for \(.end_s - .start_s | digits::fixed(0)) s"};

def reboots:
  .[] | select(.reset)
  | fact("reboot"; "reboots"; "fail"; .) + {value: (.end_s - .start_s | c::rounded), unit: "s", text: "the host was booted anew; nothing is known of \(.end_s - .start_s | digits::fixed(0)) s"};

# uptime counts in hundredths, NTP slews by 500 ppm at most (RFC 5905).
def clock($bounds):
  .[] | select(.step_s != null)
  | . as $d
  | ((.step_s | fabs) - 0.02 - 5e-4 * (.end_s - .start_s)) as $stepped
  | select($stepped > 0)
  | $bounds | limits::broken("soak.clock_s"; $stepped)
  | fact("clock"; "clock"; .severity; $d) + {value: $d.step_s, unit: "s", text: "the clock on the wall was set by \($d.step_s | digits::fixed(3)) s"};

def links:
  .[] | . as $d | .links | to_entries[] | select(.value.flaps != 0)
  | fact("link"; "links"; "fail"; $d) + {value: .value.flaps, unit: "changes",
      text: (if .value.operstate == null then "\(.key) is not there any more" else "the link of \(.key) changed \(.value.flaps | words::plural("time")), and is \(.value.operstate)" end)};

# A counter that is missing now and then is compared with its last reading; of one that stays away nobody knows.
def absent:
  .[-1] | select((.absent // []) != [])
  | fact("host"; "samples"; "inconclusive"; .) + {value: (.absent | length), unit: "counters", text: "\(.absent | words::names(3)) not read any more: what they counted since is not known"};

# Its own count of what neither disk nor memory had room for goes on over restarts.
def dropped:
  . as $all
  | range(0; length) as $i | $all[$i] | select((.dropped // 0) != (if $i == 0 then 0 else $all[$i - 1].dropped // 0 end))
  | fact("dropped"; "samples"; "inconclusive"; .) + {value: .dropped, unit: "samples", text: "\(.dropped | words::plural("sample")) before this one dropped, as disk and memory were full"};

# Which classes are anomalies, and from how many on; pauses and marks are how a network shares, what the stack drops may be nobody's.
def bad($class; $scope):
  .events[$class] as $n
  | if $n == 0 then false
    elif $class == "tcp-retransmissions" then $n != null and ($n * 100 > (.packets // 0)) and $n > 100 # one segment in a hundred: site policy
    elif $class | IN("pause", "congestion", "host-drops", "pcie-corrected") then false
    elif $n == null then true
    elif $class | bounds::is_rare then $n * 1e6 > bounds::rare_ppm * (.packets // 0)
    else true end;

# Neighbouring samples in which the same class moved are one anomaly. On software a card's counters are a virtual one's.
def counters($scope):
  . as $all
  | [$all[].events | keys_unsorted[]] | unique[] as $class
  | [range(0; $all | length) as $i | select($all[$i] | has("events") and (.events | has($class)) and bad($class; $scope)) | $i]
  | reduce .[] as $i ([]; if length > 0 and .[-1][-1] == $i - 1 then .[:-1] + [.[-1] + [$i]] else . + [[$i]] end)
  | .[]
  | [$all[.[]]] as $d
  | ([$d[].events[$class]] | if any(.[]; . == null) then null else add end) as $sum
  | ([$d[].moved | keys_unsorted[]] | unique | map(select(events::class(split("/")[-1]) == $class))) as $names
  | anomaly("counter"; "counters/" + $class; if $sum == null then "inconclusive" elif $scope == "hardware" and $class != "tcp-retransmissions" then "fail" else "advisory" end)
  + { s: $d[0].start_s, e: $d[-1].end_s, lines: [$d[].line | select(. != null)][:20], value: $sum, unit: "events",
      text: (if $sum == null then "a counter of \($class) was reset, has wrapped, is full or was not read before" else "\($sum) \($class)" + (if $names == [] then "" else " (\($names | words::names(4)))" end) end) };
