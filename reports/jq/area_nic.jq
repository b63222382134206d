# The findings of one area of the hosts' checks. Input (-n): a line for each host's answer, as hosts.jq makes them.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "host_area" as area;
import "host_nic" as of;
import "nic_pci" as _;
import "pci_config" as _;
import "nic_driver" as _;
import "nic_between" as _;
import "format" as _;
import "digits" as _;
import "words" as _;
import "nic_address" as _;
import "common" as _;
import "nic_link" as _;
import "nic_read" as _;

[inputs] | area::judged("nic"; .host as $host | .raw | of::findings($host); of::between(.))
