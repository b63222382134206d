# Whether a packet filter lets a new connection from another host through to a port, as far as its rules tell. Two
# languages, `nft --json list ruleset` (libnftables-json(5)) and iptables-save(8), become chains of rules of one kind:
#   {conditions: [true, false or null], verdict: {kind: accept|drop|jump|goto|return|pass|any, to}}
# null is a condition on something that is not known here, such as the peer's address; any is a verdict of that kind.
# $c, the connection: {port, protocol: "tcp" or "udp", interfaces: [those that it may come in by; [] is not known]}.
import "common" as c;

# true and false as they are, null where it is not known
def negated: if . == null then null else . | not end;
def any_of: if any(.[]; . == true) then true elif any(.[]; . == null) then null else false end;
def all_of: if any(.[]; . == false) then false elif any(.[]; . == null) then null else true end;

# ---- what a condition says of the connection --------------------------------------------------------------------------

# Input: a value of the rule: a number, a word, {range: [a, b]}, {set: [...]}, [...], or what cannot be told ("@name").
def fits($known):
  if type == "object" and has("set") then [.set | if type == "array" then .[] else . end | fits($known)] | any_of
  elif type == "object" and has("range") then
    if ($known | type) == "number" and all(.range[]; type == "number") then .range[0] <= $known and $known <= .range[1] else null end
  # an element of a set with a comment or a time
  elif type == "object" and has("elem") then .elem | if type == "object" then .val else . end | fits($known)
  elif type == "object" then null
  elif type == "array" then [.[] | fits($known)] | any_of
  elif type == "string" and startswith("@") then null
  elif type == ($known | type) then . == $known
  else null end;

# "eth*" and other patterns, for one of the interfaces
def interface_fits($name): if endswith("*") then .[:-1] as $start | $name | startswith($start) else . == $name end;

def interfaces_fit($c):
  def words: if type == "object" and has("set") then .set[] | words elif type == "array" then .[] | words else . end;
  [words] as $words
  | if any($words[]; type != "string" or startswith("@")) then null
    elif $c.interfaces == [] then if all($words[]; . == "lo") then false else null end
    else [$c.interfaces[] as $i | any($words[]; interface_fits($i))] as $hits
      | if all($hits[]; .) then true elif any($hits[]; .) then null else false end end;

