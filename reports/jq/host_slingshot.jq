# What a host says of its Cassini NICs -> findings.
import "slingshot" as slingshot;

# The NICs that are checked. Of another fabric's host: the first, as that is the one that a plan's flows take.
def nics: (.fabric == "slingshot") as $all | .devices | if $all then . else .[0:1] end | .[];

# Input: what host-check printed. $host: as host_check::subject makes it.
def findings($host): slingshot::findings([$host | nics]);

# Nothing of theirs needs several hosts to be seen.
def between($hosts): empty;
