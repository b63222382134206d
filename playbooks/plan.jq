# Inventory and suite -> plan.json (perch.plan/1): every flow that must be measured, before anything runs.
#
# Input: {run, created, limits, suite{name,title,tests[]}, hosts{NAME: {perch_address, perch_fabric, ...}}}. Both were
# checked before (role inventory_check); what is asked beyond a host's means becomes `excluded`, with the reason.

# ---- numbers with units -------------------------------------------------------------------------------------------

# "64K" -> 65536: K, M, G are powers of 1024, as the engine reads them.
def bytes:
  if type == "number" then .
  else (capture("^(?<n>[0-9]+)(?<u>[KMG]?)$") // error("\"\(.)\" is no size; write 8, 64K or 1M"))
    | (.n | tonumber) * {"": 1, K: 1024, M: 1048576, G: 1073741824}[.u]
  end;

# "8:64K" -> [8, 16, ..., 65536]; with a third part that step is added. The engine's --size has the same grammar.
def sizes:
  (tostring | split(":") | map(bytes)) as $part
  | if ($part | length) == 1 then $part
    elif ($part | length) == 2 then [$part[0] | recurse(if . * 2 > $part[1] then empty else . * 2 end)]
    else [range($part[0]; $part[1] + 1; $part[2])]
    end;

# "300ms" -> 0.3
def seconds:
  if type == "number" then .
  else (capture("^(?<n>[0-9.]+)(?<u>ms|s|m|h)$") // error("\"\(.)\" is no duration; write 300ms, 2s or 1m"))
    | (.n | tonumber) * {ms: 0.001, s: 1, m: 60, h: 3600}[.u]
  end;

# ---- hosts --------------------------------------------------------------------------------------------------------

def plan_host:
  { address: .perch_address,
    group: (.perch_group // null),
    fabric: .perch_fabric,
    scope: (.perch_scope // (if .perch_fabric == "loopback" then "software" else "hardware" end)),
    backends: (.perch_backends // []),
    tools: (.perch_tools // ["perch", "iperf3", "iperf"]),
    devices: (.perch_devices // []),
    port: (.perch_port // 18600) };   # the engine's default control port

# Why this host cannot take part in a test; empty when it can.
def lacks($test):
  if (.tools | index($test.tool)) == null then "has no tool \($test.tool)"
  elif $test.backend != null and (.backends | index($test.backend)) == null then "has no backend \($test.backend)"
  elif $test.provider == "shm" and .fabric != "loopback" then "shares no memory with another host (provider shm)"
  else empty
  end;

# What the figures are worth: providers and stacks in software are never hardware, whatever card carries them.
def scope_of($test; $client; $server):
  if [$client.scope, $server.scope] | index("simulated") then "simulated"
  elif [$client.scope, $server.scope] | index("software") then "software"
  elif $test.tool != "perch" or ($test.backend | IN("tcp", "null")) then "software"
  elif ($test.provider // "") | test("^(tcp|udp|shm|sockets)") then "software"
  else "hardware"
  end;

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

# {size: "8", verify: true} -> ["--size", "8", "--verify"]
def options:
  [to_entries[]
   | select(.value != false and .value != null)
   | "--" + (.key | gsub("_"; "-")), (select(.value != true) | .value | tostring)];

def perch_argv($test; $client; $server):
  ["perch", {latency: "lat", bandwidth: "bw"}[$test.kind], $server.address, "--backend", $test.backend]
  + (if $test.provider then ["--provider", $test.provider] else [] end)
  + ["--op", $test.op] + ($test.params | options) + ["--bind", $client.address, "--json"];

# The external tools' own default ports.
def tool_port: {iperf3: 5201, iperf: 5001}[.];

def iperf3_argv($params; $client; $server):
  { client: (["iperf3", "-c", $server.address, "-B", $client.address, "-p", "\("iperf3" | tool_port)", "-J",
      "-l", "\($params.size | bytes)", "-t", "\($params.duration | seconds)", "-P", "\($params.streams // 1)"]
      + (if $params.omit then ["-O", "\($params.omit | seconds)"] else [] end)),
    server: ["iperf3", "-s", "-1", "-B", $server.address, "-p", "\("iperf3" | tool_port)", "-J"] };

# -e: initial round trip and window; -i 1: a line a second.
def iperf_argv($params; $client; $server):
  (if $server.address | contains(":") then ["-V"] else [] end) as $family
  | { client: (["iperf", "-c", $server.address, "-B", $client.address, "-p", "\("iperf" | tool_port)", "-e", "-i", "1",
        "-l", "\($params.size | bytes)", "-t", "\($params.duration | seconds)", "-P", "\($params.streams // 1)"] + $family),
      server: (["iperf", "-s", "-B", $server.address, "-p", "\("iperf" | tool_port)", "-e", "-i", "1"] + $family) };

# ---- times --------------------------------------------------------------------------------------------------------

# Seconds that a flow takes, about. Without a duration: 100 us a message, the slow end of small messages over loopback
# TCP on a laptop. Half a second covers connecting, warm-up and the two meetings.
def estimate($test):
  ($test.params.size | sizes | length) as $n
  | if $test.tool == "perch"
    then $n * (($test.params.duration // null | if . then seconds else null end)
               // (($test.params.iterations // 1000) * 0.0001)) + 0.5
    else ($test.params.duration | seconds) + ($test.params.omit // 0 | seconds) + 0.5
    end
  | . * 10 | ceil / 10;

# A flow's end for certain: the engine's 30 s without progress, and three times what it should take.
def deadline: 30 + 3 * . | ceil;

# ---- the plan -----------------------------------------------------------------------------------------------------

def flow($test; $repeat; $client; $server; $hosts):
  $hosts[$client] as $c | $hosts[$server] as $s
  | (if $test.tool == "perch" then {client: perch_argv($test; $c; $s), server: []}
     elif $test.tool == "iperf3" then iperf3_argv($test.params; $c; $s)
     else iperf_argv($test.params; $c; $s)
     end) as $argv
  | { id: "\($test.name)/\($client)/\($server)/\($repeat)", test: $test.name, title: $test.title, repeat: $repeat,
      tool: $test.tool, backend: $test.backend, provider: $test.provider, op: $test.op, kind: $test.kind,
      client: $client, server: $server, scope: scope_of($test; $c; $s),
      client_argv: $argv.client, server_argv: $argv.server,
      ready: ($test.tool | tool_port | if . then {port: ., proto: "tcp"} else null end),
      deadline_s: (estimate($test) | deadline), estimate_s: estimate($test),
      expect: [$test.params.size | sizes[] | {size_bytes: .}] };

# Of a test: the hosts that can take part, and why the others cannot.
def taking_part($test; $hosts):
  [$hosts | keys_unsorted[] | . as $name | {name: $name, lacks: ([$hosts[$name] | lacks($test)] | first)}]
  | { able: map(select(.lacks == null).name), unable: map(select(.lacks != null)) };

def excluded($test; $part):
  ($part.unable[] | {test: $test.name, reason: "\(.name) \(.lacks)"}),
  (select(($part.able | length) < 2)
   | {test: $test.name, reason: "two hosts are needed and \($part.able | length) can take part"});

# The output begins here. Repeats are outermost: what drifts over the run then shows as a spread between repeats.
. as $in
| ($in.hosts | map_values(plan_host)) as $hosts
| [$in.suite.tests[]
   | {provider: null, backend: null, op: "send", repeat: 1, params: {}} + .
   | . as $test | taking_part($test; $hosts) as $part
   | $test + {part: $part, circle: (if ($part.able | length) < 2 then [] else $part.able | circle_rounds end)}] as $tests
| { schema: "perch.plan/1", run: $in.run, created: $in.created,
    suite: {name: $in.suite.name, title: $in.suite.title}, limits: $in.limits, hosts: $hosts,
    excluded: [$tests[] | . as $test | excluded($test; .part)],
    rounds: [range(1; ([$tests[].repeat] | max // 0) + 1) as $repeat
             | $tests[] | select(.repeat >= $repeat) | . as $test
             | .circle[]
             | {flows: [.[] | flow($test; $repeat; .[0]; .[1]; $hosts)]}] }
