# Switches' readings -> {rows: what the verdict shows of the switches, findings: of each switch and its ports}.
# Input: {run, switches: [{name, planned, before, after, untimely: {PHASE: why it is not of its time}}], hosts: {NAME: {name, hostname, scope, netdevs, rates,
# lossless: of its fabric, null where it is not known}}}.
import "switches/readings" as switch;
import "switches/checks" as checks;

. as $in
| [ .switches[] | (.untimely // {} | to_entries | map({command: .key, why: .value})) as $untimely
    | switch::judged($in.run; .name; .planned; [$in.hosts[]]; .before; .after) | .faults += $untimely ] as $rows
| {$rows, findings: [$rows[] | checks::findings($in.hosts)]}
