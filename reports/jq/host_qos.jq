# What a host says of flow control, classes and congestion notification -> findings.
import "common" as c;

# Input: what host-check printed. $host: as host_check::subject makes it.
def findings($host): empty;

# $hosts: [{host, raw}] of one fabric -> findings between them, each with the host that it blames.
def between($hosts): empty;
