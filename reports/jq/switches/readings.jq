# A switch before and after a run -> its ports that lead to the hosts, with what their counters grew by. One module a
# provider reads the answers; here nothing knows of one.
import "switches/answers" as raw;
import "switches/nxos" as nxos;
import "switches/eos" as eos;
import "switches/sonic" as sonic;
import "switches/cumulus" as cumulus;
import "switches/infiniband" as ib;
import "common" as c;

def ports($provider):
  if $provider == "nxos" then nxos::ports elif $provider == "eos" then eos::ports elif $provider == "sonic" then sonic::ports
  elif $provider == "cumulus" then cumulus::ports elif $provider == "infiniband" then ib::ports else empty end;
# The same, all in one; null where the answers have another form, as those of another model.
def ports_of($provider): c::attempt([ports($provider)]; null);
def other_form($provider): "its answers have another form than those of \($provider)";
def required($provider):
  if $provider == "nxos" then nxos::required elif $provider == "eos" then eos::required elif $provider == "sonic" then sonic::required
  elif $provider == "cumulus" then cumulus::required elif $provider == "infiniband" then ib::required else {} end;
def optional($provider):
  if $provider == "nxos" then nxos::optional elif $provider == "eos" then eos::optional elif $provider == "sonic" then sonic::optional
  elif $provider == "cumulus" then cumulus::optional elif $provider == "infiniband" then ib::optional else {} end;

# Why a command has no answer that can be used, for each of those that have none. Input: one reading of the switch.
def faults($commands):
  . as $reading
  | $commands | to_entries[] | . as $one | $reading
  | (if $one.value == "json" then raw::undocumented($one.key) elif $one.value == "ports" then raw::unsectioned($one.key)
     else raw::unanswered($one.key) end)
  | select(. != null) | {command: $one.key, why: .};

