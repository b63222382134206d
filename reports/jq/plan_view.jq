# What a report says of the plan's commands. Input: the tests of plan_digest.jq.
import "format" as f;

def commands:
  map({ title: (.title | f::cell), client, server,
        more: ([.flows - .repeats * ([(.client | length), 1] | max), 0] | max | if . > 0 then f::whole else "" end) });
