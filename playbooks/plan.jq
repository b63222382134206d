# Inventory and suite -> plan.json (perch.plan/1): every flow that must be measured, before anything runs.
#
# Input: {run, created, limits, suite{name,title,tests[]}, hosts{NAME: {perch_address, perch_fabric, ...}},
# switches{NAME: {switch_check_provider, ...}}}; of a soak also suite.soak{} and soak_duration, else "". Both were
# checked before (role inventory_check); what is asked beyond a host's means becomes `excluded`, with the reason.

import "plan/units" as u {search: "./"};
import "plan/engine" as engine {search: "./"};
import "plan/transfer" as transfer {search: "./"};
import "plan/perftest" as perftest {search: "./"};
import "plan/cxi" as cxi {search: "./"};
import "plan/switch" as switch {search: "./"};
import "plan/soak" as soak {search: "./"};

# ---- what cannot be measured --------------------------------------------------------------------------------------

# iperf and iperf3: first reason only; empty when there is none.
def stream_contradiction:
  .params as $p
  | if .kind != "bandwidth" then "\(.tool) measures bandwidth only"
    elif .backend != null or .provider != null or .op != "send" then "\(.tool) has no backend, provider or op"
    elif .tool != "iperf3" and $p.omit != null then "omit is iperf3's"
    elif ($p.size | u::sizes | length) != 1 then "\(.tool) measures one size a test"
    elif $p.duration == null then "\(.tool) needs a duration"
    else empty end;

# A host would find out only in the middle of the run.
def contradiction:
  if .tool == "perch" and .kind == "transfer" then transfer::contradiction
  elif .tool == "perch" then engine::contradiction
  elif .tool == "perftest" then perftest::contradiction
  elif .tool == "cxi" then cxi::contradiction
  else stream_contradiction end;

def zero_time: .params | to_entries[] | select(.key | IN("duration", "interval", "timeout")) | select(.value | u::seconds == 0) | .key;

