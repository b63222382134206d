# What host-check printed, as the checks of NICs read it. What is absent, damaged or no text is null, and never a value.
import "hosts/unread" as u;

def trimmed: strings | (if test("^\\s|\\s$") then gsub("^\\s+|\\s+$"; "") else . end) | if . == "" then empty else . end;
def text($raw; $path): [$raw.files[$path] | trimmed] | .[0];
# Fifteen digits fit in a double; a counter that has more is a damaged one. (The addition makes jq 1.7 forget a spelling.)
def whole: if . != null and test("^-?[0-9]{1,15}$") then tonumber + 0 else null end;
def number($raw; $path): text($raw; $path) | whole;

def command($raw; $name): [$raw.commands[$name] | objects] | .[0];
def said($raw; $name): command($raw; $name) | if . == null or .exit != 0 then null else [.stdout | trimmed] | .[0] end;
# The tool of a command; a shell's $0 is its tool.
def tool:
  ([.argv[0]? | strings] | .[0] // "the command") as $first
  | if $first == "bash" then [.argv[3]? | strings] | .[0] // $first else $first end;
# The tool of a command that the host lacks, else null
def missing($raw; $name): command($raw; $name) | if . != null and .exit == null then tool else null end;

# Why a command has no answer: "ethtool is not installed (package ethtool)". 124 and 137 are timeout(1)'s.
def silent($raw; $name):
  command($raw; $name)
  | if . == null then "it was not asked"
    else tool as $tool
      | if .exit == null then "\($tool) is not installed" + (u::package($raw; $tool) | if . == null then "" else " (\(.))" end)
        elif .exit == 0 then "\($tool) said nothing of it"
        elif .exit == 124 or .exit == 137 then "\($tool) did not answer in time, and was stopped"
        else "\($tool): exit \(.exit): \([.stderr | trimmed] | .[0] // "nothing said" | .[0:120])" end end;

# A finding. $about: {severity, why, remedy, source} and, where there is one, wanted; input: {status, found, value}.
def finding($id; $device; $about):
  { id: ("nic-" + $id), device: $device, status, severity: $about.severity, found, value, missing, reading,
    wanted: (.wanted // $about.wanted), why: $about.why, remedy: $about.remedy, source: $about.source };

# Whether a tool answered that it cannot. One that is missing, hangs or prints rubbish has not.
def is_tried($raw; $name): command($raw; $name) | . != null and .exit != null and .exit != 0 and .exit != 124 and .exit != 137;

# What a thing is found as, from whether it is as wanted; null: it cannot be read, or no value is wanted.
def result($status; $found; $value): {status: $status, found: $found, value: $value};
def unknown($why): result("unknown"; "cannot be read: \($why)"; null);
def unread($raw; $name):
  ([command($raw; $name).argv | arrays | map(strings) | select(.[0] != "bash" and length > 1) | join(" ")] | .[0]) as $reading
  | unknown(silent($raw; $name)) + {missing: missing($raw; $name), $reading};
def not_applicable($why): result("not_applicable"; $why; null);
def either($good; $found; $value): result(if $good then "ok" else "bad" end; $found; $value);
# Where nothing absolute is wanted the value is shown, and compared between hosts.
def as_wanted($wanted; good; $found; $value):
  if $wanted == null then result("info"; $found; $value) else either(good; $found; $value) end;

def hex: ascii_downcase | explode | reduce .[] as $c (0; . * 16 + if $c >= 97 then $c - 87 else $c - 48 end);

# "0-3,8" -> [[0, 3], [8, 8]]; null where it is no such list.
def ranges:
  if . == null or (test("^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$") | not) then null
  else [split(",")[] | split("-") | map(tonumber + 0) | [.[0], .[-1]]] end;
def within($wide): all(.[]; . as $r | any($wide[]; .[0] <= $r[0] and $r[1] <= .[1]));

# ---- devices ----------------------------------------------------------------------------------------------------

# Every port's GID table, once for a host: {"mlx5_0/1": [{index, gid, type, netdev}]}, entries in order.
def gids($raw):
  reduce ($raw.files | keys_unsorted[] | select(startswith("/sys/class/infiniband/")) | split("/")
          | select(.[7] == "gids" and (.[8] // "" | test("^[0-9]{1,5}$")))) as $p
    ({};
     "/sys/class/infiniband/\($p[4])/ports/\($p[6])" as $port
     | .["\($p[4])/\($p[6])"] += [{ index: ($p[8] | tonumber), gid: text($raw; "\($port)/gids/\($p[8])"),
                                    type: text($raw; "\($port)/gid_attrs/types/\($p[8])"),
                                    netdev: text($raw; "\($port)/gid_attrs/ndevs/\($p[8])") }])
  | map_values(sort_by(.index));

# The devices that are there: what host-check found of the names that it was given, or of all.
def listed($raw): [$raw.links | keys_unsorted[] | select(startswith("/sys/class/infiniband/")) | split("/")[4]] | unique;

# "../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/infiniband/mlx5_0" -> the functions, the NIC's own first
def functions: [strings | split("/")[] | select(test("^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-9a-f]$"))] | reverse;

# Of an RDMA device its own function, else that of its interface, else that of what carries the interface.
def chain($raw; $name; $netdev):
  ($raw.links["/sys/class/infiniband/\($name)"] // $raw.links["/sys/class/cxi/\($name)"] | functions) as $own
  | if $own != [] then $own
    elif $netdev == null then []
    else ($raw.links["/sys/class/net/\($netdev)"] | functions) as $of_interface
      | if $of_interface != [] then $of_interface
        else "/sys/class/net/\($netdev)/lower_" as $lower
          | first($raw.links | to_entries[] | select(.key | startswith($lower)) | .value | functions | select(. != [])) // [] end
    end;

# An InfiniBand port's GIDs name no interface; its IPoIB interface is that of the same function.
def sibling($raw; $name):
  ($raw.links["/sys/class/infiniband/\($name)"] | functions | .[0]) as $function
  | if $function == null then null
    else [$raw.links | to_entries[] | select(.key | startswith("/sys/class/net/")) | select((.value | functions | .[0]) == $function)
          | .key | split("/") | select(length == 5) | .[4]] | .[0] end;

# A virtual function shares link and settings with its physical one, which stands in its place.
def physical($raw):
  if . == [] then .
  else ([$raw.links["/sys/bus/pci/devices/\(.[0])/physfn"] | functions[]] | .[0]) as $physical | [$physical // .[0]] + .[1:] end;

# A virtual function in a guest: the kernel finds no speed and no lanes in its registers, which its physical function has
# (Single Root I/O Virtualization, link status; Linux, drivers/pci/probe.c, pci_speed_string).
def is_guest($raw; $function):
  "/sys/bus/pci/devices/\($function)/current_link_" as $link
  | (text($raw; $link + "speed") | strings // "" | test("^Unknown")) and number($raw; $link + "width") == 0;
def guest($function): not_applicable("\($function) is a virtual function; its physical function is not on this host");

# {name, rdma: whether it is there, software: made by no card, cxi, port, dir (of the port), netdev, gid_index, gids,
# function: its own on PCI, chain: that and the bridges above it}
def device($raw; $tables; $have):
  .name as $name | (.ib_port // 1) as $port
  | ($tables["\($name)/\($port)"] // []) as $gids
  | (.netdev // ([$gids[].netdev | strings] | .[0]) // sibling($raw; $name)
     // ([$raw.links["/sys/class/cxi/\($name)/device/net"] | strings] | .[0])
     // if $raw.links["/sys/class/net/\($name)"] != null then $name else null end) as $netdev
  | { $name, rdma: ($have | index([$name]) != null), cxi: ($name | test("^cxi")), $port, gid_index,
      software: ($raw.links["/sys/class/infiniband/\($name)"] | functions == []),
      dir: "/sys/class/infiniband/\($name)/ports/\($port)", named: .netdev, $netdev, $gids,
      function: (chain($raw; $name; $netdev) | .[0]), chain: (chain($raw; $name; $netdev) | physical($raw)) };

# Those that the inventory names; where it names none, all that there are.
def devices($raw; $host):
  gids($raw) as $tables | listed($raw) as $have
  | [$host.devices // [] | .[] | objects | select(.name | type == "string")]
  | if . == [] then $have | map({name: .}) else . end
  | map(device($raw; $tables; $have));

# The interfaces under test, each once, with the name of its device.
def interfaces($devices):
  [$devices[] | select(.netdev != null)] | group_by(.netdev) | map(.[0]);
def there($raw; $netdev): $raw.links["/sys/class/net/\($netdev)"] != null;

# What carries an interface: the links of a bond, the parent of a VLAN, those of a bond below a VLAN, else itself; in place of
# a virtual function its physical one, whose link, module and neighbour it has.
def carriers($raw; $netdev; $depth):
  "/sys/class/net/\($netdev)/lower_" as $lower
  | [$raw.links | keys_unsorted[] | select(startswith($lower)) | .[($lower | length):]] | sort
  | if . == [] or $depth == 0 then [$raw.links["/sys/class/net/\($netdev)/device/physfn/net"] // $netdev]
    else map(carriers($raw; .; $depth - 1)[]) | unique end;
def carriers($raw; $netdev): carriers($raw; $netdev; 4);
