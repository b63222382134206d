# A share (perch.share/1: a host's own part of a plan) -> the perch.plan/1 that the agent reads. Deleted with the agent that reads it.
#
# Flows of other hosts are empty ones with the round's times: the agent counts them, and waits for them.

# perch/plan/template.py: words with what their placeholders stand for; those of a list without a fact are left out together.
def facts($host; $devices; $rail):
  ($host.devices[$rail:$rail + $devices] // []) as $used
  | def word: if . == null or . == false then null else tostring end;
    {address: $host.address}
    + (if $host.address | contains(":") then {is_ipv6: ""} else {} end)
    + ($host.tool_ports // {} | with_entries({key: "ports.\(.key)", value: (.value | tostring)}))
    + ([$used[] | keys_unsorted[]] | unique | map({key: "device.\(.)", value: (. as $key | $used[0][$key] | word)},
        {key: "devices.\(.)", value: (. as $key | [$used[][$key] | word // ""] | join(","))}) | from_entries)
    + if $used == [] then {} else
        {"devices.rail": ([$used[] | [.name, .ib_port, .gid_index] | map(word // "") | join(":") | sub(":+$"; "")] | join(","))} end;

# null where a fact is missing
def filled($facts):
  . as $word
  | [match("\\{(client|server|round)[.]([A-Za-z0-9_.-]+)(=([^{}]*))?\\}"; "g")] as $found
  | reduce ($found | reverse[]) as $one ($word;
      ($facts[$one.captures[0].string][$one.captures[1].string] // $one.captures[3].string) as $fact
      | if . == null or $fact == null then null else .[:$one.offset] + $fact + .[$one.offset + $one.length:] end);

def expanded($facts):
  [.[] | if type == "string" then filled($facts) // error("the plan does not say \(.)")
         else map(filled($facts)) | if any(. == null) then empty else .[] end end];

. as $share
| def flow($round):
    . as [$place, $test, $client, $server, $rail, $repeat]
    | $share.tests[$test] as $t | $share.hosts[$client] as $c | $share.hosts[$server] as $s
    | (if $t.kind == "transfer" then $t.params.devices // 1 else 1 end | if . == "all" then [[$c, $s | .devices | length] | min, 16] | min else . end) as $devices
    | {client: facts($c; $devices; $rail), server: facts($s; $devices; $rail), round: {seconds: ($round.estimate_s | tostring)}} as $facts
    | $t.forms["\($devices)"] as $form
    | { id: "\($test)/\($client)/\($server)/\($rail)/\($repeat)", $test, title: $t.title, $repeat, tool: $t.tool, $client, $server,
        client_argv: ($form.client | expanded($facts)), server_argv: ($form.server // [] | expanded($facts)),
        ready: ($s.tool_ports[$t.tool] | if . == null then null else {port: ., proto: "tcp"} end),
        deadline_s: $round.deadline_s, estimate_s: $round.estimate_s };
  { schema: "perch.plan/1", run, plan_sha256, hosts,
    rounds: [.rounds[] | . as $round
             | {client: null, server: null, deadline_s, estimate_s} as $other
             | {flows: (reduce (.flows // [])[] as $own ([range(.size) | $other]; .[$own[0]] = ($own | flow($round))))}] }
  + if .soak == null then {} else {soak} end