# The test itself, or the end of the plan with the test's name.
def checked($soak):
  . as $test
  | try ((first((if $soak == null then empty else soak::contradiction end), contradiction, (zero_time | "\(.) must be above 0")) | error), (.params.gap // 0 | u::seconds | empty),
         (.params.rate // empty | u::pace(1) | empty), $test)
    catch error("test \($test.name): \(.)");

# ---- hosts --------------------------------------------------------------------------------------------------------

def plan_host:
  { address: .perch_address,
    group: (.perch_group // null),
    switch: (.perch_switch // null),
    fabric: .perch_fabric,
    scope: (.perch_scope // (if .perch_fabric == "loopback" then "software" else "hardware" end)),
    backends: (.perch_backends // []),
    tools: (.perch_tools // ["perch", "perftest", "iperf3", "iperf"]),
    devices: [.perch_devices // [] | .[] | if type == "string" then {name: .} else . end],
    port: (.perch_port // 18600),   # the engine's default control port
    # the tools' own defaults
    tool_ports: {iperf3: (.perch_iperf3_port // 5201), iperf: (.perch_iperf_port // 5001),
                 perftest: (.perch_perftest_port // 18515), cxi: (.perch_cxi_port // 49194)},
    slowdown: (.perch_slowdown // 1) };

# Why this host cannot take part in a test; empty when it can.
def lacks($test):
  if (.tools | index($test.tool)) == null then "has no tool \($test.tool)"
  elif $test.backend != null and (.backends | index($test.backend)) == null then "has no backend \($test.backend)"
  elif $test.tool == "perftest" and .devices == [] then "names no RDMA device (perch_devices), and perftest would take any"
  elif $test.tool == "cxi" and .devices == [] then "names no Cassini device (perch_devices), and the tool would take cxi0"
  elif $test.provider == "shm" and .fabric != "loopback" then "shares no memory with another host (provider shm)"
  elif $test.kind == "transfer" then transfer::lacks($test)
  else empty
  end;

# Software RDMA devices by their usual names, of the $n that are used; one with another name is known by its driver, from
# the record.
def soft_device($n): any(.devices[:$n][].name; test("^(rxe|siw)"));

def devices_used($test; $client; $server): if $test.kind == "transfer" then transfer::pairs($test; $client; $server) else 1 end;

def is_verbs($test): $test.tool == "perftest" or $test.backend == "verbs";
def is_cxi($test): $test.tool == "cxi" or $test.backend == "cxi";

# What the figures are worth: hardware only where the backend or provider is named and drives a card, whatever card
# carries the rest. Which provider libfabric chose by itself is known only from the record.
def scope_of($test; $client; $server):
  if [$client.scope, $server.scope] | index("simulated") then "simulated"
  elif [$client.scope, $server.scope] | index("software") then "software"
  elif [$client.fabric, $server.fabric] | index("loopback") then "software"
  elif is_cxi($test) then "hardware"
  elif is_verbs($test) then
    devices_used($test; $client; $server) as $n | if any($client, $server; soft_device($n)) then "software" else "hardware" end
  elif $test.tool == "perch" and $test.backend == "ofi" and ($test.provider // "" | u::of_hardware) then "hardware"
  else "software"
  end;

# How far apart two hosts are: the switch that they hang on, the group of switches that it belongs to. Null where the
# inventory does not say it of both; a group spans the switches within it.
def hop_class($client; $server):
  def both($key): $client[$key] != null and $server[$key] != null;
  if both("switch") and $client.switch == $server.switch then "same_switch"
  elif both("group") and $client.group != $server.group then "cross_group"
  elif both("group") and both("switch") then "same_group"
  else null end;

# ---- pairs --------------------------------------------------------------------------------------------------------

# The circle method of round-robin tournaments: every pair once, each round a set of pairs that share no host. One
# host stays, the others turn by one place a round; with an odd number of hosts, who meets null has a free round.
def circle_rounds:
  (if length % 2 == 1 then . + [null] else . end) as $host
  | ($host | length) as $n
  | [range($n - 1) as $turn
     | [$host[0]] + [range($n - 1) | $host[1 + (. + $turn) % ($n - 1)]]
     | . as $circle
     | [range($n / 2) | [$circle[.], $circle[$n - 1 - .]] | select(all(. != null))]];

# ---- command lines ------------------------------------------------------------------------------------------------

def iperf3_argv($params; $client; $server):
  { client: (["iperf3", "-c", $server.address, "-B", $client.address, "-p", "\($server.tool_ports.iperf3)", "-J",
      "-l", "\($params.size | u::bytes)", "-t", "\($params.duration | u::seconds)", "-P", "\($params.streams // 1)"]
      + (if $params.omit then ["-O", "\($params.omit | u::seconds)"] else [] end)),
    server: ["iperf3", "-s", "-1", "-B", $server.address, "-p", "\($server.tool_ports.iperf3)", "-J"] };

# -e: initial round trip and window; -i 1: a line a second.
def iperf_argv($params; $client; $server):
  (if $server.address | contains(":") then ["-V"] else [] end) as $family
  | { client: (["iperf", "-c", $server.address, "-B", $client.address, "-p", "\($server.tool_ports.iperf)", "-e", "-i", "1",
        "-l", "\($params.size | u::bytes)", "-t", "\($params.duration | u::seconds)", "-P", "\($params.streams // 1)"] + $family),
      server: (["iperf", "-s", "-B", $server.address, "-p", "\($server.tool_ports.iperf)", "-e", "-i", "1"] + $family) };

# ---- times --------------------------------------------------------------------------------------------------------

# A message over loopback TCP on a laptop with two cores: 25 us there and back, and 2 GB/s. Over a software RDMA device
# on the same laptop (rdma_rxe, measured with perftest): 50 us and 60 MB/s. Over the slowest RoCE link in use, 10 Gb/s,
# a message takes no longer than over TCP.
def usual($test; $scope):
  if is_verbs($test) and $scope != "hardware" then 5e-5 + . / 6e7 elif is_verbs($test) then 2.5e-5 + . / 1e9 else 2.5e-5 + . / 2e9 end;

# The same where two pollers share one core: the slice of 3 ms of the kernel's scheduler a message.
def worst: 3e-3 + . / 1e8;

# How much slower the slower host is than a laptop: inventory's perch_slowdown. Durations take their time on any host,
# and so do gaps; what is counted in messages takes longer, and so does starting a program (half a second there, which
# covers connecting and the two meetings).
def slowdown($client; $server): [$client.slowdown, $server.slowdown] | max;

# Pairs of devices work side by side on cards; where software does their work, they share its cores.
def sharing($scope): if $scope == "hardware" then 1 else . end;

# Seconds that a flow takes, about. $pairs: of devices, in a transfer.
def estimate($test; $scope; $slow; $pairs):
  (if $test.kind == "transfer" then $test | transfer::measuring(usual($test; $scope) * $slow; $pairs | sharing($scope))
   elif $test.tool == "perch" then $test | engine::measuring(usual($test; $scope) * $slow)
   elif $test.tool == "perftest" then $test | perftest::measuring(usual($test; $scope) * $slow)
   elif $test.tool == "cxi" then $test | cxi::measuring(usual($test; $scope) * $slow)
   else ($test.params.duration | u::seconds) + ($test.params.omit // 0 | u::seconds)
   end)
  | . + 0.5 * $slow | . * 10 | round / 10;

# A flow's end for certain: the engine's 30 s without progress, and three times what it should take on a busy machine.
def deadline($test; $estimate; $slow; $pairs):
  (if $test.kind == "transfer" then $test | transfer::measuring(worst * $slow; $pairs)
   elif $test.tool == "perch" then $test | engine::measuring(worst * $slow)
   elif $test.tool == "perftest" then $test | perftest::measuring(worst * $slow)
   elif $test.tool == "cxi" then $test | cxi::measuring(worst * $slow)
   else 0 end) as $worst
  | 30 + 3 * ([$estimate, $worst] | max) | ceil;

# ---- the plan -----------------------------------------------------------------------------------------------------

def flow($test; $repeat; $client; $server; $hosts):
  $hosts[$client] as $c | $hosts[$server] as $s
  | scope_of($test; $c; $s) as $scope
  | slowdown($c; $s) as $slow
  | devices_used($test; $c; $s) as $pairs
  | estimate($test; $scope; $slow; $pairs) as $estimate
  | (if $test.kind == "transfer" then {client: transfer::argv($test; $c; $s), server: []}
     elif $test.tool == "perch" then {client: engine::argv($test; $c; $s), server: []}
     elif $test.tool == "perftest" then perftest::argv($test; $c; $s)
     elif $test.tool == "cxi" then cxi::argv($test; $c; $s)
     elif $test.tool == "iperf3" then iperf3_argv($test.params; $c; $s)
     else iperf_argv($test.params; $c; $s)
     end) as $argv
  | { id: "\($test.name)/\($client)/\($server)/\($repeat)", test: $test.name, title: $test.title, repeat: $repeat,
      tool: $test.tool, backend: $test.backend, provider: $test.provider, op: $test.op, kind: $test.kind,
      client: $client, server: $server, $scope,
      client_argv: $argv.client, server_argv: $argv.server,
      ready: ($s.tool_ports[$test.tool] | if . then {port: ., proto: "tcp"} else null end),
      deadline_s: deadline($test; $estimate; $slow; $pairs), estimate_s: $estimate,
      expect: (if $test.kind == "transfer" then transfer::expect($test; $c; $s)
               else
                 [($test
                   | if .tool == "perftest" then perftest::sizes
                     elif .tool == "cxi" then cxi::sizes
                     else .params.size | u::sizes end)[] | {size_bytes: .}] end) }
    + (hop_class($c; $s) | if . == null then {} else {hop_class: .} end);

# Of a test: the hosts that can take part, and why the others cannot.
def taking_part($test; $hosts):
  [$hosts | keys_unsorted[] | . as $name | {name: $name, lacks: ([$hosts[$name] | lacks($test)] | first)}]
  | { able: map(select(.lacks == null).name), unable: map(select(.lacks != null)) };

# The rounds of a transfer without the pairs of hosts whose devices do not fit each other, and `unfit`, why they do not;
# `alone`: devices that the other end has no partner for.
def fitted($hosts):
  . as $test
  | def reasons: [transfer::unfit($test; $hosts[.[0]]; $hosts[.[1]])];
    if .kind != "transfer" then .
    else
      . + { unfit: [.circle[][] | . as $pair | reasons[] | {pair: $pair, why: .}],
            circle: [.circle[] | map(select(reasons == [])) | select(. != [])] }
      | . + {alone: [.circle[][] | . as [$c, $s] | {pair: ., devices: [transfer::alone($test; $hosts[$c]; $hosts[$s])]}
                     | select(.devices != [])]}
    end;

def excluded($test; $part):
  ($test.unfit // [] | .[] | {test: $test.name, reason: "\(.pair | join(" and ")): \(.why)"}),
  ($test.alone // [] | .[]
   | {test: "\(.devices | join(", ")) in \($test.name)", reason: "\(.pair | join(" and ")): the other host has no device to pair with"}),
  ($part.unable[] | {test: $test.name, reason: "\(.name) \(.lacks)"}),
  (select(($part.able | length) < 2)
   | {test: $test.name, reason: "two hosts are needed and \($part.able | length) can take part"});

# What is not measured at all, said once more: a host in no flow, and a suite with nothing of the network left.
def left_out($tests; $hosts):
  [$tests[] | select(.circle != [])] as $measured
  | (select(any($tests[]; .backend != "null") and all($measured[]; .backend == "null"))
     | {test: "every test of the network", reason: "nothing of the network is measured: all its tests are excluded"}),
    ($hosts | keys_unsorted[] | . as $name
     | select(all($measured[]; .part.able | index($name) == null))
     | {test: "every test", reason: "host \($name) is in no flow"});

# Of each host, how many of its devices flows use: always the first ones. A flow that names none goes where the host's address lies.
def devices_in_flows($tests; $hosts):
  reduce ($tests[] | select(.backend != "null") | . as $test | .circle[][] | . as [$client, $server]
          | devices_used($test; $hosts[$client]; $hosts[$server]) as $n | .[] | {host: ., $n}) as $use
    ({}; .[$use.host] = ([.[$use.host] // 0, $use.n] | max));

def idle_nics($tests; $hosts):
  devices_in_flows($tests; $hosts) as $used
  | [$hosts | to_entries[] | .key as $host | ($used[$host] // 0) as $n | .value.devices[$n:][] | {nic: .name, $host}]
  | group_by(.nic)[]
  | map(.host) as $names
  | { test: "every test", nic: .[0].nic,
      reason: "no flow uses \(.[0].nic) of \($names[:5] | join(", "))\(if ($names | length) > 5 then " and \($names | length - 5) more hosts" else "" end)" };

# Repeats are outermost: what drifts over the run then shows as a spread between repeats.
def measured_rounds($tests; $hosts):
  [range(1; ([$tests[].repeat] | max // 0) + 1) as $repeat
   | $tests[] | select(.repeat >= $repeat) | . as $test
   | .circle[]
   | {flows: [.[] | flow($test; $repeat; .[0]; .[1]; $hosts)]}];

def soaked_rounds($soak; $schedule; $hosts):
  [$schedule[]
   | {flows: [.[] | . as $part | (.test | soak::lasting($soak; $part.duration_s)) as $test
              | .pairs[] | flow($test; $part.turn; .[0]; .[1]; $hosts)
              | .estimate_s = $part.duration_s | .deadline_s = soak::deadline_s($soak; $part.duration_s)]}];

# The output begins here.
. as $in
| (if $in.suite.soak != null and ($in.soak_duration // "") == "" then
     error("suite \($in.suite.name) is a soak, which needs a time: playbooks/soak.yml -e soak_duration=24h measures it")
   elif ($in.soak_duration // "") == "" then null else $in | soak::settings end) as $soak
| ($in.hosts | map_values(plan_host)) as $hosts
| ($in | switch::planned($in.hosts)) as $switches
| [$in.suite.tests[]
   | {provider: null, backend: null, op: "send", repeat: 1, params: {}} + . | checked($soak)
   | . as $test | taking_part($test; $hosts) as $part
   | $test + {part: $part, circle: (if ($part.able | length) < 2 then [] else $part.able | circle_rounds end)} | fitted($hosts)] as $tests
| (if $soak == null then null else soak::schedule($soak; $tests) end) as $schedule
| { schema: "perch.plan/1", run: $in.run, created: $in.created,
    suite: {name: $in.suite.name, title: $in.suite.title}, limits: $in.limits,
    host_checks: true, # every host owes them; plans of before did not say so
    hosts: ($hosts | map_values(.ports = ([.port, .tool_ports[]] | unique) | del(.tool_ports, .slowdown) | if .switch == null then del(.switch) else . end)),
    excluded: [($tests[] | . as $test | excluded($test; .part)), left_out($tests; $hosts), idle_nics($tests; $hosts)],
    rounds: (if $soak == null then measured_rounds($tests; $hosts) else soaked_rounds($soak; $schedule; $hosts) end) }
  + (if $soak == null then {} else {soak: soak::said($soak; $schedule; $hosts)} end)
  + if $switches == {} then {} else {$switches} end
