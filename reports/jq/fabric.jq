# What a fabric is, as far as figures of two runs may be held against each other: the hosts, their devices with rate and MTU,
# the set of limits and the scope.
import "common" as c;
import "planned" as planned;

# Plan -> what is known of its fabric before anything is measured: by this, accepted runs are found again. The suite is part
# of it, because runs of different suites have few figures in common.
def planned_identity:
  { suite: .suite.name, limits: .limits, hosts: (.hosts | map_values({fabric, scope})) };

# Record -> the ends that it shows, as [host, {device, rate_gbit_s, mtu_bytes, layer}]. Sockets' tools name no device.
def ends:
  .link as $link
  | (.client, .server) | select(.device != null)
  | [.host, {device, rate_gbit_s: $link.rate_gbit_s, mtu_bytes: $link.mtu_bytes, layer: $link.layer}];

# The same with all ends that records showed: $ends as ends() gives them, $scope the verdict's.
def identity($plan; $ends; $scope):
  ($ends | group_by(.[0]) | map({key: .[0][0], value: (map(.[1]) | unique)}) | from_entries) as $of
  | { suite: $plan.suite.name, limits: $plan.limits, $scope,
      hosts: ($plan.hosts | with_entries(.value = {fabric: .value.fabric, scope: .value.scope, ends: ($of[.key] // [])})) };

def shown: "\(.device) at \(if .rate_gbit_s == null then "an unknown rate" else "\(.rate_gbit_s | c::spoken) Gb/s" end), MTU \(.mtu_bytes // "unknown" | c::spoken)";

# Where the fabric $now is another one than $was, in words. What was measured then and is not now is the plan's affair.
def differences($was; $now):
  ( select($was.limits != $now.limits) | "the limits were \($was.limits) and are \($now.limits)" ),
  ( select($was.scope != $now.scope) | "the scope was \($was.scope) and is \($now.scope)" ),
  ( ($was.hosts | keys) as $a | ($now.hosts | keys) as $b
    | select($a != $b) | "the hosts were \($a | join(", ")) and are \($b | join(", "))" ),
  ( $now.hosts | to_entries[] | $was.hosts[.key] as $had | select($had != null)
    | .key as $name | .value
    | ( select(.fabric != $had.fabric) | "\($name) was on \($had.fabric) and is on \(.fabric)" ),
      ( (.ends - $had.ends) | select(length > 0 and $had.ends != [])
        | "\($name) has \(map(shown) | join("; ")); it had \($had.ends | map(shown) | join("; "))" ) );
