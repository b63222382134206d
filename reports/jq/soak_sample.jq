# A host's samples (perch.sample/1) -> lines of intervals.jsonl: what moved since the one before. Input (-nR): samples.jsonl. $host, $facts: of soak_facts.jq.
# What cannot be used becomes "#{fault}", which only soak_host.jq reads.
import "counters" as counters;
import "events" as events;
import "soak_line" as line;
import "common" as c;

# What a sample counts, by device: "netdev/eth1" -> its counters.
def tables:
  reduce (("netdev", "rdma", "cxi") as $kind | .[$kind] // {} | to_entries[] | {key: "\($kind)/\(.key)", value: (if $kind == "netdev" then .value else .value.counters // {} end)}) as $e
    ({host: (.host // {})}; .[$e.key] = $e.value);

# The last reading of each counter, whichever sample had it.
def known_with($new): reduce ($new | to_entries[]) as $e (.; .[$e.key] += $e.value);

def differences($b; $a): if $a == $b then empty else counters::differences($b; $a) | to_entries[] | select(.value != 0) end;

# Counters that no sample had before: what they counted until then nobody knows.
def appeared($old; $new):
  $new | keys_unsorted[] | select(. as $k | $old == null or ($old | has($k) | not)) | select($new[.] != "0" and events::class(.) != "-")
  | {key: ., value: null};

# Differences to what was known, as "netdev/eth1/tx_bytes".
def moved($known; $tables):
  reduce ($tables | to_entries[]) as $t ({};
    $known[$t.key] as $old
    | reduce (differences($old; $t.value), (if $old != null and ($old + $t.value | length) == ($old | length) then empty else appeared($old; $t.value) end)) as $d
        (.; .[$t.key + "/" + $d.key] = $d.value));

# Counters of trouble that were known, and that a sample lacks.
def absent($known; $tables):
  [ $known | to_entries[] | .key as $at | $tables[$at] as $new | select(.value | length > ($new | length)) | .value | keys_unsorted[]
    | select(events::class(.) != "-" and ($new | has(.)? // false | not)) | "\($at)/\(.)" ];

# Of all that moved by class; what a host counts of all its sockets is TCP's.
def classes:
  reduce to_entries[] as $e ({};
    ($e.key | split("/")) as $at
    | (if $at[0] != "host" then events::class($at[-1]) elif $at[-1] == "TcpRetransSegs" then "tcp-retransmissions" else "-" end) as $class
    | if $class == "-" then . elif $e.value == null or (has($class) and .[$class] == null) then .[$class] = null else .[$class] += $e.value end);

# How many counters of trouble there are.
def watched: [to_entries[] | select(.key != "host") | .value | keys_unsorted[] | select(events::class(.) != "-")] | length;

# Payload and headers of each device, both ways; InfiniBand counts words of four bytes. Null: reset, wrapped or full.
def bytes:
  . as $m
  | reduce (keys_unsorted[] | select(endswith("/tx_bytes") or endswith("/rx_bytes") or endswith("/port_xmit_data") or endswith("/port_rcv_data")
                                     or endswith("/hni_sts_tx_ok_octets") or endswith("/hni_sts_rx_ok_octets"))) as $k ({};
      ($k | split("/")) as $at
      | setpath([($at[1:-1] | join("/")), if $at[-1] | test("tx|xmit") then "tx" else "rx" end];
                $m[$k] | if . == null then . elif $at[-1] | startswith("port_") then . * 4 else . end));

def packets:
  . as $m
  | [ keys_unsorted[] | select(endswith("/tx_packets") or endswith("/rx_packets") or endswith("/port_xmit_packets") or endswith("/port_rcv_packets")) | $m[.] ] | add;

def number: c::attempt(tonumber; null) | if c::is_finite then . else null end;
def moment: number | . != null and . >= 0 and . < 1e11; # a date has four digits of a year

def objects_of(f): type == "object" and all(.[]; type == "object" and f);
def process:
  type == "object" and (.role | type) == "string" and (.flow | . == null or type == "string") and (.pid | c::is_finite) and (.start | type) == "string"
  and (.resident_bytes | c::is_finite and . >= 0) and (.handles | . == null or (c::is_finite and . >= 0));

# Which part of a sample is of another type than the sampler writes; empty where none is.
def wrong:
  if type != "object" or .schema != "perch.sample/1" then "it is no sample"
  elif (.time_s | moment | not) or (.uptime_s | moment | not) or (.boot_id | type) != "string" then "its time is none"
  elif (.dropped // 0 | c::is_finite | not) then "its number of dropped samples is none"
  elif (.counters | type) != "object" or (.counters.host // {} | type) != "object" or (.counters.netdev // {} | objects_of(true) | not)
       or (.counters | (.rdma // {}), (.cxi // {}) | objects_of((.counters | type) == "object") | not) then "its counters are none"
  elif .links // {} | objects_of(all(.[]; type == "string")) | not then "its links are none"
  elif .temperatures // [] | type == "array" and all(.[]; type == "object" and (.name | type) == "string") | not then "its temperatures are none"
  elif (.processes | type) != "array" or (all(.processes[]; process) | not) then "its processes are none"
  else empty end;

# How often a link changed since the sample that last had it. A port of RDMA counts none: then its state is another, or not.
def changes($before):
  (.carrier_changes | number) as $new | ($before.carrier_changes | number) as $old
  | if $new != null and $old != null and $new != $old then $new - $old
    elif ($before + .) as $now | [$now | .operstate, .state, .phys_state] == [$before | .operstate, .state, .phys_state] then 0
    else 1 end;

# A link that was there and is not has changed, once.
def there: . != null and (.operstate != null or .state != null);
def links($known; $before):
  reduce ($known + . | keys_unsorted[]) as $k (.; .[$k] as $new
    | .[$k] = (if $new | there then
                 $new | {operstate: (.operstate // .state), carrier_changes: (.carrier_changes | number), flaps: (if $known[$k] != null then changes($known[$k]) else 0 end)}
               else {operstate: null, carrier_changes: null, flaps: (if $before[$k] | there then 1 else 0 end)} end));

# State: {n, prev: the sample before, at: its time since the soak began, by its own clock that only counts; since the boot: known, of each counter
# its last reading, and links, of each link its last state; names: those in each of its tables, of which so many are watched}.
def sampled($s):
  .prev as $p
  | (($s.time_s | number) - $facts.epoch) as $wall
  | ($p != null and $p.boot_id == $s.boot_id) as $same
  | (if $same then .at + ($s.uptime_s | number) - ($p.uptime_s | number) elif $p == null then $wall else [$wall, .at] | max end) as $at
  | ($s.counters | tables) as $tables
  | (if $same then .known else {} end) as $known
  | (if $same then .links else {} end) as $links
  | (if $same then moved($known; $tables) else {} end) as $moved
  | ($tables | map_values(keys_unsorted)) as $names
  | (if $names == .names then . else .names = $names | .watched = ($tables | watched) end)
  | .out = ({ schema: "perch.sample/1", kind: "sample", run: $s.run, host: $s.host, number: $s.number, line: .n, boot_id: $s.boot_id,
        start_s: ((if $p == null then $at else .at end) | c::rounded), end_s: ($at | c::rounded),
        started: (($p // $s).time_s | number | line::dated), ended: ($s.time_s | number | line::dated), reset: ($p != null and ($same | not)),
        step_s: (if $same then ($s.time_s | number) - ($p.time_s | number) - (($s.uptime_s | number) - ($p.uptime_s | number)) | c::rounded else null end),
        $moved, events: ($moved | classes), packets: ($moved | packets), bytes: ($moved | bytes), watched: .watched,
        links: ($s.links // {} | links($links; if $same then $p.links // {} else {} end)), absent: absent($known; $tables), dropped: ($s.dropped // 0),
        # calculated with, as jq 1.7 keeps a number's spelling else
        temperatures: ($s.temperatures // [] | map(.celsius |= if c::is_finite then . + 0 else null end)), processes: $s.processes } | tojson)
  | .prev = $s | .at = $at | .known = ($known | known_with($tables)) | .links = ($links | reduce ($s.links // {} | to_entries[]) as $e (.; .[$e.key] += $e.value));

def fault($why): .out = "#" + ({kind: "fault", line: .n, $why} | tojson);

foreach inputs as $text ({n: 0, prev: null, at: 0, known: {}, links: {}, names: null, watched: 0};
    .n += 1
    | ($text | c::parsed) as $s
    | [$s | wrong] as $wrong
    | if $wrong != [] then fault(if $s == null then "no line of JSON" else $wrong[0] end)
      elif .prev != null and .prev.boot_id == $s.boot_id and ($s.uptime_s | number) < (.prev.uptime_s | number) then fault("its uptime lies before that of the one before")
      elif $s.run != $facts.run or $s.host != $host then fault("it is of run \($s.run | tojson), host \($s.host | tojson)")
      else . as $state | c::attempt(sampled($s); . as $why | $state | fault("what it holds makes no sense (\($why | tostring | .[:80]))")) end;
    .out)
