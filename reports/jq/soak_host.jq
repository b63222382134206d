# The samples of one host, as intervals.jsonl has them -> one document: its processes' memory and handles, its counters, links, clock and
# boots, and every anomaly. Input (-n): the lines of soak_sample.jq, faults among them. $host, $limits (--slurpfile), $facts.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "soak_host_lines" as lines;
import "words" as _;
import "events" as _;
import "soak_process" as process;
import "digits" as _;
import "soak_stats" as _;
import "soak_bounds" as bounds;
import "limits" as _;
import "common" as c;
import "bounds" as _;

{client: $host, server: $host, scope: $facts.scopes[$host], expect: [{}]} as $as_flow
| ($as_flow | bounds::of_flow($limits[0].limits // [])) as $bounds
| [inputs] as $all
| [$all[] | select(.kind == "sample")] as $samples
| ($samples | process::each) as $each
| ($each | process::all($bounds; $facts.alpha)) as $processes
| { host: $host, samples: ($samples | length), boots: ([$samples[].boot_id] | unique | length), first_s: $samples[0].start_s, last_s: $samples[-1].end_s,
    temperature_highest: ([$samples[] | .end_s as $at | .temperatures[] | select(.celsius | c::is_finite) | {name, celsius, at_s: $at}] | max_by(.celsius)),
    temperatures: any($samples[]; .temperatures != []),
    processes: [$processes[] | del(.found)],
    counters: (reduce $samples[].events as $e ({}; reduce ($e | keys_unsorted[]) as $k (.; .[$k] += ($e[$k] // 0)))),
    watched: ([$samples[].watched] | max // 0), links_read: ([$samples[].links | [.[] | select(.operstate != null)] | length] | max // 0),
    limits: ($bounds | {memory: .["soak.leak_mb_per_hour"], handles: .["soak.handles_per_hour"]}),
    # how often each kind of process was seen
    seen: (reduce $each[] as $p ({}; .[$p.role + (if $p.flow == null then "" else " of \($p.flow)" end)] += ($p.points | length))),
    found: [ ($processes[].found[]), ($each | process::successive($bounds; $facts.alpha)), lines::faults($all), ($samples | lines::holes($facts.soak.interval_s), lines::reboots, lines::clock($bounds), lines::links, lines::absent, lines::dropped,
             lines::counters($facts.scopes[$host])) ] }
