# The records -> what a report shows of them (passing.jq). Input (-n): the records, one by one. $after: of a part of them the flow
# of the record before, as a JSON text, else null. Rows and the state are JSON, texts of histograms are plain (-r).
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "passing" as passing;
import "anomaly_rows" as _;
import "interval_view" as _;
import "format" as _;
import "digits" as _;
import "words" as _;
import "figures" as _;
import "counters" as _;
import "transfer_rows" as _;
import "ceiling" as _;
import "comparison" as _;
import "common" as _;

passing::of(inputs; $after)
