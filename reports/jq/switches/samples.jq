# Readings of switches while flows ran -> a line for each reading: what its switch's ports carried and lost since the reading
# before, or why that is not known. First input: {run}. Then for each switch {name, provider, ports: [{host, port,
# speed_gbit_s}]}, the ports that readings.jq found, and its readings, or null for a line that is none.
import "switches/readings" as switch;
import "common" as c;

# The command of each provider whose counters a rate is made of: of a port's bytes, and of its queues'.
def counted: { nxos: {port: "interfaces", queue: "queuing"}, eos: {port: "interfaces", queue: "queues"}, sonic: {port: "counters", queue: "counters"},
               cumulus: {port: "ethtool", queue: "qos"}, infiniband: {port: "counters", queue: "counters"} };

# The share by which a rate may be wrong: a counter was read at some moment of the wait for its answer. The sampler's pauses
# keep it at half of this (PAUSE_PER_ANSWER in plugins/action/perch_switch_samples.py); answers that are slower break it.
def late: 0.1;
# Seconds by which the controller's wall clock and monotonic clock may part between two readings (CLOSE_S in
# perch/model/moments.py).
def jump_s: 1;

def middle: (.asked_s + .answered_s) / 2;
def wait: .answered_s - .asked_s;

# Seconds between the answers of a command in two readings, and the share by which they may be wrong.
def span($a; $b; $command):
  $a.commands[$command] as $was | $b.commands[$command] as $is
  | (($is | middle) - ($was | middle)) as $seconds
  | {$seconds, within: (if $seconds > 0 then (($was | wait) + ($is | wait)) / 2 / $seconds else 1 end), waited: ([$was, $is] | map(wait) | max)};

# Why a reading cannot be used; null where it can.
def unusable($in):
  if . == null then "a line is not a reading"
  else switch::misplaced($in.run; $in.name; "during"; $in.provider)
    // ([ switch::faults(switch::required($in.provider) | with_entries(select(.key as $k | counted[$in.provider] | any(.[]; . == $k)))) ]
        | first | if . == null then null else "\(.command): \(.why)" end)
    // (if switch::ports_of($in.provider) == null then switch::other_form($in.provider) else null end)
  end;

# Why no rate can be made of the time between two readings that can be used; null where it can.
def unmeasured($a; $b; $spans):
  (($b.collected | switch::seconds) - ($a.collected | switch::seconds) - ($b.asked_s - $a.asked_s)) as $jump
  | if any($spans[]; .seconds <= 0) then "the reading is not later than the one before"
    elif ($jump | fabs) > jump_s then "the controller's clock jumped \($jump | c::figure) s"
    elif any($spans[]; .within > late) then "an answer took \($spans | map(.waited) | max | c::figure) s of \($b.asked_s - $a.asked_s | c::figure) s"
    else null end;

# Queues and port count the same bytes, but for a frame's ends: 4 of 64 bytes at most, and each to `late`. Where they differ,
# the switch has refreshed one of them at another time, as SONiC does its queues every 10 s.
def apart: 0.2;
def are_apart:
  .tx_mbit_s as $port | ([.queues[].mbit_s | values] | if . == [] then null else add end) as $queues
  | if $port == null or $queues == null or .speed_gbit_s == null then false
    else ($port - $queues | fabs) > apart * ([$port, $queues] | max) and ([$port, $queues] | max) > .speed_gbit_s * 10 end; # 1 %: it is of traffic

# What two readings say of a port; a rate that the port cannot have is none.
def row($a; $b; $spans):
  . as $of
  | ([$b[] | select(.port == $of.port)] | first) as $is | ([$a[] | select(.port == $of.port)] | first) as $was
  | {host, port, why: null} +
    if $is == null or $was == null then {why: "the switch did not tell of this port"}
    else
      ($is + {speed_gbit_s: $of.speed_gbit_s} | switch::port_row($was; $spans.port.seconds; $spans.queue.seconds)) as $row
      | ([$row.rx_mbit_s, $row.tx_mbit_s, $row.queues[].mbit_s] | map(values) | max) as $most
      | if $row.lost != [] then {why: $row.lost[0]}
        elif $most != null and $row.speed_gbit_s != null and $most > $row.speed_gbit_s * 1000 * (1 + late) then {why: "a counter grew faster than the port can carry"}
        elif $row | are_apart then $row + {queues: [], why: "the queues' counters are older or newer than the port's"}
        else $row end
    end;

def interval($in; $a; $b):
  (counted[$in.provider] | map_values(. as $command | span($a.reading; $b.reading; $command))) as $spans
  | unmeasured($a.reading; $b.reading; $spans) as $why
  | {$why, within: ($spans | map(.within) | max | c::rounded),
     rows: (if $why != null then [] else [$in.ports[] | row($a.ports; $b.ports; $spans)] end)};

.run as $run
| foreach inputs as $line ({};
    if $line.ports != null then {in: ($line + {$run})}
    else
      .was = .is | .is = {reading: $line, why: (.in as $in | $line | unusable($in))}
      | if .was.reading.begun != .is.reading.begun then .was = null else . end # no playbook was there in between
      | if .is.why == null then .is.ports = (.in.provider as $provider | $line | switch::ports_of($provider)) else . end
    end;
    select(.is != null)
    | {switch: .in.name, at: .is.reading.collected, why: .is.why, rows: []}
      + if .is.why != null or .was == null or .was.why != null then {}
        else {from: .was.reading.collected} + interval(.in; .was; .is) end)
