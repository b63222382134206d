# The findings of one area of the hosts' checks. Input (-n): a line for each host's answer, as hosts.jq makes them.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "host_area" as area;
import "host_qos" as of;
import "host_pause" as _;
import "host_qos_path" as _;
import "host_ecn" as _;
import "host_dcb" as _;
import "common" as _;

[inputs] | area::judged("qos"; .host as $host | .raw | of::findings($host); of::between(.))
