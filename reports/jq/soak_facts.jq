# What each share of a soak needs of the run as a whole. $plan, $known: one-element arrays; $first: the earliest begin that a flow of the
# first round tells, in ms.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "soak_line" as line;
import "common" as _;

# Hosts begin within a minute of each other (agent_start_window). What a flow says to be earlier by more was told by a clock that was set since.
def apart_most: 60;

$plan[0] as $plan
| $known[0] as $hosts
| ([$hosts[].agent.soak.begun | strings | line::moment | numbers] | min) as $begun
| ($first | tonumber? // null | if . == null then . else . / 1000 end) as $first
| { run: $plan.run, soak: $plan.soak, epoch: ([$begun, ($first | select($begun == null or . == null or . >= $begun - apart_most)) | numbers] | min // 0),
    known: ($begun != null or $first != null),
    states: ($hosts | map_values(.agent.state)), agents: ($hosts | map_values((.agent.soak | objects) // null)), scopes: ($plan.hosts | map_values(.scope)),
    # each figure of each test between two hosts, and memory and handles of some ten processes a host
    alpha: (0.01 / (3 * ([$plan.rounds[].flows[] | [.test, .client, .server]] | unique | length) + 20 * ($plan.hosts | length))) }
