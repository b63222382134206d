# The set roce, and what a site would ask beside it: each pair's writes at 90 % of what its like have, required.
.limits +=
  [ { id: "site-peers", title: "RDMA bandwidth of large messages beside like flows",
      scope: {kind: "bandwidth", tool: "perch", scope: "hardware", size_bytes: {min: 65536}, op: "write"},
      metric: "bandwidth.gbit_s", bound: {min: 0.9, of: "peers"}, unit: "of the median of like flows",
      source: "site policy: of the self-test's fabric, which is composed", severity: "required", remedy: "Compare this pair with the others" } ]
