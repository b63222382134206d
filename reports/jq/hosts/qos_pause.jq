# Pause frames and what comes of them: global pause, counters of priority flow control, storms, the watchdog, buffers.
import "hosts/qos_dcb" as d;

# {autonegotiate, rx, tx, negotiated}: ethtool --json -a, else the text of ethtool -a; null where neither can be read
def pause($raw; $net):
  def on: if . == "on" then true elif . == "off" then false else null end;
  (d::document($raw; "ethtool-pause \($net)") | if type == "array" then .[0] else null end
   | if type == "object" and (.rx | type) == "boolean" and (.tx | type) == "boolean" then . else null end)
  // ( d::said($raw; "ethtool-pause-text \($net)") | if .exit == 0 then .stdout | split("\n") else [] end
       | . as $lines
       | def after($name): [$lines[] | capture("^" + $name + ":\\s+(?<v>on|off)\\s*$").v][0] | on;
         if after("RX") == null or after("TX") == null then null else {rx: after("RX"), tx: after("TX")} end );

def on_off: if . then "on" else "off" end;
def pause_text:
  "rx \(.rx | on_off), tx \(.tx | on_off)"
  + if (.negotiated | type) != "object" then ""
    else " (negotiated: rx \(.negotiated.rx | on_off), tx \(.negotiated.tx | on_off))" end;

