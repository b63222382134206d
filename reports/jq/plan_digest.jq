# plan.json -> what a report says of it: all but its rounds, and `counted`. A plan of 100,000 flows fills half a gigabyte, so it comes
# in pieces (prepare): objects with keys of the plan, and its rounds, each by itself. What no report can be made of is an error.
# Input (-n): these.

def sep: "\t";

def word: if test("^[A-Za-z0-9_./:=,%+@-]+$") then . else @sh | gsub("(?<end>[\r\n])"; "'$'" + {"\r": "\\r", "\n": "\\n"}[.end] + "''") end;
def command: map(tostring | word) | join(" ");

# Commands of one test differ in addresses and devices; some of them are enough.
def commands_max: 8;
def with_command($argv):
  if length >= commands_max or ($argv // [] | length) == 0 then .
  else ($argv | command) as $one | if index([$one]) != null then . else . + [$one] end end;

def usable($hosts):
  (.id | type) == "string" and (.test | type) == "string" and $hosts[.client] != null and $hosts[.server] != null
  and (.tool | type) == "string" and (.client_argv | type) == "array" and (.expect | type) == "array" and (.expect | length) > 0;

# The states are flat, and nothing holds them while they change, for the reason given in passing.jq.
def counted($key): (.[$key] + 1) as $n | setpath([$key]; $n);

# [title, kind, commands of the clients, of the servers] of a test, from its first flows
def described($flow):
  ("test" + sep + $flow.test) as $key | .[$key] as $old
  | [ $old // [$flow.title // $flow.test, $flow.kind, [], []] | [.[0], .[1], (.[2] | with_command($flow.client_argv)), (.[3] | with_command($flow.server_argv))] ] as $new
  | setpath([$key]; $new[0]);

def with_flow($flow; $hosts):
  [$flow | usable($hosts)] as $usable
  | if $usable[0] then . else error("flow \($flow.id | tojson) cannot be used") end
  | ("flows" + sep + $flow.test) as $of
  | if .[$of] == null or .[$of] < 4 * commands_max then described($flow) else . end
  | counted($of)
  | counted("pair" + sep + (if $flow.hop_class == null then "not stated" else $flow.hop_class end) + sep + $flow.client + sep + $flow.server)
  | ("repeats" + sep + $flow.test) as $of
  | if $flow.repeat == null or (.[$of] != null and .[$of] >= $flow.repeat) then . else setpath([$of]; $flow.repeat) end
  | if $flow.kind != "latency" or $flow.tool != "perch" then .
    else [.least, $flow.expect[].size_bytes | values] as $sizes | setpath(["least"]; $sizes | min) end;

def with_flows($flows; $i; $hosts): if $i == ($flows | length) then . else with_flow($flows[$i]; $hosts) | with_flows($flows; $i + 1; $hosts) end;

# A latency under load: what streams run beside it at one of its hosts. Of imported outputs nobody knows what ran beside what.
def loaded($flows):
  if ([$flows[].kind] | unique | length) < 2 then []
  else [ $flows[] | select(.kind == "latency" and .import == null) | . as $one | [.client, .server] as $ends
         | {flow: [.test, .client, .server],
            streams: [$flows[] | select(.kind != "latency" and .import == null and ([.client, .server] - $ends | length) < 2) | [.test, .client, .server]]}
         | select(.streams != []) ] end;

def with_round($flows):
  .head.hosts as $hosts
  | with_flows($flows; 0; $hosts)
  | loaded($flows) as $loaded
  | if $loaded == [] then . else .beside += $loaded end
  | counted("rounds")
  | if .together >= ($flows | length) then . else setpath(["together"]; $flows | length) end;

def pieces: inputs | if type != "object" then error("a plan is an object") elif has("flows") then . else del(.rounds), (.rounds // [])[] end;

# {class: {pairs, flows}}
def hops:
  [to_entries[] | select(.key | startswith("pair" + sep)) | [(.key | split(sep)[1]), .value]]
  | group_by(.[0]) | map({key: .[0][0], value: {pairs: length, flows: (map(.[1]) | add)}}) | from_entries;

# [{name, title, kind, flows, repeats, client, server}]
def tests:
  . as $state
  | [ to_entries[] | select(.key | startswith("test" + sep)) | (.key | split(sep)[1]) as $name | .value
      | { $name, title: .[0], kind: .[1], flows: $state["flows" + sep + $name], repeats: ([$state["repeats" + sep + $name], 1] | max), client: .[2], server: .[3] } ];

reduce pieces as $piece ({head: {}, rounds: 0, together: 0};
  if $piece | has("flows") then with_round($piece.flows) else setpath(["head"]; .head + $piece) end)
| hops as $hops
| tests as $tests
| if .head.schema != "perch.plan/1" or (.head.run | type) != "string" or (.head.hosts | type) != "object" or $tests == [] then error("the plan is not whole")
  else
    .head + { latency_size: (.least // 0),
              counted: {flows: ([$tests[].flows] | add), pairs: ([$hops[].pairs] | add), rounds, together, hops: $hops, tests: $tests, beside: (.beside // [])} }
  end
