# shellcheck shell=bash disable=SC2154  # run sets top
# The good runs. Each function makes one in the folder that it is given. A recorded run is as it was recorded; a composed one is
# recorded outputs put into another setting, which is said here, and is proof of nothing but of how judge judges.

base_loopback() { cp -r "$top/tests/fixtures/loopback/run" "$1"; }

base_rxe() { cp -r "$top/tests/fixtures/rxe/run" "$1"; }

# Composed: the run over Soft-RoCE, as if two cards had carried it. Their name and driver are a card's, their counters those of
# the interface under it in words of four bytes, and the plan calls them hardware. Its limits judge no speed.
base_cards() {
  cp -r "$top/tests/fixtures/rxe/run" "$1"
  (
    cd "$1" || exit
    find . -type f -exec sed -i 's/rxe0/mlx5_0/g' {} +
    edit plan.json '.rounds[].flows[].scope = "hardware" | .hosts[].scope = "hardware"'
    # The interface's bytes stand for the card's, without what the emulated machines sent again: cards on a good network repeat nothing.
    # shellcheck disable=SC2016  # jq's own
    edit 'raw/*/flows/*/alpha/beta/1/*.json' '(if .flow | test("^verbs-read-b") then 0.8 elif .flow | test("^(read-l|send-b)") then 0.95 else 1 end) as $once
      | def counted($name): .counters as {$before, $after} | ($after.netdev.eth1[$name] | tonumber) - ($before.netdev.eth1[$name] | tonumber)
          | . * $once / 4 | floor | tostring;
      counted("tx_bytes") as $tx | counted("rx_bytes") as $rx
      | (.counters.before, .counters.after).rdma["mlx5_0/1"].counters |= (map_values("0") | del(.sent_pkts, .rcvd_pkts) | .port_xmit_data = "0" | .port_rcv_data = "0")
      | .counters.after.rdma["mlx5_0/1"].counters += {port_xmit_data: $tx, port_rcv_data: $rx}'
    edit 'raw/*/environment.json' '.idle = null | .rdma[].driver = "mlx5_core"'
  )
}

# Composed: five hosts with cards of 100 Gb/s, as healthy/generate.jq makes them; the first of the healthy runs, with all its tests.
base_fabric() { generate "$1" 0; }

# Recorded, with the manifest that the playbook makes when all files were fetched.
base_sealed() { base_loopback "$1" && "$top/reports/seal" "$1"; }

# Recorded, beside an accepted run of the same fabric (tests/fixtures/history).
base_accepted() { base_loopback "$1" && cp "$top/tests/fixtures/history/baseline.json" "$1/inputs/baseline.json"; }

# Composed: the second healthy run, whose hosts owe checks and answered: one server of tests/fixtures/hosts, its parts of three
# files put together under one name, with addresses of each host.
base_checked() {
  local i=0 host fixtures=$top/tests/fixtures/hosts
  generate "$1" 1
  (
    cd "$1" || exit
    edit plan.json '.host_checks = true'
    mkdir inputs/hosts
    for host in alpha beta gamma delta epsilon; do
      i=$((i + 1))
      jq -nc --arg host "$host" '{schema: "perch.wanted/1", $host, wanted: {pfc_priorities: [3]}}' >"inputs/hosts/$host.json"
      cat "$fixtures/machine-amd.json" "$fixtures/qos-mlx5-dcb.json" "$fixtures/nic-mlx5.json" |
        sed "s/ens1np0/enp1s0/g; s/enp129s0f0np0/enp1s0/g; s/c000:0201/c000:020$i/g; s/192\\.0\\.2\\.1\\b/192.0.2.$i/g; s/f0:28:b2/f0:28:b$i/g; s/ef0:28b2/ef0:28b$i/g" |
        jq -sc --arg host "$host" '. as $all | {schema: .[0].schema, hostname: $host, collected: "2026-01-01T00:00:10Z"}
          + (["files", "later", "links", "commands"] as $parts | reduce $parts[] as $p ({}; .[$p] = ([$all[][$p]] | add)))' \
          >"raw/$host/host_check.json"
    done
  )
}

# Composed: the cards' run, between whose readings a SONiC switch counted what its fixture says.
base_switched() {
  local phase
  base_cards "$1"
  (
    cd "$1" || exit
    edit plan.json '.switches = {leaf1: {provider: "sonic", scope: "hardware", priorities: [3], ports: {}}}'
    mkdir raw/leaf1
    for phase in before after; do
      "$top/tests/fixtures/switches/reading" sonic "$phase" "$(jq -r .run plan.json)" | sed 's/node1/alpha/g; s/node2/beta/g' >"raw/leaf1/switch-$phase.json"
    done
  )
}

tell_base() {
  local word=
  [[ ! -s $work/base/$1/verdict.json ]] || word=$(jq -r .verdict "$work/base/$1/verdict.json")
  told "$([[ $word == PASS ]] && echo true || echo false)" "the good run $1 passes" "$(head -c 400 "$work/base/$1.said")"
}