# $lossless: the priorities with PFC, as wanted or, where nothing is wanted, as found. $wanted: on, off or null.
def global_pause($raw; $net; $lossless; $wanted):
  pause($raw; $net) as $pause
  | d::said($raw; "ethtool-pause-text \($net)") as $said
  | ($wanted // (if $lossless == [] then null else "off" end)) as $want
  | { id: "qos-pause", device: $net, missing: ($said | d::missing("ethtool")), severity: (if $want == null then "advisory" else "required" end),
      status: (if $pause == null then
                 if $want != "on" and ($said | d::has_no_such_thing) then "not_applicable" else "unknown" end
               elif $want == null then "info"
               elif [$pause.rx, $pause.tx] == [$want == "on", $want == "on"] then "ok" else "bad" end),
      found: (if $pause == null then "cannot be read (\($said | d::silence("ethtool")))" else $pause | pause_text end),
      value: (if $pause == null then null else $pause | "rx \(.rx | on_off), tx \(.tx | on_off)" end),
      wanted: (if $want == "off" and $wanted == null then "off, because priority flow control is wanted" else $want end),
      why: "global pause stops every priority; a link uses it or priority flow control, not both (IEEE 802.1Q, 36)",
      remedy: (($want // "off") as $way | "ethtool -A \($net) autoneg off rx \($way) tx \($way)"),
      source: "IEEE 802.1Q-2018, clause 36; ethtool(8)" };

# ---- counters ---------------------------------------------------------------------------------------------------------

# The lines "name: value" of ethtool -S as {name: value}
def counters($raw; $net):
  reduce (d::said($raw; "ethtool-qos-stats \($net)").stdout | split("\n")[]
          | capture("^\\s*(?<k>[^:\\s]+): (?<v>[0-9]{1,20})\\s*$")) as $pair ({}; .[$pair.k] = ($pair.v | tonumber));

# Pauses of a priority by their names: mlx5, bnxt_en (Xoff is not told apart), ice and i40e.
def pauses_of($all; $way; $p):
  [ $all["\($way)_prio\($p)_pause", "\($way)_pfc_ena_frames_pri\($p)",
          "\($way)_priority_\($p)_xoff.nic", "port.\($way)_priority_\($p)_xoff"] | values ] | max;

def counted($s; $all; $way; $from):
  [ range(8) as $p | {$p, n: ([$s[$from] // [] | .[$p], pauses_of($all; $way; $p)] | map(values) | max)}
    | select(.n != null) ];

# Counters above zero whose names fit, [{key, value}]
def above_zero($all; $names): [$all | to_entries[] | select(.value > 0) | select(.key | test($names))];
def list: map("\(.key) \(.value)") | join(", ");

def count_text:
  if . == [] then "not counted" elif all(.[]; .n == 0) then "none"
  else [.[] | select(.n > 0) | "\(.n) for priority \(.p)"] | join(", ") end;

# What was paused and lost since the counters began. They differ rightly between hosts, so they have no value to compare.
def counted_pauses($raw; $net; $s):
  counters($raw; $net) as $all
  | counted($s; $all; "tx"; "sent") as $sent | counted($s; $all; "rx"; "received") as $received
  | above_zero($all; "^[rt]x_global_pause$|^[rt]x_pause_frames$|^link_xoff_[rt]x") as $global
  | above_zero($all; "discard|out_of_buffer") as $lost
  | select($all != {} or $sent != [] or $received != [])
  | { id: "qos-counters", device: $net, status: "info", severity: "advisory", value: null, wanted: null,
      found: ("pauses sent: \($sent | count_text); received: \($received | count_text)"
              + (if $global == [] then "" else "; global: \($global | list)" end)
              + "; discards: \(if $lost == [] then "none" else $lost[0:8] | list end)"),
      why: "pauses show that flow control works, discards that it was not enough; counted since the driver was loaded",
      remedy: "ethtool -S \($net)", source: "kernel, mlx5 counters.rst; bnxt_ethtool.c; ice_ethtool.c" };

# Counters that say that a pause went on for too long, all of them zero on a sound link: mlx5 stalled by its host
# (tx_pause_storm_*), bnxt_en paused without an end by its switch (continuous_*).
def storm($raw; $net):
  "^tx_pause_storm_(warning|error)_events$|^continuous(_roce)?_pause_events$" as $names
  | counters($raw; $net) as $all
  | select(any($all | keys[]; test($names)))
  | above_zero($all; $names) as $seen
  | { id: "qos-pfc-storm", device: $net, status: (if $seen == [] then "ok" else "bad" end), severity: "advisory",
      found: (if $seen == [] then "none" else $seen | list end), value: null, wanted: "none",
      why: "a host that pauses without end stops the class on the switch, and so other hosts",
      remedy: "look for a stalled receiver (memory, PCIe errors); reloading the driver resets the count",
      source: "kernel commit 2fcb12df7d2f (mlx5e: Expose PFC stall prevention counters); bnxt_ethtool.c" };

# "pfc-prevention-tout: 8000", in ms; 0 is off, 65535 the driver's choice (uapi/linux/ethtool.h)
def watchdog($raw; $net; $wanted):
  d::said($raw; "ethtool-pfc-tout \($net)") as $said
  | ([$said.stdout | capture("pfc-prevention-tout: (?<v>[0-9]{1,5})").v | tonumber][0]) as $ms
  | (if $ms == null then null else $ms > 0 end) as $on
  | { id: "qos-pfc-watchdog", device: $net, missing: ($said | d::missing("ethtool")), severity: (if $wanted == null then "advisory" else "required" end),
      status: (if $on == null then
                 if $wanted == null and ($said | d::has_no_such_thing) then "not_applicable" else "unknown" end
               elif $wanted == null then "info" elif $on == $wanted then "ok" else "bad" end),
      found: (if $ms == null then "cannot be read (\($said | d::silence("ethtool")))" elif $ms == 0 then "off"
              elif $ms == 65535 then "on, the driver's own timeout" else "on, after \($ms) ms" end),
      value: $ms, wanted: (if $wanted == null then null else $wanted | on_off end),
      why: "the watchdog ends a pause that a stalled host would hold for ever",
      remedy: "ethtool --set-tunable \($net) pfc-prevention-tout \(if $wanted == false then 0 else 8000 end)",
      source: "ethtool(8), pfc-prevention-tout" };

# The bytes that still come after a pause, and one packet: Linux, mlx5/core/en/port_buffer.c, calculate_xoff and
# update_xoff_threshold, which leaves a smaller buffer. null: of another driver, or not known.
def headroom($raw; $net; $s):
  ["mtu", "speed" | d::file($raw; "/sys/class/net/\($net)/\(.)") | d::whole] as [$mtu, $speed]
  | if $s.driver != "mlx5_core" or $mtu == null or $speed == null or $s.delay == null then null
    else ((301 + ($s.delay * 2.16 | floor)) * ([$speed, 40000] | max) / 1000 | floor) + ($mtu * 2.72 | floor) + $mtu end;

# Headroom: a lossless priority needs a receive buffer of its own, as what it pauses for must still fit (mlx5 sizes it by
# the cable's length, which dcb calls delay).
def buffers($raw; $net; $s; $lossless):
  d::said($raw; "dcb-buffer \($net)") as $said
  | headroom($raw; $net; $s) as $least
  | $s.prio_buffer as $of | $s.buffer_size as $size
  | (if $of == null or $size == null then null
     else [ $lossless[] | . as $p | $of[$p] as $b
            | { $p, $b, bytes: $size[$b],
                shared: [range(8) | select($of[.] == $b) | select([.] | inside($lossless) | not)] } ] end) as $rows
  | { id: "qos-buffers", device: $net, missing: $s.missing, severity: "advisory",
      status: (if $rows == null then if $said | d::has_no_such_thing then "not_applicable" else "unknown" end
               elif $rows == [] then "info"
               elif all($rows[]; .bytes > 0 and .bytes >= ($least // 0) and .shared == []) then "ok" else "bad" end),
      found: (if $rows == null then "cannot be read (\($said | d::silence("dcb")))"
              elif $rows == [] then "no lossless priority; buffers of \($size | d::row) bytes"
              else ($rows | map("priority \(.p) in buffer \(.b) of \(.bytes) bytes"
                                + if .shared == [] then "" else ", with \(.shared | d::listed)" end) | join("; "))
                   + if $s.delay == null then "" else "; cable \($s.delay) m" end end),
      value: (if $rows == null then null else "\($of | d::row); \($size | d::row)" end),
      wanted: (if $rows == [] then null else "a separate buffer of at least \($least // 1) bytes for each lossless priority" end),
      why: "packets that arrive after a pause are lost if the buffer is too small or shared",
      remedy: ("set host_tune_buffers; by hand: dcb buffer set dev \($net) prio-buffer PRIORITY:BUFFER buffer-size BUFFER:BYTES, "
               + "or mlnx_qos -i \($net) --prio2buffer --buffer_size --cable_len"),
      source: "dcb-buffer(8); mlnx_qos --help; Linux, mlx5/core/en/port_buffer.c" };
