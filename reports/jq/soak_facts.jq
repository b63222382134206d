# What each share of a soak needs of the run as a whole. $plan, $known: one-element arrays; $first: the earliest begin that a flow of the
# first round tells, in ms.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "soak_line" as line;
import "common" as _;

# What a host's agent says of its own time: it began when its wall said `begun`; `counted` seconds of the soak had passed at that `uptime` of
# that `boot`, `passed` at its end, and `asked` when it was to stop.
def times:
  (.agent.soak | objects) // {} | ((.clock | objects) // {}) as $clock
  | { begun: ([.begun | strings | line::moment | numbers][0]), boot: $clock.boot_id, uptime: $clock.uptime_s, counted: $clock.passed_s,
      passed: .passed_s, asked: .stop_asked_s };

$plan[0] as $plan
| $known[0] as $hosts
| ([$hosts[] | times.begun | numbers] | min) as $begun
| ($first | tonumber? // null | if . == null then . else . / 1000 end) as $first
| { run: $plan.run, soak: $plan.soak,
    # no flow begins before its agent: one that says so was told by a clock that was set since
    epoch: ([$begun, ($first | select($begun == null or . == null or . >= $begun - line::apart_most)) | numbers] | min // 0),
    known: ($begun != null or $first != null),
    states: ($hosts | map_values(.agent.state)), times: ($hosts | map_values(times)), agents: ($hosts | map_values((.agent.soak | objects) // null)), scopes: ($plan.hosts | map_values(.scope)),
    # each figure of each test between two hosts, and memory and handles of some ten processes a host
    alpha: (0.01 / (3 * ([$plan.rounds[].flows[] | [.test, .client, .server]] | unique | length) + 20 * ($plan.hosts | length))) }
