# intervals.jsonl -> short rows of what is drawn, one by one, so that parts of the file can be read side by side. Input (-n): its
# lines; $verdict: --slurpfile. Times are milliseconds since the soak began.
#   ["i", test, client, server, start, end, mean, lowest window, p50, p99]   an interval
#   ["x", test, kind, start, end]                                           a gap, or a stall that is an anomaly; the verdict has the first ones
#   ["m", host, role, flow, process, time, bytes]                           memory of a process that is drawn
#   ["t", host, sensor, time, celsius]                                      a sensor that is drawn
#   ["u", time, highest of the others]
#   ["c", host, class, time, number]                                        counters that moved
import "soak_chosen" as chosen;

def ms: . * 1000 | floor;
# jq 1.7 keeps the spelling of a number that it only reads
def plain: if type == "number" then . + 0 else null end;

def interval:
  select((.soak_s | type) == "number" and (.start_s | type) == "number" and (.end_s | type) == "number")
  | ["i", .test, .client, .server, (.soak_s + .start_s | ms), (.soak_s + .end_s | ms),
     (.bandwidth.gbit_s | plain), (.bandwidth.min_interval_gbit_s | plain), (.latency_us.p50 | plain), (.latency_us.p99 | plain)];

def silence($limits):
  select((.soak_s | type) == "number" and (.start_s | type) == "number" and (.end_s | type) == "number")
  | select(.kind == "gap" or ($limits[.flow] as $limit | $limit != null and .end_s - .start_s > $limit))
  | ["x", .test, .kind, (.soak_s + .start_s | ms), (.soak_s + .end_s | ms)];

def sample($processes; $hosts; $sensors):
  select((.end_s | type) == "number")
  | (.end_s | ms) as $at | .host as $host
  | ( select($hosts[$host]) | .processes[]? | .host = $host
      | select($processes[chosen::process] and (.resident_bytes | type) == "number")
      | ["m", .host, .role, .flow, "\(.pid)/\(.start)", $at, (.resident_bytes | plain)] ),
    ( [.temperatures[]? | select((.celsius | type) == "number")]
      | ( .[] | select($sensors[$host + chosen::sep + .name]) | ["t", $host, .name, $at, (.celsius | plain)] ),
        ( [.[] | select($sensors[$host + chosen::sep + .name] | not) | .celsius] | select(. != []) | ["u", $at, max] ) ),
    ( .events // {} | to_entries[] | select(.value > 0) | ["c", $host, .key, $at, (.value | plain)] );

($verdict[0].soak | chosen::of_processes) as $processes
| ($processes | with_entries(.key |= split(chosen::sep)[0])) as $hosts
| ($verdict[0].soak | chosen::of_sensors) as $sensors
| (reduce $verdict[0].soak.flows[] as $f ({}; .[$f.flow] = $f.stall_limit_s)) as $limits
| inputs
| if .kind == "interval" then interval elif .kind == "stall" or .kind == "gap" then silence($limits) elif .kind == "sample" then sample($processes; $hosts; $sensors) else empty end