# A new connection: no state but new, no translation, to this host alone.
def holds($c):
  .left as $left | .right as $right | (.op // "==") as $op
  | def compare($known):
      if $op == "==" or $op == "in" then $right | fits($known)
      elif $op == "!=" then $right | fits($known) | negated
      elif ([$known, $right] | all(.[]; type == "number")) | not then null
      elif $op == "<" then $known < $right elif $op == ">" then $known > $right
      elif $op == "<=" then $known <= $right elif $op == ">=" then $known >= $right
      else null end;
    if ($left | type) != "object" then null
    elif ($left.payload | type) == "object" then
      $left.payload
      | if .protocol == $c.protocol or .protocol == "th" then if .field == "dport" then compare($c.port) else null end
        elif .protocol == "ip" then if .field == "protocol" then compare($c.protocol) else null end
        elif .protocol == null or .protocol == "ether" or .protocol == "vlan" then null
        else false end # it looks into a packet of another protocol
    elif ($left.meta | type) == "object" then
      $left.meta.key
      | if . == "l4proto" then compare($c.protocol)
        elif . == "nfproto" then compare("ipv4")
        elif . == "protocol" then compare("ip")
        elif . == "pkttype" then $right | if . == "unicast" then "host" else . end | fits("host") | if $op == "!=" then negated else . end
        elif . == "iifname" or . == "iif" then $right | interfaces_fit($c) | if $op == "!=" then negated else . end
        else null end
    elif ($left.ct | type) == "object" then
      $left.ct.key
      | if . == "state" then compare("new")
        elif . == "status" then if $op == "!=" then null else false end
        else null end
    elif ($left.fib | type) == "object" and $left.fib.result == "type" then compare("local")
    else null end;

# ---- nft ----------------------------------------------------------------------------------------------------------------

def nft_verdict:
  if type != "object" then {kind: "any"}
  else keys_unsorted[0] as $k
    | if $k == "accept" or $k == "drop" or $k == "return" then {kind: $k}
      elif $k == "reject" then {kind: "drop"}
      elif $k == "continue" then {kind: "pass"}
      elif $k == "jump" or $k == "goto" then {kind: $k, to: .[$k].target}
      else {kind: "any"} end end;

# The statements of a rule that neither match nor decide.
def nft_idle: ["counter", "log", "comment", "mangle", "notrack", "ct helper", "set", "flow", "secmark", "ct timeout"];

# A rule -> rules: of a map of verdicts one for each of its entries.
def nft_rules($c):
  reduce ((.expr // [])[]) as $s ({open: [], out: []};
    (if ($s | type) == "object" then $s | keys_unsorted[0] else "?" end) as $k
    | if $k == "match" then .open += [$s.match | holds($c)]
      elif $k as $k | nft_idle | index([$k]) != null then .
      elif $k == "accept" or $k == "drop" or $k == "reject" or $k == "return" or $k == "jump" or $k == "goto" or $k == "continue" then
        .out += [{conditions: .open, verdict: ($s | nft_verdict)}]
      elif $k == "vmap" then
        .open as $open
        | .out += [ if ($s.vmap.data | type) == "object" and ($s.vmap.data.set | type) == "array" then
                      $s.vmap.data.set[]
                      | if type != "array" or length != 2 then {conditions: ($open + [null]), verdict: {kind: "any"}}
                        else . as $pair | {conditions: ($open + [{left: $s.vmap.key, right: $pair[0]} | holds($c)]),
                                           verdict: ($pair[1] | nft_verdict)} end
                    else {conditions: ($open + [null]), verdict: {kind: "any"}} end ]
      # a limit, a translation, a statement of iptables that nft does not know
      elif $k == "limit" or $k == "quota" or $k == "ct count" then .open += [null]
      else .out += [{conditions: (.open + [null]), verdict: {kind: "any"}}] end)
  | .out[];

# -> {chains: {KEY: [rules]}, bases: [{key, policy}]}, or null where the text is none of nft's
def nft($c; $without_iptables):
  c::parsed
  | if type != "object" or (.nftables | type) != "array" then null
    else [.nftables[] | objects] as $all
      | def key: "\(.family) \(.table) \(.chain // .name)";
        def ours: .family == "inet" or .family == "ip" or .family == "netdev";
        # those tables that iptables-save has told of in its own words
        def told: $without_iptables and .family == "ip" and (.table as $t | ["filter", "nat", "mangle", "raw", "security"] | index([$t]) != null);
        { bases: [ $all[] | .chain // empty | select(ours and (told | not))
                   | select(.hook == "input" or .hook == "prerouting" or .hook == "ingress")
                   | {key: key, policy: (if .policy == "drop" then "drop" else "accept" end)} ],
          chains: (reduce ($all[] | .rule // empty | select(ours)) as $r ({}; .[$r | key] += [$r | nft_rules($c)])) }
    end;

# ---- iptables-save ------------------------------------------------------------------------------------------------------

# "22", "1000:2000", "22,80,1000:2000"
def ports_fit($c):
  [ split(",")[] | split(":") | map(if . == "" then null else c::attempt(tonumber; null) end)
    | if length == 1 then .[0] == $c.port else (.[0] // 0) <= $c.port and $c.port <= (.[1] // 65535) end ] | any_of;

# The options that say something of a new connection, by the word after them.
def option($c):
  { "-p": (.value as $p | if $p == "all" then true else $p == $c.protocol end),
    "-i": (.value | if endswith("+") then .[:-1] + "*" else . end | interfaces_fit($c)),
    "--dport": (.value | ports_fit($c)), "--dports": (.value | ports_fit($c)),
    "--state": (.value | split(",") | index(["NEW"]) != null), "--ctstate": (.value | split(",") | index(["NEW"]) != null),
    "--ctstatus": false, "--dst-type": (.value == "LOCAL"), "--pkt-type": (.value == "unicast") }[.name];

# These have a word after them that says nothing.
def idle_option: ["-m", "--comment"];

def iptables_rule($c):
  [match("\"(?:[^\"\\\\]|\\\\.)*\"|\\S+"; "g").string] as $words
  | reduce range(2; $words | length) as $i ({conditions: [], negate: false, verdict: {kind: "pass"}, done: false};
      $words[$i] as $w
      | if .done then .
        elif $w == "!" then .negate = true
        elif $w == "-j" or $w == "-g" then
          .done = true
          | .verdict = ($words[$i + 1] as $t
              | if $t == "ACCEPT" then {kind: "accept"} elif $t == "DROP" or $t == "REJECT" then {kind: "drop"}
                elif $t == "RETURN" then {kind: "return"}
                elif $t == "NFQUEUE" or $t == "DNAT" or $t == "REDIRECT" or $t == "TPROXY" or $t == "SYNPROXY" then {kind: "any"}
                # a chain, or a target that lets pass (LOG, MARK, ...): apply tells which
                else {kind: (if $w == "-g" then "goto" else "jump" end), to: $t, maybe: true} end)
        elif $w | startswith("-") | not then .
        elif $w as $w | idle_option | index([$w]) != null then .negate = false
        else ({name: $w, value: ($words[$i + 1] // "")} | option($c)) as $says
          | .conditions += [if .negate then $says | negated else $says end] | .negate = false end)
  | {conditions, verdict};

def iptables($c):
  if test("(^|\\n)\\*[a-z]+\\n") | not then null
  else reduce (split("\n")[]) as $line ({table: null, bases: [], chains: {}};
      if $line | startswith("*") then .table = $line[1:]
      elif $line | startswith(":") then
        ($line[1:] | split(" ")) as $w | "\(.table) \($w[0])" as $key
        | .chains[$key] = (.chains[$key] // [])
        | if ($w[0] == "INPUT" or $w[0] == "PREROUTING") and .table != "nat" then
            .bases += [{key: $key, policy: (if $w[1] == "DROP" then "drop" else "accept" end)}] else . end
      elif $line | startswith("-A ") then
        .table as $table | ($line | split(" ") | .[1]) as $chain
        | .chains["\($table) \($chain)"] += [$line | iptables_rule($c)]
      else . end) | del(.table) end;

# ---- what the chains do with it -------------------------------------------------------------------------------------------

# Which ends a chain can have: {accept, drop, pass}; pass is that it comes back to where the chain was called from.
def ends($chains; $key; $depth):
  ($key | split(" ") | .[:-1] | join(" ")) as $place
  | if $depth > 16 then {accept: true, drop: true, pass: true} # netfilter itself refuses deeper jumps
    else reduce ($chains[$key] // [])[] as $rule ({accept: false, drop: false, pass: true, left: false};
      ($rule.conditions | all_of) as $met
      | if (.pass | not) or $met == false then .
        else
          "\($place) \($rule.verdict.to)" as $to
          | ( $rule.verdict
              | if .kind == "accept" then {accept: true} elif .kind == "drop" then {drop: true} elif .kind == "return" then {left: true}
                elif .kind == "any" then {accept: true, drop: true, pass: true}
                elif .kind == "pass" or (.maybe and $chains[$to] == null) then {pass: true}
                elif .kind == "jump" then ends($chains; $to; $depth + 1)
                else ends($chains; $to; $depth + 1) | {accept, drop, left: .pass} end ) as $outcome
          | .accept = (.accept or $outcome.accept == true) | .drop = (.drop or $outcome.drop == true) | .left = (.left or $outcome.left == true)
          | .pass = (if $met == true then $outcome.pass == true else true end)
        end)
      | {accept, drop, pass: (.pass or .left)} end;

# {chains, bases} -> "open", "closed" or "unknown": every base chain has to let it through.
def reachable:
  .chains as $chains
  | [ .bases[] | .policy as $policy | ends($chains; .key; 0)
      | {accept: (.accept or (.pass and $policy == "accept")), drop: (.drop or (.pass and $policy == "drop"))} ]
  | if any(.[]; .drop and (.accept | not)) then "closed" elif all(.[]; .drop | not) then "open" else "unknown" end;

def joined($verdicts): if any($verdicts[]; . == "closed") then "closed" elif all($verdicts[]; . == "open") then "open" else "unknown" end;
