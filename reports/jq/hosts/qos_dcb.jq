# How an interface's data center bridging is set, as one of these tells it: dcb (iproute2, dcb/dcb_*.c; JSON), mlnx_qos
# (Mellanox/mlnx-tools, python/mlnx_qos; text) or niccli getqos (Broadcom; the text of lldptool's TLVs).
import "common" as c;

def trimmed: if type == "string" then (if test("^\\s|\\s$") then gsub("^\\s+|\\s+$"; "") else . end) | if . == "" then null else . end else null end;
def listed: map(tostring) | join(", ");
def row: map(tostring) | join(" ");
def whole: if type == "string" and test("^[0-9]{1,6}$") then tonumber else null end;

# What a command said; one that was not run, or whose part of the document is damaged, is as one that is not installed.
def said($raw; $name):
  $raw.commands[$name] | if type == "object" then . + {asked: true} else {asked: false} end
  | { asked, exit: (.exit | numbers // null), stdout: (.stdout | strings // ""), stderr: (.stderr | strings // "") };

def file($raw; $path): $raw.files[$path] | trimmed;
def link_end($raw; $path): $raw.links[$path] | trimmed | if . == null then null else sub(".*/"; "") end;
def document($raw; $name): said($raw; $name) | if .exit == 0 then (.stdout | c::parsed) else null end;
def has_no_such_thing: (.exit // 0) != 0 and (.stderr | test("not supported|Cannot get tunable"; "i"));

# Why a command told nothing: "dcb: Attribute read: Operation not supported".
def silence($name):
  if .asked | not then "\($name) was not asked: there is no such interface"
  elif .exit == null then "\($name) is not installed"
  elif .exit == 124 or .exit == 137 then "\($name) did not answer in time"
  elif .exit == 0 then "\($name) said nothing that can be read"
  else "\($name): \((.stderr | trimmed) // "exit \(.exit)" | split("\n") | last | .[0:120])" end;

# The tool of a command that was asked and is not there, else null
def missing($tool): if .asked and .exit == null then $tool else null end;

# Lists as they must be: one entry a priority or class, each in its range.
def eight(valid): if type == "array" and length == 8 and all(.[]; valid) then . else null end;
def is_priority: type == "number" and . >= 0 and . <= 7 and . == floor;
def is_dscp: type == "number" and . >= 0 and . <= 63 and . == floor;

# [[26, 3], ...] -> {"26": 3}; of several priorities of a DSCP the greatest counts, as the kernel's mask takes it.
def dscp_map:
  if type == "array" and all(.[]; type == "array" and length == 2 and (.[0] | is_dscp) and (.[1] | is_priority)) then
    reduce sort[] as $pair ({}; .[$pair[0] | tostring] = $pair[1])
  else null end;

# ---- the three tellers ------------------------------------------------------------------------------------------------

def by_dcb($raw; $net):
  def of($part): document($raw; "dcb-\($part) \($net)") | objects // null;
  def is_on: . == true or . == "on";
  of("pfc") as $pfc | of("ets") as $ets | of("app") as $app | of("dcbx") as $dcbx | of("buffer") as $buffer
  | of("apptrust") as $trust
  | { pfc: ($pfc.prio_pfc | eight(type == "boolean" or . == "on" or . == "off")
            | if . == null then null else [to_entries[] | select(.value | is_on) | .key] end),
      delay: ($pfc.delay | numbers // null),
      sent: ($pfc.requests | eight(type == "number")), received: ($pfc.indications | eight(type == "number")),
      willing: ($ets.willing | if . == null then null elif is_on then "yes" else "no" end),
      prio_tc: ($ets.prio_tc | eight(is_priority)), tc_tsa: ($ets.tc_tsa | eight(type == "string")),
      tc_bw: ($ets.tc_bw | eight(type == "number")),
      dscp: (if $app == null then null else $app.dscp_prio // [] | dscp_map end),
      default_prio: ($app.default_prio | if type == "array" then [.[] | select(is_priority)] | max else null end),
      trust: ($trust.order | if type == "array" then [.[] | select(. == "dscp" or . == "pcp")][0] else null end),
      dcbx: (if $dcbx == null then null elif $dcbx.host == true then "host" else "firmware" end),
      prio_buffer: ($buffer.prio_buffer | eight(is_priority)),
      buffer_size: ($buffer.buffer_size | eight(type == "number")) };

# "tc: 3 ratelimit: unlimited, tsa: ets, bw: 10%" and the lines "priority: 3" below it -> [{tc, tsa, bw, priorities}]
def mlnx_classes:
  reduce .[] as $line ([];
    ( $line | capture("^tc: (?<tc>[0-7]) ratelimit: [^,]+, tsa: (?<tsa>[a-z]+)(, bw: (?<bw>[0-9]{1,3})%)?")
      // null ) as $class
    | ($line | capture("^\\s+priority:\\s+(?<p>[0-7])\\s*$").p // null) as $priority
    | if $class != null then
        . + [{tc: ($class.tc | tonumber), tsa: $class.tsa, bw: ($class.bw | whole // 0), priorities: []}]
      elif $priority != null and length > 0 then .[-1].priorities += [$priority | tonumber]
      else . end);

def by_mlnx_qos($raw; $net):
  said($raw; "mlnx_qos \($net)") | (if .exit == 0 then .stdout else "" end) as $text | ($text | split("\n")) as $lines
  | def after($pattern): [$lines[] | capture($pattern + "(?<v>.*)$").v][0] | trimmed;
    def numbers_of($name):
      after("^\\s+" + $name + "\\s+(?=[0-9])") | if . == null then null else [splits("\\s+") | whole] end;
    ($lines | mlnx_classes) as $classes
  | (reduce ($classes[] | .tc as $tc | .priorities[] | [., $tc]) as $pair ([]; .[$pair[0]] = $pair[1])) as $prio_tc
  | { pfc: (numbers_of("enabled") | eight(. == 0 or . == 1)
            | if . == null then null else [to_entries[] | select(.value == 1) | .key] end),
      delay: (after("^Cable len: ") | whole), sent: null, received: null, willing: null,
      prio_tc: ($prio_tc | eight(is_priority)),
      tc_tsa: (if $classes == [] then null
               else reduce $classes[] as $class ([range(8) | "strict"]; .[$class.tc] = $class.tsa) end),
      tc_bw: (if $classes == [] then null
              else reduce $classes[] as $class ([range(8) | 0]; .[$class.tc] = $class.bw) end),
      dscp: (if after("^Priority trust state: ") != "dscp" then null
             else [ $lines[] | capture("^\\s*prio:(?<p>[0-7]) dscp:(?<d>[0-9,]+)") | (.p | tonumber) as $p
                    | .d | split(",")[] | select(. != "") | [whole, $p] ] | dscp_map end),
      default_prio: null,
      trust: (after("^Priority trust state: ") | if . == "dscp" or . == "pcp" then . else null end),
      dcbx: (after("^DCBX mode: ") | {"OS controlled": "host", "Firmware controlled": "firmware"}[. // ""]),
      prio_buffer: (numbers_of("buffer") | eight(is_priority)),
      buffer_size: (after("^Receive buffer size \\(bytes\\): ") | if . == null then null
                    else [split(",")[] | whole | values] | .[0:8] | eight(type == "number") end) };

# "0:0 1:0 3:1" -> [[0, 0], [1, 0], [3, 1]]
def pairs: [splits("\\s+") | select(test("^[0-7]:\\w+$")) | split(":") | .[0] |= tonumber];

def by_niccli($raw; $net):
  said($raw; "niccli-qos \($net)") | (if .exit == 0 then .stdout | split("\n") else [] end) as $lines
  | def after($name): [$lines[] | capture("^\\s*" + $name + ": (?<v>.*)$").v][0] | trimmed;
    def filled(f): if . == null then null else reduce (pairs[] | .[1] |= f) as $pair ([]; .[$pair[0]] = $pair[1]) end;
    { pfc: (after("PFC enabled") | if . == null then null elif . == "none" then []
            else [splits("[ ,]+") | whole] | if all(.[]; is_priority) then . else null end end),
      delay: null, sent: null, received: null, willing: null,
      prio_tc: (after("PRIO_MAP") | filled(tonumber) | eight(is_priority)),
      tc_tsa: (after("TSA_MAP") | filled(.) | if . == null then null else . + [range(length; 8) | "strict"] end),
      tc_bw: (after("TC Bandwidth") | if . == null then null
              else [scan("[0-9]+") | tonumber] | . + [range(length; 8) | 0] | .[0:8] end),
      # an application: three lines, "Priority: 3", "Sel: 5" (DSCP), "DSCP: 26"
      dscp: (if after("PFC enabled") == null then null
             else [ $lines | join(" ") | scan("Priority: ([0-7])\\s+Sel: 5\\s+DSCP: ([0-9]{1,2})")
                    | map(tonumber) | reverse ]
               | dscp_map end),
      default_prio: null, trust: null, dcbx: null, prio_buffer: null, buffer_size: null };

# ---- together ---------------------------------------------------------------------------------------------------------

def driver($raw; $net): link_end($raw; "/sys/class/net/\($net)/device/driver");

# The firmware's own LLDP agent, by the private flags of Intel's drivers (ice: fw-lldp-agent, i40e: disable-fw-lldp)
def agent($raw; $net):
  said($raw; "ethtool-priv-flags \($net)").stdout
  | if test("(^|\\n)fw-lldp-agent *: *on\\b|(^|\\n)disable-fw-lldp *: *off\\b") then "on"
    elif test("(^|\\n)fw-lldp-agent *: *off\\b|(^|\\n)disable-fw-lldp *: *on\\b") then "off" else null end;

# What each of them knows, the first that knows it. trust: by the file of NVIDIA's OFED, by dcb apptrust or mlnx_qos, else
# by the table of applications: drivers trust the DSCP as soon as an entry for one is there (mlx5e_dcbnl_ieee_setapp,
# ice_dcbnl_setapp; mlnx_qos says the same).
def settings($raw; $net):
  [by_dcb($raw; $net), by_mlnx_qos($raw; $net), by_niccli($raw; $net)] as $all
  | (["dcb", "mlnx_qos", "niccli"] as $names | [range(3) | select($all[.].pfc != null) | $names[.]][0]) as $by
  | (reduce $all[] as $one ({}; reduce ($one | keys_unsorted[]) as $key (.; .[$key] = (.[$key] // $one[$key])))) as $s
  | (file($raw; "/sys/class/net/\($net)/qos/trust") | if . == "dscp" or . == "pcp" then . else null end) as $ofed
  | agent($raw; $net) as $agent
  | $s
  + { $net, $by, $agent, driver: driver($raw; $net),
      trust: ($ofed // $s.trust // (if $s.dscp == null then null elif $s.dscp == {} then "pcp" else "dscp" end)),
      dcbx: (if $agent == "on" then "firmware" else $s.dcbx end),
      unsupported: (said($raw; "dcb-pfc \($net)") | has_no_such_thing),
      # none of the three tellers is there
      missing: (if any("mlnx_qos", "niccli-qos"; said($raw; "\(.) \($net)").exit != null) then null else said($raw; "dcb-pfc \($net)") | missing("dcb") end),
      silence: ( [ (said($raw; "dcb-pfc \($net)") | silence("dcb")),
                   (("mlnx_qos", "niccli-qos") as $name | said($raw; "\($name) \($net)") | select(.asked)
                    | silence($name | sub("-qos"; ""))) ] | join("; ") ) };
