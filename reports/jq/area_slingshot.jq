# The findings of one area of the hosts' checks. Input (-n): a line for each host's answer, as hosts.jq makes them.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "host_area" as area;
import "host_slingshot" as of;
import "slingshot" as _;
import "common" as _;
import "flaps" as _;

[inputs] | area::judged("slingshot"; .host as $host | .raw | of::findings($host); of::between(.))
