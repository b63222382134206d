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

# The engine's bounds: sizes of one job, and bytes of one message (4 GiB - 1).
def most_sizes: 128;
def largest_size: 4294967295;

# "8:64K" -> [8, 16, ..., 65536]; with a third part that step is added. The engine's --size has the same grammar.
def sizes:
  . as $given
  | def refuse: error("size \"\($given)\": \(.); write SIZE, MIN:MAX (doubling) or MIN:MAX:STEP, each from 1 to \(largest_size)");
  (tostring | split(":") | map(bytes)) as $part
  | if any($part[]; . < 1 or . > largest_size) then "a part is out of range" | refuse
    elif ($part | length) == 1 then $part
    elif ($part | length) > 3 then "it has more than three parts" | refuse
    elif $part[1] < $part[0] then "MAX is less than MIN" | refuse
    elif ($part | length) == 2 then [$part[0] | recurse(if . * 2 > $part[1] then empty else . * 2 end)]
    elif ($part[1] - $part[0]) / $part[2] >= most_sizes then "these are more than \(most_sizes) sizes" | refuse
    else [range($part[0]; $part[1] + 1; $part[2])]
    end;

# "300ms" -> 0.3
def seconds:
  if type == "number" then .
  else (capture("^(?<n>[0-9]+([.][0-9]+)?)(?<u>ns|us|ms|s|m|h)$") // error("\"\(.)\" is no duration; write 300ms, 2s or 1m"))
    | (.n | tonumber) * {ns: 1e-9, us: 1e-6, ms: 0.001, s: 1, m: 60, h: 3600}[.u]
  end;

# "100Kmsg/s", "5Gb/s" -> seconds from one message of that size to the next; these K, M, G are decimal, as in the engine.
def pace($size):
  (capture("^(?<n>[0-9]+([.][0-9]+)?)(?<k>[KMG]?)(?<u>msg/s|messages/s|b/s)$") // error("\"\(.)\" is no rate; write 1000msg/s or 5Gb/s"))
  | ((.n | tonumber) * {"": 1, K: 1e3, M: 1e6, G: 1e9}[.k]) as $rate
  | if $rate == 0 then error("a rate must be above 0") elif .u == "b/s" then 8 * $size / $rate else 1 / $rate end;

# ---- what the engine would refuse ---------------------------------------------------------------------------------

# Why a test cannot be measured at all, first reason only; empty when it can. The engine has the same rules, but a host
# would find out only in the middle of the run.
def contradiction:
  .params as $p
  | ($p.size | sizes) as $sizes
  | if .tool != "perch" then
      (if .kind != "bandwidth" then "\(.tool) measures bandwidth only"
       elif .backend != null or .provider != null or .op != "send" then "\(.tool) has no backend, provider or op"
       elif .tool != "iperf3" and $p.omit != null then "omit is iperf3's"
       elif ($sizes | length) != 1 then "\(.tool) measures one size a test"
       elif $p.duration == null then "\(.tool) needs a duration"
       else empty end)
    elif (.backend | IN("tcp", "ofi", "null") | not) then "unknown backend \(.backend); known are tcp, ofi and null"
    elif .backend == "tcp" and .op != "send" then "backend tcp has op send only, not \(.op)"
    elif .backend != "ofi" and .provider != null then "backend \(.backend) has no providers"
    elif .backend == "null" and $p.completion == "event" then "backend null cannot wait by events"
    elif $p.iterations != null and $p.duration != null then "iterations and duration exclude each other"
    elif $p.iterations == 0 then "iterations must be above 0"
    elif $p.gap != null and $p.rate != null then "gap and rate both set the pace"
    elif .kind == "bandwidth" and $p.definition != null then "definition belongs to latency"
    elif .kind == "bandwidth" and $p.gap != null then "gap belongs to latency; bandwidth is slowed with rate"
    elif .kind == "latency" and (($p.outstanding // 1) != 1 or $p.bidirectional == true)
      then "latency is one message at a time, one way: outstanding and bidirectional belong to bandwidth"
    elif $p.definition == "completion" and .op == "send" then "op send is only measured as half_round_trip"
    elif $p.definition == "half_round_trip" and (.op | IN("send", "write") | not) then "op \(.op) is only measured as completion"
    elif (.op | IN("fetch-add", "compare-swap")) and any($sizes[]; . % 8 != 0) then "op \(.op) works on 64-bit words: sizes are multiples of 8"
    elif $p.bidirectional == true and $p.interval != null and .op != "send" then "interval with bidirectional needs op send"
    elif $p.bidirectional == true and $p.verify == true and (.op | IN("fetch-add", "compare-swap"))
      then "what op \(.op) leaves cannot be verified in both directions"
    else empty
    end;

def zero_time: .params | to_entries[] | select(.key | IN("duration", "interval", "timeout")) | select(.value | seconds == 0) | .key;

# The test itself, or the end of the plan with the test's name.
def checked:
  . as $test
  | try ((first(contradiction, (zero_time | "\(.) must be above 0")) | error), (.params.gap // 0 | seconds | empty),
         (.params.rate // empty | pace(1) | empty), $test)
    catch error("test \($test.name): \(.)");

# ---- hosts --------------------------------------------------------------------------------------------------------

def plan_host:
  { address: .perch_address,
    group: (.perch_group // null),
    fabric: .perch_fabric,
    scope: (.perch_scope // (if .perch_fabric == "loopback" then "software" else "hardware" end)),
    backends: (.perch_backends // []),
    tools: (.perch_tools // ["perch", "iperf3", "iperf"]),
    devices: (.perch_devices // []),
    port: (.perch_port // 18600),   # the engine's default control port
    tool_ports: {iperf3: (.perch_iperf3_port // 5201), iperf: (.perch_iperf_port // 5001)} };   # the tools' own defaults

# Why this host cannot take part in a test; empty when it can.
def lacks($test):
  if (.tools | index($test.tool)) == null then "has no tool \($test.tool)"
  elif $test.backend != null and (.backends | index($test.backend)) == null then "has no backend \($test.backend)"
  elif $test.provider == "shm" and .fabric != "loopback" then "shares no memory with another host (provider shm)"
  else empty
  end;

# Providers that drive a card themselves (fi_provider(7)), also below a utility provider such as ofi_rxm.
def of_hardware: test("(^|;)(verbs|cxi|efa|psm[0-9x]*|opx)(;|$)");

# What the figures are worth: hardware only where the provider is named and drives a card, whatever card carries the
# rest. Which provider libfabric chose by itself is known only from the record.
def scope_of($test; $client; $server):
  if [$client.scope, $server.scope] | index("simulated") then "simulated"
  elif [$client.scope, $server.scope] | index("software") then "software"
  elif [$client.fabric, $server.fabric] | index("loopback") then "software"
  elif $test.tool == "perch" and $test.backend == "ofi" and ($test.provider // "" | of_hardware) then "hardware"
  else "software"
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

def iperf3_argv($params; $client; $server):
  { client: (["iperf3", "-c", $server.address, "-B", $client.address, "-p", "\($server.tool_ports.iperf3)", "-J",
      "-l", "\($params.size | bytes)", "-t", "\($params.duration | seconds)", "-P", "\($params.streams // 1)"]
      + (if $params.omit then ["-O", "\($params.omit | seconds)"] else [] end)),
    server: ["iperf3", "-s", "-1", "-B", $server.address, "-p", "\($server.tool_ports.iperf3)", "-J"] };

# -e: initial round trip and window; -i 1: a line a second.
def iperf_argv($params; $client; $server):
  (if $server.address | contains(":") then ["-V"] else [] end) as $family
  | { client: (["iperf", "-c", $server.address, "-B", $client.address, "-p", "\($server.tool_ports.iperf)", "-e", "-i", "1",
        "-l", "\($params.size | bytes)", "-t", "\($params.duration | seconds)", "-P", "\($params.streams // 1)"] + $family),
      server: (["iperf", "-s", "-B", $server.address, "-p", "\($server.tool_ports.iperf)", "-e", "-i", "1"] + $family) };

# ---- times --------------------------------------------------------------------------------------------------------

# A message over loopback TCP on a laptop with two cores: 25 us there and back, and 2 GB/s.
def usual: 2.5e-5 + . / 2e9;

# The same where two pollers share one core: the slice of 3 ms of the kernel's scheduler a message.
def worst: 3e-3 + . / 1e8;

# Seconds that the sizes of a test take, by what one message costs. A gap comes after each message, a rate is a floor.
# Warm-up is the engine's default of 100 messages; the defaults of iterations are the engine's, too.
def measuring(message):
  .params as $p
  | (.kind == "latency") as $latency
  | [$p.size | sizes[] as $size
     | ($size | message + ($p.gap // 0 | seconds)) as $cost
     | ([$cost, ($p.rate // empty | pace($size))] | max) as $each
     | $each * ($p.warmup // 100)
       + (if $p.duration then ($p.duration | seconds) + $each
          else $each * ($p.iterations // (if $latency then 1000 else 5000 end)) end)]
  | add;

# Seconds that a flow takes, about. Half a second covers connecting and the two meetings.
def estimate($test):
  (if $test.tool == "perch" then $test | measuring(usual)
   else ($test.params.duration | seconds) + ($test.params.omit // 0 | seconds)
   end)
  | . + 0.5 | . * 10 | round / 10;

# A flow's end for certain: the engine's 30 s without progress, and three times what it should take on a busy machine.
def deadline($test):
  (if $test.tool == "perch" then $test | measuring(worst) else 0 end) as $worst
  | 30 + 3 * ([estimate($test), $worst] | max) | ceil;

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
      ready: ($s.tool_ports[$test.tool] | if . then {port: ., proto: "tcp"} else null end),
      deadline_s: deadline($test), estimate_s: estimate($test),
      expect: [$test.params.size | sizes[] | {size_bytes: .}] };

# Of a test: the hosts that can take part, and why the others cannot.
def taking_part($test; $hosts):
  [$hosts | keys_unsorted[] | . as $name | {name: $name, lacks: ([$hosts[$name] | lacks($test)] | first)}]
  | { able: map(select(.lacks == null).name), unable: map(select(.lacks != null)) };

def excluded($test; $part):
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

# The output begins here. Repeats are outermost: what drifts over the run then shows as a spread between repeats.
. as $in
| ($in.hosts | map_values(plan_host)) as $hosts
| [$in.suite.tests[]
   | {provider: null, backend: null, op: "send", repeat: 1, params: {}} + . | checked
   | . as $test | taking_part($test; $hosts) as $part
   | $test + {part: $part, circle: (if ($part.able | length) < 2 then [] else $part.able | circle_rounds end)}] as $tests
| { schema: "perch.plan/1", run: $in.run, created: $in.created,
    suite: {name: $in.suite.name, title: $in.suite.title}, limits: $in.limits, hosts: ($hosts | map_values(del(.tool_ports))),
    excluded: [($tests[] | . as $test | excluded($test; .part)), left_out($tests; $hosts)],
    rounds: [range(1; ([$tests[].repeat] | max // 0) + 1) as $repeat
             | $tests[] | select(.repeat >= $repeat) | . as $test
             | .circle[]
             | {flows: [.[] | flow($test; $repeat; .[0]; .[1]; $hosts)]}] }
