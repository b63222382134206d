# Flows of one round that share a host (incast): their bytes stand in the same counters, so that the law of path.jq holds
# for all of them together. What they claim of a device must lie within what it counted from the first one's beginning
# to the last one's end. Input and output: an array of records::flow_parts(), one for each flow of the round.
import "counters" as k;
import "path" as path;

# Both readings of every flow on a host, as one of the earliest and the latest; null where one left none.
def whole_time($host):
  [.[] | .ends as $ends | .flow | (select(.client == $host) | $ends.client), (select(.server == $host) | $ends.server)]
  | if any(.[]; (.before | type) != "object" or (.after | type) != "object") then null
    else {before: (map(.before) | min_by(.time_s | tonumber)), after: (map(.after) | max_by(.time_s | tonumber))}
      + (.[0] | {address_interface, route_interface})
    end
  | k::counted;

# What one counter showed one way in that time.
def counted($side; $bound):
  first(path::counts($side; $bound.over; $bound.rdma; $bound.port)[] | select(.device == $bound.device and .by == $bound.by))
  | .[$bound.way];

# Bounds of several flows on one counter -> one of all of them.
def together($side):
  . as $all
  | .[0] as $one
  | (map(.flow) | unique | length) as $flows
  | ($one.idle / ($one.seconds | if . > 0 then . else 1 end) * ($side.seconds // 0)) as $idle
  | $one
    + { role: "\($one.host), \($flows) flows at once", counted: counted($side; $one), $idle, elsewhere: [],
        least: (map(.least) | add), sure: (map(.sure) | add), most: (map(.most) | add), late: (map(.late) | add),
        noise: ($idle + (map(.noise - .idle) | add)) };

# Of one host: {flow id: finding}, for each counter that more than one flow claims. Only where each flow tells what it
# moved can bytes be left over.
def of_host($host):
  map(select(.flow.client == $host or .flow.server == $host)) as $here
  | ($here | whole_time($host)) as $side
  | all($here[]; .both.path.bounds != []) as $told
  | [$here[] | .flow.id as $id | .both.path.bounds[] | select(.host == $host) | .flow = $id]
  | group_by([.device, .by, .way])[]
  | select($side != null and (map(.flow) | unique | length) > 1)
  | map(.flow) as $ids
  | together($side) | path::judged(if $told then "these flows explain" else null end)
  | {flows: $ids, finding: .};

def judged:
  . as $flows
  | ([.[].flow | .client, .server] | group_by(.) | map(select(length > 1)[0])) as $busy
  | [$busy[] as $host | $flows | of_host($host)] as $found
  | map(.flow.id as $id
        | .both.path as $path
        | ([{state: $path.state, why: $path.reason}]
           + [$found[] | select(.flows | index([$id]) != null) | .finding] | path::worst) as $worst
        | .both.path += {state: $worst.state, reason: $worst.why});
