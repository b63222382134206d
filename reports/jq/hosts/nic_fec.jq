# Forward error correction (FEC) of each Ethernet link: its mode, and the blocks that it could not correct -> findings.
import "common" as c;
import "hosts/nic_read" as r;

# The modes that ethtool names (ethtool(8), --set-fec). "None" is a driver's word for a link that is down, too.
def modes: ["Auto", "Off", "RS", "BaseR", "LLRS", "None"];

# ethtool --show-fec, as JSON of newer ones or as text -> {mode, uncorrectable}. Null: it says nothing that can be read.
def parsed:
  . as $text
  | ([c::parsed | arrays[0] | objects] | .[0]) as $json
  | ( if $json != null then
        {mode: ([$json.active | arrays[0]] | .[0]), uncorrectable: ([$json.statistics | objects | .uncorrectable_blocks | objects | .total] | .[0])}
      else
        ($text | split("\n")) as $lines
        | { mode: ([$lines[] | capture("^Active FEC encodings?: *(?<v>[A-Za-z]+) *$").v] | .[0]),
            uncorrectable: ([$lines[] | capture("^ *uncorrectable_blocks: *(?<v>[0-9]{1,15}) *$").v | tonumber + 0] | .[0]) } end )
  | .mode as $mode | .mode = (if modes | index([$mode]) != null then $mode else null end)
  | .uncorrectable |= if c::is_finite and . >= 0 and . < 1e15 then . else null end;

# {mode, uncorrectable, gain, damaged} of one interface. gain: what came while host-check ran. damaged: what was counted first was
# gone or smaller at the end: ethtool did not answer, or the count was reset.
def of_carrier($raw; $carrier):
  (r::said($raw; "fec \($carrier)") // "" | parsed) as $first
  | (r::said($raw; "fec-later \($carrier)") // "" | parsed) as $later
  | (($later.uncorrectable // $first.uncorrectable // 0) - ($first.uncorrectable // 0)) as $gain
  | $first
    + { $gain, damaged: ($first.uncorrectable != null and r::command($raw; "fec-later \($carrier)") != null
                         and ($later.uncorrectable == null or $gain < 0)) };

# Of a device, or null where it has no Ethernet link: {carriers: {name: as above}, mode}. mode: null where it is not known.
def fec($raw; $d):
  if $d.netdev == null or $d.cxi or r::text($raw; $d.dir + "/link_layer") == "InfiniBand" then null
  else
    [r::carriers($raw; $d.netdev)[] | {key: ., value: of_carrier($raw; .)}] | from_entries
    | { carriers: ., mode: (map(.mode) | if any(. == null) then null
        else unique | (if length > 1 then . - ["None"] else . end) | join(" and ") end) } end;

# A driver that cannot tell says so (EOPNOTSUPP); a tool that is missing, hangs or prints rubbish leaves it unknown.
def untold($raw; $carrier):
  r::command($raw; "fec \($carrier)")
  | . != null and .exit != null and .exit != 0 and ([.stderr | strings] | any(test("not supported"; "i")));

def why_unread($raw; $d; $carriers):
  first($carriers | to_entries[] | select(.value.mode == null) | .key) as $name
  | if r::is_guest($raw; $d.chain[0]) then r::guest($d.chain[0])
    elif untold($raw; $name) then r::not_applicable("the driver of \($name) does not tell FEC")
    elif r::said($raw; "fec \($name)") == null then r::unread($raw; "fec \($name)")
    else r::unknown("ethtool --show-fec \($name) names no FEC mode") end;

# Compared between links of one speed by nic_between.jq.
def mode($raw; $d; $fec):
  if $fec.mode == null then why_unread($raw; $d; $fec.carriers) else r::result("info"; $fec.mode; null) end
  | r::finding("fec"; $d.name;
      { severity: "required", wanted: null, why: "two ends with different FEC lose the link, or packets",
        source: "ethtool --show-fec; IEEE 802.3, clauses 91, 108 and 119",
        remedy: "ethtool --set-fec \($fec.carriers | keys_unsorted[0]) encoding auto, as at the switch port" });

# What was counted since the start may be from when the link came up; what is counted at this moment is not.
def blocks($raw; $d; $fec):
  [$fec.carriers | to_entries[] | select(.value.uncorrectable != null)] as $counted
  | [$counted[] | select(.value.uncorrectable > 0 or .value.gain > 0)] as $bad
  | any($bad[]; .value.gain > 0) as $now
  | [$counted[] | select(.value.damaged) | .key] as $damaged
  | if $fec.mode == null then why_unread($raw; $d; $fec.carriers)
    elif $counted == [] then r::not_applicable("ethtool or the driver counts no FEC blocks")
    elif ($now | not) and $damaged != [] then r::unknown("blocks of \($damaged | c::names(4)): not read again, or reset during the check")
    else
      r::either($bad == []; if $bad == [] then "0" else
        $bad | map("\(.value.uncorrectable) on \(.key)" + if .value.gain > 0 then " (+\(.value.gain) during the check)" else "" end)
        | join(", ") end; null) end
  | r::finding("fec-blocks"; $d.name;
      { severity: (if $now or ($damaged != []) then "required" else "advisory" end), wanted: "0 uncorrectable blocks, and no increase during the check",
        why: "a block that FEC cannot correct is a lost packet", source: "IEEE 802.3, 30.5.1.1.18 aFECUncorrectableBlocks",
        remedy: "Clean or replace cable and transceiver on both ends; ethtool -m \($fec.carriers | keys_unsorted[0]) shows the module" });

def findings($raw; $host; $devices):
  $devices[] | . as $d | fec($raw; $d)
  | select(. != null and $host.scope == "hardware" and r::there($raw; $d.netdev)) as $fec
  | mode($raw; $d; $fec), blocks($raw; $d; $fec);
