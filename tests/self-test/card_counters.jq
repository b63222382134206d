# A flow's client.json or server.json of the run over Soft-RoCE -> the same as a card would count it: bytes in words of four. The
# interface's stand for them, without what the emulated machines sent again: cards on a good network repeat nothing.
(if .flow | test("^verbs-read-b") then 0.8 elif .flow | test("^(read-l|send-b)") then 0.95 else 1 end) as $once
| def counted($name): .counters as {$before, $after} | ($after.netdev.eth1[$name] | tonumber) - ($before.netdev.eth1[$name] | tonumber)
    | . * $once / 4 | floor | tostring;
  counted("tx_bytes") as $tx | counted("rx_bytes") as $rx
| (.counters.before, .counters.after).rdma["mlx5_0/1"].counters |= (map_values("0") | del(.sent_pkts, .rcvd_pkts) | .port_xmit_data = "0" | .port_rcv_data = "0")
| .counters.after.rdma["mlx5_0/1"].counters += {port_xmit_data: $tx, port_rcv_data: $rx}
