# What a host says of its network cards and their place in the machine -> findings.
import "common" as c;

# Input: what host-check printed. $host: as host_check::subject makes it.
def findings($host): empty;

# $hosts: [{host, raw}] of one fabric -> findings between them, each with the host that it blames.
def between($hosts): empty;
