# As read.jq, where no flow is of a tool that it alone can read.
import "readings" as readings;

readings::flows($plan[0]; $hosts[0]; $mark; readings::no_reader)
