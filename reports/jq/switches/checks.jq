# Switches as readings.jq made rows of them -> findings, as host_check's are. perch/checks/switches.py makes checks of them: a switch that
# could not be read, and a port that was not found (`open`), leave them INCONCLUSIVE whatever the scope.
import "switches/readings" as switch;
import "common" as c;

# The words of a finding: the claim where it is as wanted, and the fault where it is not.
def words:
  { answers: ["every command was answered", "a command was not answered"],
    drops: ["no drop in lossless queues", "drops in lossless queues"],
    "drops-elsewhere": ["no drop in other queues", "drops in other queues"],
    discards: ["no packet discarded outside the queues", "packets discarded outside the queues"],
    pfc: ["PFC is on for the lossless priorities", "PFC is off for a lossless priority"],
    "pause-storms": ["no pause storm", "pause storms"],
    errors: ["CRC or symbol errors are rare", "too many CRC or symbol errors"],
    "link-up": ["each port is up", "a port is down"],
    "link-speed": ["ports and hosts have the same speed", "a port and its host differ in speed"] };

def finding($id; $status; $severity; $found; $wanted; $why; $remedy; $source):
  {id: $id, status: $status, severity: $severity, found: $found, wanted: $wanted, why: $why, remedy: $remedy, source: $source, value: null, open: false}
  + if $status == "ok" then {title: words[$id][0]} elif $status == "bad" then {title: words[$id][0], fault: words[$id][1]} else {} end;

def why_read: "the switch's drops and pauses during the run are unknown without it";
def design: "design, a switch that cannot be reached makes its checks inconclusive";

def reading:
  if .faults != [] then
    finding("answers"; "unknown"; "required"; (.faults[0:3] | map("\(.command): \(.why)") | join("; ")); "an answer to every command, before and after the run";
            why_read;
            (if .provider as $p | any(.faults[]; .why == switch::other_form($p)) then "Correct switch_check_provider, if it names another model"
             else "Log in to the switch with the inventory's settings (ansible_host, ansible_user, key) and run the command; roles/switch_check/README.md lists them" end); design)
    + {open: true}
  else finding("answers"; "ok"; "required"; "read before and after"; "read before and after the run"; why_read; null; design) end;

# Sum of a field over the queues chosen; null where one of them is not known or there is none.
def all_of($field): if length == 0 or any(.[]; .[$field] == null) then null else map(.[$field]) | add end;

# Of a port: the queues that must lose nothing. By the priorities that are wanted; else by those that have PFC; where neither
# is known, all.
def lossless($wanted):
  (if $wanted != [] then $wanted elif .priorities != null and .priorities != [] then .priorities else null end) as $p
  | [.queues[] | select($p == null or .priority == null and (.queue | test("lanes")) or (.priority as $q | $p | index([$q]) != null))];

