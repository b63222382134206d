# What a host says of its network cards and their place in the machine -> findings. nic_read.jq reads; the other files
# judge one kind of thing each.
import "hosts/nic_read" as read;
import "hosts/unread" as unread;
import "hosts/nic_link" as link;
import "hosts/nic_fec" as fec;
import "hosts/nic_bits" as bits;
import "hosts/nic_cabling" as cabling;
import "hosts/nic_config" as config;
import "hosts/nic_optics" as optics;
import "hosts/nic_address" as address;
import "hosts/nic_pci" as pci;
import "hosts/nic_driver" as driver;
import "hosts/nic_between" as group;

# Input: what host-check printed. $host: as area.jq has it.
def findings($host):
  . as $raw
  | read::devices($raw; $host) as $devices
  | ( link::findings($raw; $host; $devices), fec::findings($raw; $host; $devices), optics::findings($raw; $host; $devices),
    cabling::findings($raw; $host; $devices), address::findings($raw; $host; $devices),
    pci::findings($raw; $host; $devices; . as $d | link::link($raw; $d).gbit), driver::findings($raw; $host; $devices),
    config::findings($raw; $host; $devices), bits::findings($raw; $host; $devices) )
  | unread::settled($raw);

# $hosts: [{host, raw}] of one fabric -> findings between them, each with the host that it blames.
def between($hosts): group::between($hosts) | unread::settled({});
