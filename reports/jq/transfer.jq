# Lines of `perch transfer`: one of kind "transfer" for each pair of devices and one of kind "sum", for each size and
# batch. transfer_line.jq holds what one says together, transfer_sum.jq a sum against its pairs.
import "common" as c;

def is_transfer: .kind == "transfer" or .kind == "sum";

# Where a part, or an `expect` entry of the plan, stands within its flow.
def place:
  "kind \(.kind), pair \(.transfer.pair // .pair | c::spoken), batch \(.params.batch // .batch | c::spoken), "
  + (.params.size_bytes // .size_bytes | c::spoken);

# A hundredth: the line's figures are rounded apart. The grain is half of the last of the six decimals that are kept.
def tolerance: 0.01;
def grain: 5e-7;

def near($other; $tolerance):
  . != null and $other != null and (. - $other | fabs) <= $tolerance * ($other | fabs) + grain;

# Lanes of $pairs pairs: of one pair's record its own, of the sum all. Batches of a lane come one after another.
def lanes($pairs):
  ([.params.threads // 1, $pairs] | max) as $all | if .kind == "sum" then $all else $all / $pairs end;
