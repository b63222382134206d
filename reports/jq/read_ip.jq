# As read.jq, where no flow is of a tool that it alone can read.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "readings" as readings;
import "perch" as _;
import "claims" as _;
import "transfer_line" as _;
import "transfer" as _;
import "iperf3" as _;
import "iperf" as _;
import "results" as _;
import "outcome" as _;
import "common" as _;

readings::flows($plan[0]; $hosts[0]; $mark; readings::no_reader)
