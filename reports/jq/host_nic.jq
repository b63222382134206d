# What a host says of its network cards and their place in the machine -> findings. nic_read.jq reads; the other files
# judge one kind of thing each.
import "nic_read" as read;
import "nic_link" as link;
import "nic_address" as address;
import "nic_pci" as pci;
import "nic_driver" as driver;
import "nic_between" as group;

# Input: what host-check printed. $host: as host_check::subject makes it.
def findings($host):
  . as $raw
  | read::devices($raw; $host) as $devices
  | link::findings($raw; $host; $devices), address::findings($raw; $host; $devices),
    pci::findings($raw; $host; $devices; . as $d | link::link($raw; $d).gbit), driver::findings($raw; $host; $devices);

# $hosts: [{host, raw}] of one fabric -> findings between them, each with the host that it blames.
def between($hosts): group::between($hosts);
