# How each card is configured and how it is: the settings of NVIDIA's firmware, adaptive routing, devlink's reporters -> findings.
import "common" as c;
import "hosts/nic_read" as r;

def by_mlx5($raw; $function): $raw.links["/sys/bus/pci/devices/\($function)/driver"] | strings | endswith("/mlx5_core");

# Lines of mstconfig -e q: "Configurations:  Default  Current  Next Boot", "*  NUM_OF_VFS  0  0  8" (mstflint). A card may have no
# default or current value, and an older tool says the next boot's alone.
def columns:
  first(split("\n")[] | select(startswith("Configurations:")) | [splits(" {2,}|\t") | ascii_downcase | select(. != "" and . != "configurations:")])
  // ["default", "current", "next boot"];
def settings:
  columns as $columns
  | [ split("\n")[] | [splits("\\s+") | select(. != "" and . != "*" and . != "RO")] | select(.[0] != null and (.[0] | test("^[A-Z][A-Z0-9_]+$")))
      | .[0] as $name | .[1:]
      | (if length == ($columns | length) then [$columns, .] | transpose | map({key: .[0], value: .[1]}) | from_entries
         elif length == 1 then {"next boot": .[0]} else empty end) as $row
      | $row["next boot"] as $next | ($row.current | if . == "N/A" then null else . end) as $now
      | select($next != null) | {$name, now: ($now // $next), next: $next} ];

def source: "mstconfig -e q; NVIDIA, MFT: mlxconfig";
def config($raw; $d; $function):
  (r::said($raw; "config \($function)") // "" | settings) as $settings
  | [$settings[] | select(.now != .next) | "\(.name) \(.now), after the next boot \(.next)"] as $pending
  | ( if $settings == [] then r::unread($raw; "config \($function)")
      else r::either($pending == []; if $pending == [] then "\($settings | length) settings, none waits for a boot" else $pending | c::names(4) end; null) end
      | r::finding("config"; $d.name;
          { severity: (if $settings == [] and (r::is_tried($raw; "config \($function)") | not) then "required" else "advisory" end),
            wanted: "read, and in effect", source: source, why: "a setting that waits for a boot changes what the next run measures",
            remedy: "Reset the card (mlxfwreset), or reboot" }) ),
    ( $settings[] | . as $one | r::result("info"; .now; .now)
      | r::finding("config-\($one.name | ascii_downcase | gsub("_"; "-"))"; $d.name;
          { severity: "advisory", wanted: null, source: source, why: "cards with other settings have other speed and other limits",
            remedy: "mstconfig -d \($function) set \($one.name)=VALUE on the hosts that differ, then reset the card" }) );

# A register's field: "adaptive_routing_forced_en    | 0x00000001" (mstreg)
def field($name): [split("\n")[] | capture("^" + $name + " *\\| *0x0*(?<v>[01])( .*)?$").v == "1"] | .[0];
def adaptive($raw; $d; $function; $host):
  (r::said($raw; "roce-accl \($function)") // "" | field("adaptive_routing_forced_en")) as $on
  | ($host.traits.adaptive_routing // false) as $trait
  | if $on == null then r::unread($raw; "roce-accl \($function)")
    else (if $on then "on" else "off" end) as $word | r::either($on == $trait; $word; $word) end
  | r::finding("adaptive-routing"; $d.name;
      { severity: "advisory", wanted: (if $trait then "on" else "off" end), source: "mstreg ROCE_ACCL; perch_fabric_traits",
        why: "packets that take several paths arrive out of order, and limits count that as loss",
        remedy: "Set perch_fabric_traits: {adaptive_routing: \($on)}, or adaptive_routing_forced_en of ROCE_ACCL" });

# Whether devlink's name is of a function, of a port of it, or of an auxiliary device below it: "auxiliary/mlx5_core.eth.2/131072".
def is_of($raw; $function):
  split("/") as $parts
  | if $parts[0] == "auxiliary" then $raw.links["/sys/bus/auxiliary/devices/\($parts[1])"] | strings | contains("/\($function)/")
    else $parts[0] == "pci" and $parts[1] == $function end;

# What devlink's reporters say of a function and its ports -> [{reporter, state, error}]; null: no answer that can be read
def reporters($raw; $function):
  [r::said($raw; "devlink-health") | strings | c::parsed | objects | .health | objects] | .[0]
  | if . == null then null
    else
      [ to_entries[] | select(any(.key | is_of($raw; $function); .)) | .value | arrays[] | objects
          | select((.reporter | type) == "string" and (.state | type) == "string") ] end;
def health($raw; $d; $function):
  reporters($raw; $function) as $all
  | [$all // [] | .[] | select(.state != "healthy")] as $sick
  | [$all // [] | .[] | select((.error | c::is_finite) and .error > 0)] as $past
  | if $all == null then r::unread($raw; "devlink-health")
    elif $all == [] then r::not_applicable("the driver has no reporter")
    elif $sick != [] then r::result("bad"; $sick | map("\(.reporter): \(.state)") | c::names(4); null)
    elif $past != [] then r::result("bad"; $past | map("\(.reporter): \(.error) \(if .error == 1 then "error" else "errors" end) since the driver was loaded") | c::names(4); null)
    else r::result("ok"; "\($all | length | c::plural("reporter")) healthy"; null) end
  | r::finding("health"; $d.name;
      { severity: (if $sick != [] or ($all == null and (r::is_tried($raw; "devlink-health") | not)) then "required" else "advisory" end),
        wanted: "each reporter healthy, without an error", source: "devlink-health(8)", why: "a card that fails or recovers loses packets meanwhile",
        remedy: "Read devlink health diagnose and dump show of the reporter, and the kernel's log; update the firmware" });

# Of devlink, the firmware's parts that run and those that the next reset starts -> [{name, now, next}]; null: no answer that can be
# read. Names: Linux, Documentation/networking/devlink, Info versions.
def versions($raw; $function):
  [r::said($raw; "devlink-info") | strings | c::parsed | objects | .info | objects] | .[0]
  | if . == null then null
    else
      .["pci/\($function)"] | [objects | .versions | objects] | .[0]
      | ([.running | objects] | .[0] // {}) as $now
      | [.stored // {} | objects | to_entries[] | select((.value | type) == "string" and ($now[.key] | type) == "string")
          | {name: .key, now: $now[.key], next: .value}] end;
def stored($raw; $d; $function):
  versions($raw; $function) as $all
  | [$all // [] | .[] | select(.now != .next) | "\(.name) \(.now), after the next reset \(.next)"] as $pending
  | if $all == null then r::unread($raw; "devlink-info")
    elif $all == [] then r::not_applicable("the driver tells no stored firmware")
    else r::either($pending == []; if $pending == [] then $all | map("\(.name) \(.now)") | c::names(4) else $pending | c::names(4) end; null) end
  | r::finding("firmware-stored"; $d.name;
      { severity: "advisory", wanted: "the stored firmware runs", source: "devlink-dev(8), info",
        why: "a host that boots before the next run measures other firmware",
        remedy: "Reset the card (devlink dev reload action fw_activate, or mlxfwreset), or reboot" });

# Of devlink, the driver's parameters, each in its modes: "driverinit true". Only shown: nic-health tells where devlink is missing.
def parameters($raw; $d; $function):
  [r::said($raw; "devlink-param") | strings | c::parsed | objects | .param | objects | .["pci/\($function)"] | arrays[] | objects]
  | .[] | select(.name | strings | test("^[A-Za-z0-9_]{1,60}$")) | .name as $name
  | ([.values | arrays[] | objects | select((.cmode | type) == "string" and (.value | type | . == "string" or . == "number" or . == "boolean"))
      | "\(.cmode) \(.value)" | .[0:80]] | join(", ")) as $text
  | select($text != "")
  | r::result("info"; $text; $text)
  | r::finding("param-\($name | ascii_downcase | gsub("_"; "-"))"; $d.name;
      { severity: "advisory", wanted: null, source: "devlink-dev(8), param show", why: "drivers with other parameters have other queues and limits",
        remedy: "devlink dev param set pci/\($function) name \($name) on the hosts that differ" });

def findings($raw; $host; $devices):
  select($host.scope == "hardware")
  | $devices[] | . as $d | select(.rdma and (.cxi | not)) | .chain[0] | select(. != null) | . as $function
  | (select(by_mlx5($raw; $function)) | config($raw; $d; $function), (select($host.fabric == "roce") | adaptive($raw; $d; $function; $host))),
    health($raw; $d; $function), stored($raw; $d; $function), parameters($raw; $d; $function);
