# What a switch said (raw/<switch>/switch-{before,after}.json, perch.switch/1), made readable: the answer of each command, or
# why there is none; counters; the names of ports. What every provider needs, and nothing of one.
import "common" as c;

# A counter in JSON: a number or digits as text, with or without thousands' commas. jq has doubles, so that above 2^53 the
# last digits are lost: a few bytes of 9 petabytes, and no drop or error is counted that far.
def count:
  if type == "string" then (gsub("[, ]"; "") | if test("^[0-9]+$") then tonumber else null end) else . end
  | if c::is_finite and . >= 0 then . + 0 else null end; # + 0: jq 1.7 would show it as the switch has spelt it (9e12)

# What network systems print instead of an answer; all of them end with exit code 0 or none at all.
# Cisco: "% Invalid command at '^' marker."; Arista: "% Invalid input"; NVUE: "Error: ..."; SONiC (click): "Error: No such command".
def refusal: "(?m)^(?<words> *(% ?(Invalid|Incomplete|Ambiguous|Unavailable|Permission)|Error:|Syntax error|Invalid command).*)";

# Why the command named has no answer; null where it has one.
def unanswered($name):
  .commands[$name] as $c
  | if $c == null then "it was not asked"
    elif ($c.stdout | type) != "string" then "its answer is no text"
    elif $c.exit == null then "the switch could not be reached" + (($c.stderr // "") | tostring | if . == "" then "" else ": " + .[0:200] end)
    elif $c.stdout | test(refusal) then "the switch says: " + ($c.stdout | capture(refusal).words | sub("^ +"; "") | .[0:160])
    elif $c.exit != 0 then "exit \($c.exit)" + (($c.stderr // "") | tostring | split("\n")[0] // "" | if . == "" then "" else ": " + .[0:160] end)
    elif $c.stdout | test("^\\s*$") then "the answer is empty"
    else null end;

def text($name): if unanswered($name) == null then .commands[$name].stdout | gsub("\r"; "") else null end;

# The JSON object of an answer, whatever a banner or a prompt put before it. Cut off in the middle it is none.
def document($name):
  text($name) | if . == null then null else (index("{") // 0) as $start | .[$start:] | c::parsed | if type == "object" then . else null end end;

# As unanswered, of an answer that must be JSON.
def undocumented($name):
  unanswered($name) // (if document($name) == null then "the answer is no JSON object, or is cut off" else null end);

# NX-OS gives a table with one row as an object, with several as an array.
def rows: if . == null then empty elif type == "array" then .[] else . end | objects;

# Answers of a command that a shell ran once a port, "## PORT" before each -> {PORT: text}. One port may well have none (it
# is down, or has no watchdog) and the loop's exit code is its last one's, so both say nothing of the others.
def sections($name):
  reduce ((.commands[$name].stdout // "" | tostring) | gsub("\r"; "") | split("\n")[]) as $line ({port: null, of: {}};
    if $line | startswith("## ") then .port = ($line[3:] | sub(" +$"; "")) | .of[.port] = ""
    elif .port == null then .
    else .of[.port] += $line + "\n" end)
  | .of;

# As unanswered, of such an answer.
def unsectioned($name):
  if sections($name) != {} then null else unanswered($name) // "no port answered" end;

# One port has many spellings: Eth1/1, ethernet1/1, Ethernet 1/1, Et1.
def port_key: tostring | ascii_downcase | gsub("\\s"; "") | sub("^eth?(ernet)?(?=[0-9])"; "ethernet");

# A host's name as LLDP or a node description gives it, for comparing: in small letters.
def host_key: tostring | ascii_downcase | sub("\\.$"; "");
# The same without its domain. An address has none: cut short, a whole network would have one name.
def short_key: host_key | if test("^[0-9.]+$|:") then empty else sub("\\..*$"; "") end;

# Gb/s out of "10G", "100Gbps", "25 Gb/s", "1000 Mb/s".
def gbit_s:
  (tostring | ascii_downcase | capture("^\\s*(?<n>[0-9.]+)\\s*(?<unit>[mgt])") // null)
  | if . == null then null else (.n | tonumber) * {m: 0.001, g: 1, t: 1000}[.unit] end;

def eight($of): [range(8) | tostring | $of[.] // null];
def total: map(values) | if length == 0 then null else add end;

# The shape that every provider gives of a port; null is what it does not tell.
def port:
  { port: null, neighbours: [], up: null, speed_gbit_s: null, bytes: {rx: null, tx: null},
    # when somebody cleared its counters: seconds before this reading, or the time in the switch's own words
    cleared: {ago_s: null, at: null},
    pfc: {enabled_priorities: null, rx: [range(8) | null], tx: [range(8) | null], rx_total: null, tx_total: null, storms: null},
    queues: [], errors: {crc: null, symbol: null, discards_in: null, discards_out: null} }
  + .;
def queue: {queue: null, priority: null, bytes: null, packets: null, drops: null, ecn_marked: null} + .;