# 2026-01-01T00:00:00.123456Z in seconds; jq's own reading knows no fraction.
def seconds:
  if type != "string" then null
  else (capture("^(?<whole>[^.]*)(?<fraction>\\.[0-9]+)?Z$") // null)
    | if . == null then null
      else (.whole + "Z" | c::attempt(fromdateiso8601; null)) as $t | if $t == null then null else $t + ("0" + (.fraction // ".0") | tonumber) end end
  end;

# Why a reading is none of this switch, run and phase; null where it is.
def misplaced($run; $name; $phase; $provider):
  if . == null then "there is no switch-\($phase).json that can be read"
  elif .run != $run then "it is of run \(.run | tojson)"
  elif .switch != $name or .phase != $phase then "it is of \(.switch | tojson), \(.phase | tojson)"
  elif .provider != $provider then "it was read as \(.provider | tojson), and planned as \($provider)"
  elif (.commands | type) != "object" then "it holds no answers"
  elif .collected | seconds == null then "it does not say when it was read"
  else null end;

# ---- which port leads to which host ----

def keys_of: [.port, (.aliases // [])[]] | map(raw::port_key);

# The short names that only one of the plan's hosts has: node1.a.example and node1.b.example are two hosts.
def short_names: [[.name, .hostname] | .[] | strings | raw::short_key] | unique;
def unshared($hosts): [$hosts[] | short_names[]] | group_by(.) | map(select(length == 1)[0]);

# The ports of a host: those that the inventory names; else those whose neighbour has the host's name (in full; where none
# has, without domain), and of these, where the neighbour's port is an interface of the fabric, only those. Input: all
# ports. $host: {name, hostname, netdevs}; $unshared: short names of one host alone.
def of_host($named; $host; $unshared):
  if $named != null then
    [$named[] | raw::port_key] as $wanted | map(select(keys_of | any(.[]; . as $k | $wanted | index([$k]) != null)))
  else
    ([$host.name, $host.hostname] | map(strings | raw::host_key)) as $names
    | ($host | short_names | map(select(. as $n | $unshared | index([$n]) != null))) as $short
    | map(select(any(.neighbours[]; .system as $s | ($s | type) == "string" and ($names | index([$s | raw::host_key]) != null)))) as $full
    | (if $full != [] then $full
       else map(select(any(.neighbours[].system | strings | raw::short_key; . as $s | $short | index([$s]) != null))) end)
    | map(select(any(.neighbours[]; .port as $p | $host.netdevs | index([$p]) != null))) as $exact
    | if $exact == [] then . else $exact end
  end;

# The ports that the inventory names and the switch does not have. Input: all ports. $ports: {HOST: [PORT]}
def not_found($hosts; $ports):
  [.[] | keys_of[]] as $there
  | [ $hosts[].name as $host | ($ports[$host] // [])[] | select(raw::port_key as $k | $there | index([$k]) == null)
      | {host: $host, port: tostring} ];

# ---- what grew ----

# Null where one of the two is not known, and where the later one is smaller: cleared, started again, or wrapped.
def grown($before; $after): if $before == null or $after == null or $after < $before then null else $after - $before end;
def lost($what; $before; $after): if $before == null or $after == null or $after >= $before then empty else "\($what): \($before), then \($after)" end;
def rate($n; $seconds): if $n == null then null else c::ratio($n; $seconds) end;

# $seconds: between the two readings of queues.
def queue_row($before; $seconds):
  . as $a
  | ([$before.queues[]? | select(.queue == $a.queue)] | first) as $b
  | { queue: .queue, priority, mbit_s: (grown($b.bytes; .bytes) | if . == null then null else rate(. * 8 / 1e6; $seconds) end),
      packets_per_s: rate(grown($b.packets; .packets); $seconds), drops: grown($b.drops; .drops),
      ecn_marked: grown($b.ecn_marked; .ecn_marked) };

# In words, that the counters were cleared, or the switch restarted, between the two readings; nothing where it does not show.
# A switch's own clock may differ from ours, so that only its times are compared.
def cleared($before; $seconds):
  .cleared as $now | $before.cleared as $was
  | if $now.ago_s != null then select($now.ago_s < $seconds) | "counters cleared \($now.ago_s) s before the last reading"
    elif ([$now.at, $was.at] | all(type == "number")) and ($now.at - $was.at | fabs) < 1 then empty
    elif $was.ago_s == null and $now.at == $was.at then empty
    else "counters cleared or started again: \($was.at // "\($was.ago_s) s before" | tostring), then \($now.at // "never" | tostring)" end;

# Seconds by which a counter may be older than its reading: a reading has at most 8 commands (EOS), and each may take 120 s
# (switch_check_timeout).
def reading_s: 960;
# More bytes than the port could carry: the counter began anew from another number, or was never one. The port may have
# changed its speed.
def impossible($what; $before; $after; $gbit_s; $seconds):
  grown($before; $after) as $bytes
  | if $bytes == null or $gbit_s == null or $bytes * 8 <= $gbit_s * 1e9 * ($seconds + reading_s) then empty
    else "\($what) grew faster than the port can carry: \($gbit_s | c::figure) Gb/s" end;

# Every counter of a port that went back; one is enough to know that the others began anew, too, whatever they show.
def all_lost($before; $seconds):
  . as $a
  | [ ( .queues[] | . as $q | ([$before.queues[] | select(.queue == $q.queue)] | first) as $b
        | ("drops", "bytes", "packets", "ecn_marked", "waits") as $k
        | lost("\($k | sub("_"; " ")) of queue \(.queue)"; $b[$k]; .[$k]) ),
      (.errors | to_entries[] | lost("errors (\(.key))"; $before.errors[.key]; .value)),
      lost("pause storms"; $before.pfc.storms; .pfc.storms),
      (("rx", "tx") as $way | lost("bytes (\($way))"; $before.bytes[$way]; .bytes[$way]),
        impossible("bytes (\($way))"; $before.bytes[$way]; .bytes[$way]; ([$a.speed_gbit_s, $before.speed_gbit_s] | max); $seconds),
        lost("pause frames (\($way))"; $before.pfc[$way + "_total"]; .pfc[$way + "_total"]),
        (range(8) as $p | lost("pause frames (\($way), priority \($p))"; $before.pfc[$way][$p]; $a.pfc[$way][$p]))),
      cleared($before; $seconds) ];

# Input: the port after the run; $before: the same port before it; seconds between the two readings of the port's counters,
# and of its queues'.
def port_row($before; $seconds; $queue_s):
  . as $a
  | (if $before == null then [] else all_lost($before; $seconds) end) as $lost
  | (if $before != null and $lost == [] then $before else {port, up: $before.up} | raw::port end) as $b
  | grown($b.bytes.rx; .bytes.rx) as $rx | grown($b.bytes.tx; .bytes.tx) as $tx
  | [.queues[] | queue_row($b; $queue_s)] as $queues
  | { port, up: (if .up == null or $b.up == null then null else .up and $b.up end), speed_gbit_s: (.speed_gbit_s | c::rounded),
      priorities: .pfc.enabled_priorities,
      rx_mbit_s: (if $rx == null then null else rate($rx * 8 / 1e6; $seconds) end),
      tx_mbit_s: (if $tx == null then null else rate($tx * 8 / 1e6; $seconds) end),
      pause: {rx: grown($b.pfc.rx_total; .pfc.rx_total), tx: grown($b.pfc.tx_total; .pfc.tx_total)},
      pause_by_priority: {rx: [range(8) | grown($b.pfc.rx[.]; $a.pfc.rx[.])], tx: [range(8) | grown($b.pfc.tx[.]; $a.pfc.tx[.])]},
      storms: grown($b.pfc.storms; .pfc.storms),
      errors: (.errors | with_entries(.key as $k | .value = grown($b.errors[$k]; .value))),
      $queues, $lost }
  | .utilisation_percent = (([.rx_mbit_s, .tx_mbit_s] | map(values) | max) as $most
                            | if $most == null or .speed_gbit_s == null or .speed_gbit_s == 0 then null
                              else $most / 1000 / .speed_gbit_s * 100 | c::rounded end);

# A switch as the verdict shows it. $plan: of the plan {provider, scope, ports, priorities}; $hosts: [{name, hostname,
# netdevs, rates, scope}]; $before, $after: the two readings, or null.
def judged($run; $name; $plan; $hosts; $before; $after):
  ($before | misplaced($run; $name; "before"; $plan.provider)) as $no_before
  | ($after | misplaced($run; $name; "after"; $plan.provider)) as $no_after
  | { name: $name, provider: $plan.provider, scope: $plan.scope, priorities: $plan.priorities, seconds: null, faults: [], gaps: [], not_found: [], rows: [] }
  | if $no_before != null or $no_after != null then
      .faults = [ ("before", "after") as $phase | (if $phase == "before" then $no_before else $no_after end) | select(. != null) | {command: $phase, why: .} ]
    else
      .faults = ([ ("before", "after") as $phase | (if $phase == "before" then $before else $after end) | faults(required($plan.provider))
                   | {command: "\(.command) (\($phase))", why} ])
      | .gaps = ([$after | faults(optional($plan.provider))])
      | .seconds = ((($after.collected | seconds) - ($before.collected | seconds)) | c::rounded)
      | ($before | ports_of($plan.provider)) as $was | ($after | ports_of($plan.provider)) as $is
      | if .faults == [] then # without an answer there is no port, either; another model's words may name none
          .faults = [{before: $was, after: $is} | to_entries[] | select(.value == null or .value == []) | {command: .key, why: other_form($plan.provider)}]
        else . end
      | .seconds as $seconds
      | .not_found = ($is // [] | not_found($hosts; $plan.ports // {}))
      | unshared($hosts) as $unshared
      | .rows = [ $hosts[] | . as $host | ($is // [] | of_host(($plan.ports // {})[$host.name]; $host; $unshared))[]
                  | .port as $port | ([$was[]? | select(.port == $port)] | first) as $earlier
                  | {host: $host.name} + port_row($earlier; $seconds; $seconds) ]
      | if $seconds <= 0 then .faults += [{command: "after", why: "it was not read after the other one"}] else . end
    end;
