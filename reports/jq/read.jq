# raw/ -> what each flow's outputs say: see readings.jq. $plan, $hosts: one-element arrays (--slurpfile).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "cxi" as cxi;
import "cxi_text" as _;
import "perftest" as perftest;
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

readings::flows($plan[0]; $hosts[0]; $mark;
  if .flow.tool == "perftest" then perftest::parts(.files.stdout; .files.stderr; .flow; .versions.perftest)
  elif .flow.tool == "cxi" then cxi::parts(.files.stdout; .files.stderr; .flow; .versions.cxi)
  else readings::no_reader end)
