# What a report says of the plan: counts, tests, commands, hop classes. The states are flat, for the reason given in tally.jq.
import "planned" as planned;
import "format" as f;

def word: if test("^[A-Za-z0-9_./:=,%+@-]+$") then . else @sh end;
def command: map(tostring | word) | join(" ");

# Commands of one test differ in addresses and devices; some of them are enough.
def commands_max: 8;

# Adds a command to a list that stays short.
def with_command($argv):
  if length >= commands_max or ($argv // [] | length) == 0 then .
  else ($argv | command) as $one | if index([$one]) != null then . else . + [$one] end end;

def with_flow($flow):
  if .flows >= 4 * commands_max then .flows += 1 # all that is still of interest is how many there are
  else .flows += 1 | .client |= with_command($flow.client_argv) | .server |= with_command($flow.server_argv) end
  | if ($flow.repeat // 1) > .repeats then .repeats = $flow.repeat else . end;

def of_tests:
  reduce planned::flows as $flow ({};
    .[$flow.test] as $old
    | [ $old // {name: $flow.test, title: ($flow.title // $flow.test), kind: $flow.kind, flows: 0, repeats: 1, client: [], server: []}
        | with_flow($flow) ] as $new
    | setpath([$flow.test]; $new[0]));

# {class: {pairs, flows}}
def hops:
  reduce planned::flows as $flow ({};
    "\($flow.hop_class // "not stated")\t\($flow.client)\t\($flow.server)" as $key
    | (.[$key] + 1) as $n | setpath([$key]; $n))
  | to_entries | group_by(.key | split("\t")[0])
  | map({key: (.[0].key | split("\t")[0]), value: {pairs: length, flows: (map(.value) | add)}}) | from_entries;

# Input: the plan. {flows, pairs, rounds, together, hops, tests: [{name, title, kind, flows, repeats, client, server}]}
def counted:
  hops as $hops
  | { flows: ([$hops[].flows] | add // 0), pairs: ([$hops[].pairs] | add // 0), rounds: (.rounds | length),
      together: ([.rounds[].flows | length] | max // 0), hops: $hops, tests: [of_tests[]] };

def commands:
  map({ title, client, server,
        more: ([.flows - .repeats * ([(.client | length), 1] | max), 0] | max | if . > 0 then f::whole else "" end) });
