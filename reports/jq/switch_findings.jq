# Switches' readings -> {rows: what the verdict shows of the switches, findings: of each switch and its ports}.
# Input: {run, switches: [{name, planned, before, after}], hosts: {NAME: {name, hostname, scope, netdevs, rates}}}.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "switch" as switch;
import "switch_nxos" as _;
import "switch_eos" as _;
import "switch_sonic" as _;
import "switch_cumulus" as _;
import "switch_ib" as _;
import "switch_raw" as _;
import "switch_checks" as checks;
import "format" as _;
import "digits" as _;
import "common" as _;
import "words" as _;
import "planned" as _;

. as $in
| [.switches[] | switch::judged($in.run; .name; .planned; [$in.hosts[]]; .before; .after)] as $rows
| {$rows, findings: [$rows[] | checks::findings($in.hosts)]}
