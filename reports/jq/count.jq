# The records of a part of the run -> its counts, one flat object (tally.jq). Input (-n): the records. $plan: that part's, $limits,
# $baseline, $wanted: one-element arrays (--slurpfile); $baseline_fault: why there is no baseline, or "".
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "tally" as tally;
import "agreement" as _;
import "limits" as _;
import "claims" as _;
import "shares" as _;
import "ceiling" as _;
import "figures" as _;
import "comparison" as _;
import "fabric" as _;
import "planned" as planned;
import "evaluated" as _;
import "common" as _;
import "bounds" as _;
import "repeats" as _;

tally::counted(inputs; [$plan[0] | planned::flows]; $limits[0].limits // [];
               {fault: ($baseline_fault | if . == "" then null else . end), document: $baseline[0]}; $wanted[0])
