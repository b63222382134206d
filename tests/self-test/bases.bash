# shellcheck shell=bash disable=SC2154  # run sets top
# The good runs. Each function makes one in the folder that it is given. A recorded run is as it was recorded; a composed one is
# recorded outputs put into another setting, which is said here, and is proof of nothing but of how judge judges.

base_loopback() { cp -r "$top/tests/fixtures/loopback/run" "$1"; }

base_transfers() { cp -r "$top/tests/fixtures/transfer/run" "$1"; }

base_rxe() { cp -r "$top/tests/fixtures/rxe/run" "$1"; }

# Composed: the run over Soft-RoCE, as if two cards had carried it. Their name and driver are a card's, their counters those of
# the interface under it in words of four bytes, and the plan calls them hardware. Its limits judge no speed.
base_cards() {
  cp -r "$top/tests/fixtures/rxe/run" "$1"
  (
    cd "$1" || exit
    find . -type f -exec sed -i 's/rxe0/mlx5_0/g' {} +
    edit plan.json '.rounds[].flows[].scope = "hardware" | .hosts[].scope = "hardware"'
    edit 'raw/*/flows/*/alpha/beta/1/*.json' "$(<"$top/tests/self-test/card_counters.jq")"
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
        sed "s/ens1np0/enp1s0/g; s/enp129s0f0np0/enp1s0/g; s/c1:00\\.0/81:00.0/g; s/c000:0201/c000:020$i/g; s/192\\.0\\.2\\.1\\b/192.0.2.$i/g; s/f0:28:b2/f0:28:b$i/g; s/ef0:28b2/ef0:28b$i/g" |
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

# Composed: two nodes with a Cassini NIC each and what HPE printed of its tools (tests/fixtures/slingshot/recorded.bash), and between
# them a flow of the engine over cxi, whose line is made by hand. The nodes are those of the fixture.
base_slingshot() {
  mkdir -p "$1.made"
  (
    cd "$1.made" || exit
    # shellcheck source=tests/fixtures/slingshot/recorded.bash
    source "$top/tests/fixtures/slingshot/recorded.bash"
    CXI_TESTS="${CXI_TESTS%]}, "'{name: "engine", title: "RDMA write bandwidth", tool: "perch", backend: "cxi", op: "write", kind: "bandwidth", params: {size: "64K", iterations: 100000}}]'
    recorded
    end_of alpha engine/alpha/beta/1 client 6800000000 30000000
    end_of beta engine/alpha/beta/1 server 30000000 6800000000
    # shellcheck disable=SC2016  # jq's own
    jq -nc 'def side($host; $nic): {$host, device: "cxi0", address: "NIC \($nic) PID 0", svc_id: 1, vni: 10, idc: true, ll: true};
      (100000 * 65536) as $bytes
      | { schema: "perch.record/1", tool: {name: "perch", version: "0.1.0"}, backend: "cxi", provider: "cxi", op: "write", kind: "bandwidth",
          definition: "initiator_completion", completion_level: "transmit", connection: "RDM", client: side("alpha"; "0x12"), server: side("beta"; "0x13"),
          link: {rate_gbit_s: 200, mtu_bytes: null, layer: "slingshot", hop_class: null},
          params: { size_bytes: 65536, iterations: 100000, duration_s: null, warmup: 0, gap_us: 0, queue_pairs: 1, outstanding: 64, batch: 1, threads: 1, devices: 1,
                    inline_bytes: null, bidirectional: false, completion: "busy", memory: "host", verify: false, clock: "monotonic", rate: null, svc_id: 1, server_svc_id: 1,
                    vni: 10, idc: true, ll: true, rdzv: false, unrestricted: false, hrp: false, keys: "client", atomic_op: null, atomic_type: null,
                    tx_memory: "host", rx_memory: "host" },
          started: "2026-01-01T00:00:00.100Z", elapsed_s: 0.3, latency_us: null, bandwidth: {gbit_s: ($bytes * 8 / 0.3 / 1e9), peak_gbit_s: null,
            peak_definition: null, min_interval_gbit_s: null, messages_per_s: (100000 / 0.3), $bytes}, intervals: [], histogram: null, cpu: null,
          integrity: null, tcp: null, path: {claimed_bytes: $bytes, client_sent_bytes: $bytes, client_received_bytes: 0}, status: "ok", error: null }' \
      >run/raw/alpha/flows/engine/alpha/beta/1/client.stdout
    : >run/raw/alpha/flows/engine/alpha/beta/1/client.stderr
  ) && mv "$1.made/run" "$1"
}

# Composed: the fabric, of whose flows one fell outside (a pair's writes at 80 %, in one of its two repeats) and was measured twice
# more as reports/retry planned it; what came then is what the other repeat had shown.
base_retried() {
  local host role end flow=write-bandwidth/gamma/delta
  generate "$1" 1 "{\"factor\": 0.8, \"flows\": \"^$flow/1\$\"}"
  # only its like show it, which is known when all have been heard
  edit "$1/inputs/limits.json" 'del(.limits[] | select(.id == "large-message-share"))'
  "$top/reports/retry" "$1" || return
  (
    cd "$1" || exit
    for host in gamma delta; do
      role=client
      [[ $host == gamma ]] || role=server
      for end in 3 4; do
        mkdir -p "raw/$host/retry/flows/$flow"
        cp -r "raw/$host/flows/$flow/2" "raw/$host/retry/flows/$flow/$end"
        edit "raw/$host/retry/flows/$flow/$end/$role.json" ".flow = \"$flow/$end\""
      done
    done
  )
}

# Composed: the fabric beside an accepted run of it, which is another of the healthy runs and was accepted by reports/accept.
base_aged() {
  local runs=$1.runs
  generate "$runs/then" 10
  "$top/reports/judge" "$runs/then" && "$top/reports/accept" "$runs/then" || return
  generate "$1" 0
  cp "$runs"/baseline/*/baseline.json "$1/inputs/baseline.json"
}

tell_base() {
  local word=
  [[ ! -s $work/base/$1/verdict.json ]] || word=$(jq -r .verdict "$work/base/$1/verdict.json")
  told "$([[ $word == PASS ]] && echo true || echo false)" "the good run $1 passes" "$(head -c 400 "$work/base/$1.said")"
}

# Composed: two hosts that soak for two hours, of lines that the engine wrote (tests/soak_compose.py).
base_soaked() { python3 "$top/tests/soak_compose.py" "$1" --duration 7200; }