# $lossy: the inventory says that the fabric may drop.
def dropped($wanted; $lossy):
  lossless($wanted) as $queues
  | (if $lossy then "advisory" else "required" end) as $severity
  | (if $lossy then "the inventory: perch_fabric_traits says that this fabric does so on purpose" else "site policy: lossless means no drop" end) as $source
  | ($queues | all_of("drops")) as $drops
  | "Give the lossless queue more buffer; let ECN marks begin before PFC pauses; check that the host's traffic uses this queue" as $remedy
  | "after one lost packet a message is sent again from there, or fails" as $why
  | ($queues | map(.queue) | join(", ")) as $names
  | if $drops == null then
      finding("drops"; "unknown"; $severity; (.lost[0] // (if $queues == [] then "no counter of the lossless queue" else "queue \($names): not known" end)); "0 in the lossless queues";
              $why; "Do not clear counters during a run; check that the switch counts drops by queue"; $source)
    elif $drops == 0 then finding("drops"; "ok"; $severity; "0"; "no packet dropped in the lossless queues"; $why; null; $source)
    else finding("drops"; "bad"; $severity; "\($drops | c::whole) packets in queue \($names)"; "0 in the lossless queues"; $why; $remedy; $source) end;

def dropped_elsewhere($wanted):
  (.queues - lossless($wanted)) | map(select((.drops // 0) > 0)) as $losing
  | if $losing == [] then empty
    else finding("drops-elsewhere"; "bad"; "advisory"; "\($losing | map(.drops) | add | c::whole) packets in queue \($losing | map(.queue) | join(", "))"; "0 in the other queues";
                 "traffic that was meant to be lossless may be in the wrong queue"; "Map DSCP or PCP of the host's traffic to the lossless priority, on host and switch";
                 "site policy: no drop during a run") end;

# Discards of the port beyond the drops of its queues and priority groups. They have no priority, and many are of frames that no
# path carries (VLAN, access list, MTU), so that they warn; what a lossless queue drops is counted by the queue.
def counted_by($groups): [.queues[] | select((.queue | startswith("priority group")) == $groups).drops | values] | add // 0;
def discarded:
  [ {way: "in", n: .errors.discards_in, counted: counted_by(true)}, {way: "out", n: .errors.discards_out, counted: counted_by(false)}
    | select(.n != null) | .n -= .counted ] as $known
  | [$known[] | select(.n > 0)] as $bad
  | "they may be of the lossless priority: only a queue's own count tells" as $why
  | if $known == [] then empty
    elif $bad == [] then finding("discards"; "ok"; "advisory"; "0"; "no packet discarded outside the queues"; $why; null; "site policy: no drop during a run")
    else finding("discards"; "bad"; "advisory"; "\($bad | map("\(.n | c::whole) packets \(.way)") | join(", "))"; "0 outside the queues"; $why;
                 "See why the port discards (show interface counters discards); check VLANs, access lists and MTU, then headroom of the lossless priority";
                 "site policy: no drop during a run") end;

def pfc($wanted; $ib):
  if $ib then empty
  elif $wanted == [] then
    finding("pfc"; "info"; "required"; "PFC on \(if .priorities == null then "unknown priorities" elif .priorities == [] then "no priority" else "priority \(.priorities | map(tostring) | join(", "))" end)";
            null; "the lossless priority is not known; set switch_check_priorities"; null; "switch_check_priorities")
  else
    ($wanted | map(tostring) | join(", ")) as $names
    | "a switch without PFC on this priority drops packets when its buffer is full" as $why
    | "Turn on PFC for priority \($names) on this port, or correct switch_check_priorities" as $remedy
    | if .priorities == null then finding("pfc"; "unknown"; "required"; "not known"; "PFC on priority \($names)"; $why; $remedy; "IEEE 802.1Q, priority-based flow control")
      elif $wanted - .priorities == [] then finding("pfc"; "ok"; "required"; "on"; "PFC on priority \($names)"; $why; null; "IEEE 802.1Q, priority-based flow control")
      else finding("pfc"; "bad"; "required"; (if .priorities == [] then "off" else "on priority \(.priorities | map(tostring) | join(", ")) only" end); "PFC on priority \($names)";
                   $why; $remedy; "IEEE 802.1Q, priority-based flow control") end
  end;

def storms($ib):
  if $ib then empty
  elif .storms == null and .lost != [] then
    finding("pause-storms"; "unknown"; "required"; .lost[0]; "no pause storm reported by the PFC watchdog"; "a pause storm stops all hosts behind the port";
            "Do not clear counters during a run"; "the switch's PFC watchdog")
  elif .storms == null then finding("pause-storms"; "info"; "advisory"; "the switch does not count pause storms"; null; "a pause storm stops all hosts behind the port"; null; "the switch's PFC watchdog")
  elif .storms == 0 then finding("pause-storms"; "ok"; "required"; "0"; "no pause storm reported by the PFC watchdog"; "a pause storm stops all hosts behind the port"; null; "the switch's PFC watchdog")
  else finding("pause-storms"; "bad"; "required"; "\(.storms | c::whole) during the run"; "0"; "a pause storm stops all hosts behind the port";
               "Find the host that cannot take its traffic: check its pause counters, PCIe, and stalled receivers"; "the switch's PFC watchdog") end;

# Of a link's bits so many may be wrong after FEC: ERROR_RATIO of perch/checks/counters.py has the reason. $seconds: of the run.
def broken($seconds):
  ([.errors.crc, .errors.symbol] | map(values)) as $known
  | ((.speed_gbit_s // 0) * 1e9 * ($seconds // 0) * 1e-15 | floor) as $allowed
  | "each error costs a packet, which must be sent again" as $why
  | "at most one CRC or symbol error in 1e15 bits" as $wanted
  | "IEEE Std 802.3ck, 802.3df: a healthy link has next to none" as $source
  | if $known == [] then finding("errors"; "unknown"; "required"; (.lost[0] // "no counter of errors"); $wanted; $why; "Do not clear counters during a run"; $source)
    elif ($known | add) <= $allowed then finding("errors"; "ok"; "required"; "\($known | add | c::whole)"; $wanted; $why; null; $source)
    else finding("errors"; "bad"; "required"; "\($known | add | c::whole) CRC or symbol errors"; $wanted; $why; "Clean or replace cable and transceiver of this port, on both ends"; $source) end;

# $host: {rates: [Gb/s of the interfaces that are measured]}; the host may not know them, as a loopback does not.
def link($host):
  (if .up == null then finding("link-up"; "unknown"; "required"; "not known"; "up before and after the run"; "a port that is down carries no traffic"; null; design)
   elif .up then finding("link-up"; "ok"; "required"; "up"; "up before and after the run"; "a port that is down carries no traffic"; null; design)
   else finding("link-up"; "bad"; "required"; "down"; "up before and after the run"; "a port that is down carries no traffic"; "Check cable and configuration of the port, or correct switch_check_ports"; design) end),
  ( .speed_gbit_s as $speed
    | if $speed == null or $host.rates == [] then empty
      elif any($host.rates[]; ($speed / . - 1 | fabs) < 0.05) then
        finding("link-speed"; "ok"; "required"; "\($speed | c::figure) Gb/s"; "the speed of the host's interface"; "both ends of a link must have the same speed"; null; "the host's environment.json")
      else finding("link-speed"; "bad"; "required"; "\($speed | c::figure) Gb/s"; "\($host.rates | map(c::figure) | join(" or ")) Gb/s, as on the host's interface";
                   "this is not the host's port, or the link came up slower"; "Correct switch_check_ports, or check cable and transceiver"; "the host's environment.json") end );

# Shown, and nothing wanted of it: the largest of all ports is named.
def shown($id; $value; $unit; $why): finding($id; "info"; "advisory"; null; null; $why; null; "counters of the switch") + {value: $value, unit: $unit};
def figures:
  shown("utilisation"; .utilisation_percent; "%"; "share of the port's speed, averaged between the two readings"),
  shown("ecn-marks"; ([.queues[].ecn_marked | values] | if . == [] then null else add end); "packets"; "marks slow senders down before PFC has to pause them"),
  shown("pause-frames"; ([.pause.rx, .pause.tx] | map(values) | if . == [] then null else add end); "frames"; "sent and received");

# From the weakest to the strongest word for what figures are worth.
def scopes: ["simulated", "software", "imported", "hardware"];
def weakest: . as $have | first(scopes[] as $s | select($have | index([$s]) != null) | $s) // "software";

# One switch -> findings with switch, device (the port), host and scope.
def findings($hosts):
  . as $s
  | ($s.provider == "infiniband") as $ib
  | ( reading | . + {switch: $s.name, device: null, scope: $s.scope} ),
    ( select($s.faults == []) | $s.not_found[]
      | finding("ports"; "unknown"; "required"; "the switch has no port \(.port)"; "every port that switch_check_ports names"; why_read;
                "Correct switch_check_ports of \($s.name)"; "design, a port that is not found makes its checks inconclusive")
        + {switch: $s.name, device: .port, host: .host, scope: $s.scope, open: true} ),
    ( select($s.faults == []) | $s.rows[] | . as $row | ($hosts[.host]) as $host
      | ( link($host), dropped($s.priorities; $host.lossless == false), dropped_elsewhere($s.priorities), discarded, pfc($s.priorities; $ib), storms($ib),
          broken($s.seconds), figures )
      | . + {switch: $s.name, device: $row.port, host: $row.host, scope: ([$s.scope, $host.scope] | weakest)} );
