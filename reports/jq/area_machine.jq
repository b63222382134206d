# The findings of one area of the hosts' checks. Input (-n): a line for each host's answer, as hosts.jq makes them.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "host_area" as area;
import "host_machine" as of;
import "machine_memory" as _;
import "machine_cpu" as _;
import "machine_kernel" as _;
import "machine_firewall" as _;
import "firewall" as _;
import "machine_clock" as _;
import "machine_log" as _;
import "machine" as _;
import "format" as _;
import "digits" as _;
import "common" as _;
import "words" as _;
import "flaps" as _;

[inputs] | area::judged("machine"; .host as $host | .raw | of::findings($host); of::between(.))
