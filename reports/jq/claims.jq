# What a part claims by its figures.

# Messages of an unreliable connection that were sent and never came.
def lost: .loss.lost_messages // 0;

# What a part's figures need on the wire at least: each message that was measured, there and back where it was answered
# with its like, without what was lost on the way.
def needed:
  (.params.size_bytes // 0) as $size
  | if .kind == "latency" then (.latency_us.count // 0) * $size * (if .definition == "half_round_trip" then 2 else 1 end)
    else (.bandwidth.bytes // 0) - lost * $size end;

def is_rdma:
  .backend == "verbs" or .backend == "cxi" or (.tool.name // "" | IN("perftest", "cxi", "perch-personality"))
  or ((.provider // "") | test("(^|;)(verbs|cxi|efa|psm[0-9x]*|opx)(;|$)"));
