#!/usr/bin/env bats
# The cxi backend on the simulated provider (tests/sim_cxi): what each option changes, by the provider's own counts, and
# what is refused. What every backend must do alike is in conformance.bats. Nothing here says anything about hardware.

load helpers
load check

setup_file() {
  make --no-print-directory -s -C "$TOP/tests/sim_cxi" build/libcxi-fi.so >&2
  [ -n "${HOOKS:-}" ] || make --no-print-directory -s -C "$TOP/engine" hooks >&2
  export HOOKS=${HOOKS:-$TOP/engine/build-hooks/perch}
  cd "$BATS_FILE_TMPDIR" || return
  export FI_PROVIDER_PATH="$TOP/tests/sim_cxi/build" FI_PROVIDER="tcp,ofi_rxm,cxi" FILE_MARK="cxi-$BASHPID-$RANDOM"
  export SIM_CXI_FABRIC="$BATS_FILE_TMPDIR/fabric" SIM_CXI_SERVICES="1:vni=10+11,5:vni=1024,6:disabled,7:tc=low-latency"
  mkdir -p "$SIM_CXI_FABRIC"
  export PERCH_TEST_MARK=$FILE_MARK
  perch_serve
  # shellcheck disable=SC2153  # perch_serve sets it
  export PLAIN_PORT=$PORT FILE_SERVERS="${SERVERS[*]}"
}

teardown_file() { file_servers_gone; }

setup() { common_setup; }

teardown() {
  stop_servers
  common_teardown
}

# measured KIND OPTION...: one short run over cxi, its record in record.json, which is as perch check says, the client's calls
# in calls.json. Two ends that sleep take turns at once also where others keep the processors busy.
measured() {
  local words=("$1" 127.0.0.1 --port "$PLAIN_PORT" --backend "${BACKEND:-cxi}" --json --timeout 20s --warmup 0 --iterations 20
    --completion "${COMPLETION:-event}" "${@:2}")
  run_apart 0 env SIM_CXI_REPORT="$PWD/calls.json" "${PROGRAM:-$PERCH}" "${words[@]}"
  printf '%s\n' "$output" >record.json
  conform record.json "${words[@]}"
  assert_json record.json '.status == "ok" and .simulated == true'
}

# refused EXIT PART OPTION...
refused() {
  local code=$1 part=$2
  shift 2
  run_apart "$code" "$PERCH" lat 127.0.0.1 --port "$PLAIN_PORT" --backend "${BACKEND:-cxi}" --timeout 20s \
    --iterations 5 "$@"
  assert_said "$part"
}

@test "the devices are listed, and a simulation is named as such wherever a figure is" {
  run_perch devices --json
  printf '%s\n' "$output" >devices.jsonl
  jq -se 'map(select(.backend == "cxi")) | map(.device) | index("sim_cxi0")' devices.jsonl
  jq -se 'map(select(.backend == "cxi" and .device == "sim_cxi0"))[0]
    | .layer == "slingshot" and .address == "NIC 0x12"' devices.jsonl
  run_apart 0 "$PERCH" lat 127.0.0.1 --port "$PLAIN_PORT" --backend cxi --iterations 5 --device cxi1
  assert_said "sim_cxi1: simulated"
  assert_output --partial "# SIMULATED"
  assert_output --regexp 'NIC 0x13 PID [0-9]+ \(sim_cxi1\) -> NIC 0x12 PID [0-9]+ \(sim_cxi0\)'
}

# One call a message, of the same kind and as often as ofi's over the same provider.
@test "cxi makes the same libfabric calls for every message as ofi" {
  local COMPLETION=busy
  local kind op without='del(.fi_cq_read)' # how often an empty queue is asked is a matter of time
  while read -r kind op; do
    measured "$kind" --op "$op"
    jq -S ".calls | $without" calls.json >cxi.json
    BACKEND=ofi measured "$kind" --provider cxi --op "$op"
    jq -S ".calls | $without" calls.json >ofi.json
    diff ofi.json cxi.json || fail "$kind --op $op: other calls than ofi's"
    jq -e '[.[]] | max >= 20' cxi.json >/dev/null || fail "$kind --op $op: nothing was counted: $(cat cxi.json)"
  done <<<$'lat send\nlat write\nlat read\nlat atomic-op\nlat compare-swap\nbw send\nbw write'
}

@test "--no-idc sets three variables, and nothing is injected or sent as immediate data" {
  measured lat --op send
  assert_json calls.json '.calls.fi_inject >= 20 and .modelled.idc_message >= 20'
  assert_json record.json '.params.idc == true and .environment == {}'
  measured lat --op send --no-idc
  assert_json calls.json '(.calls.fi_inject // 0) == 0 and (.modelled.idc_message // 0) == 0
    and .modelled.dma_message_eager >= 20'
  assert_json record.json '.params.idc == false and .params.inline_bytes == null and
    ([.environment | to_entries[] | "\(.key)=\(.value)"] | sort)
      == [("AMO", "MSG", "RMA") | "FI_CXI_DISABLE_NON_INJECT_\(.)_IDC=1"]'
  measured lat --op atomic-op --no-idc
  assert_json calls.json '(.modelled.idc_amo // 0) == 0 and .modelled.dma_amo == 20'
}

@test "--no-ll sets the ring's policy, before what the user had set, and says so" {
  measured lat --no-ll
  assert_json calls.json '.variables.FI_CXI_LLRING_MODE == "never"'
  assert_json record.json '.params.ll == false and .environment.FI_CXI_LLRING_MODE == "never"'
  FI_CXI_LLRING_MODE=always measured lat --no-ll
  assert_said "FI_CXI_LLRING_MODE=always of the environment gives way to --no-ll"
  assert_json calls.json '.variables.FI_CXI_LLRING_MODE == "never"'
  FI_CXI_LLRING_MODE=always measured lat
  assert_json record.json '.params.ll == true and .environment.FI_CXI_LLRING_MODE == "always"'
}

@test "--rdzv forces sends above 192 bytes into rendezvous, and says that smaller ones stay eager" {
  measured lat --size 192 --rdzv
  assert_said "sends of up to 192 bytes stay eager"
  assert_json calls.json '(.modelled.dma_message_rendezvous // 0) == 0'
  measured lat --size 193 --rdzv
  assert_json calls.json '.modelled.dma_message_rendezvous >= 20'
  assert_json record.json '.params.rdzv and .params.rdzv_from_bytes == 193 and .environment.FI_CXI_RDZV_GET_MIN == "0"'
  measured lat --size 193
  assert_json calls.json '(.modelled.dma_message_rendezvous // 0) == 0'
  assert_json record.json '.params.rdzv == false and .params.rdzv_from_bytes == null'
}

@test "writes and reads are restricted by default, and unrestricted when asked" {
  measured lat --op write
  assert_json calls.json '.modelled.restricted_write == 20 and (.modelled.unrestricted_write // 0) == 0'
  assert_json record.json '.params.unrestricted == false and .definition == "completion"
    and .completion_level == "transmit"'
  measured lat --op write --unrestricted
  assert_json calls.json '.modelled.unrestricted_write == 20 and (.modelled.restricted_write // 0) == 0'
  assert_json record.json '.params.unrestricted'
  measured lat --op read
  assert_json calls.json '.modelled.restricted_read == 20'
  measured lat --op read --unrestricted
  assert_json calls.json '.modelled.unrestricted_read == 20'
  assert_json record.json '.params.unrestricted and .params.keys == "matching"'
}

@test "the three kinds of keys: client keys below 100, from 100 up, and the provider's" {
  measured lat --op write --keys client --verify
  assert_json calls.json '.modelled.restricted_write == 20'
  measured lat --op write --keys matching --verify
  assert_json calls.json '.modelled.unrestricted_write == 20'
  assert_json record.json '.params.keys == "matching" and .params.unrestricted'
  measured lat --op write --keys provider --verify
  assert_json record.json '.params.keys == "provider" and .integrity.bad_bytes == 0'
}

# This build knows the flag of libfabric's CXI header, also where the header is not installed.
@test "writes up to 2048 bytes are high-rate puts, unless --no-hrp or --unrestricted" {
  local PROGRAM=$HOOKS
  measured lat --op write --size 2048
  assert_json calls.json '.modelled.hrp_write == 20 and .calls.fi_writemsg == 20 and (.calls.fi_write // 0) == 0'
  assert_json record.json '.params.hrp'
  measured lat --op write --size 2049
  assert_json calls.json '(.modelled.hrp_write // 0) == 0 and .calls.fi_write == 20'
  assert_json record.json '.params.hrp == false'
  measured lat --op write --size 8 --no-hrp
  assert_json calls.json '(.modelled.hrp_write // 0) == 0 and .calls.fi_write == 20'
  measured bw --op write --size 8 --unrestricted
  assert_json calls.json '(.modelled | (.hrp_write // 0) + (.hrp_ignored // 0)) == 0'
}

@test "--batch rings the doorbell once a list" {
  measured bw --op write --batch 8 --outstanding 16
  assert_json calls.json '[.flags[] | select(.flags | index("FI_MORE")) | .count] | add > 10'
  assert_json record.json '.params.batch == 8'
  measured bw --op send --batch 8 --outstanding 16 --verify
  assert_json record.json '.integrity.bad_bytes == 0'
}

@test "rates count sends, writes and reads, and a sender is told of the receives that it may use" {
  local op
  for op in send write read; do
    measured rate --op "$op" --iterations 1000 --warmup 10 --size 64 --outstanding 9 --batch 4
    assert_json record.json '.op == "'"$op"'" and .message_rate.messages == 1000 and .path.claimed_bytes == 1010 * 64'
  done
  measured rate --op send --iterations 1000 --warmup 10 --size 64 --outstanding 9 --batch 4
  # a greeting, 5 receives for credits, and one again for each credit: the target lends 16, and tells of 4 or more
  assert_json calls.json '(.calls.fi_recv // 0) >= 6 + (1010 - 16) / 16'
}

@test "the service and the VNI come from the options, then from Slingshot's variables" {
  measured lat --svc-id 5 --server-svc-id 5 --vni 1024
  assert_json record.json '[.client, .server | .svc_id, .vni] == [5, 1024, 5, 1024]
    and .params.vni == 1024 and .params.svc_id == 5'
  measured lat --svc-id 1 --server-svc-id 1
  assert_json record.json '.client.vni == 10 and .params.vni == null and .client.svc_id == 1'
  SLINGSHOT_VNIS=11,12 measured lat --svc-id 1 --server-svc-id 1 --vni 11
  assert_json record.json '.client.vni == 11 and .environment.SLINGSHOT_VNIS == "11,12"'
}

@test "--vni alone takes the launcher's service of this device, or is refused" {
  SLINGSHOT_DEVICES=cxi1,cxi0 SLINGSHOT_SVC_IDS=1,5 measured lat --server-svc-id 5 --vni 1024
  assert_json record.json '[.client | .svc_id, .vni] == [5, 1024]'
  refused 2 "--vni 10 alone names no service" --vni 10
  assert_said "give --svc-id too"
  SLINGSHOT_DEVICES=cxi1 SLINGSHOT_SVC_IDS=1 refused 2 "--vni 10 alone names no service" --vni 10
  refused 4 "give --server-svc-id too" --svc-id 1 --vni 10
}

@test "the server's variables are recorded, and IDC is only said of a round trip that has it both ways" {
  FI_CXI_DISABLE_NON_INJECT_MSG_IDC=1 FI_CXI_DISABLE_NON_INJECT_RMA_IDC=1 FI_CXI_LLRING_MODE=never perch_serve
  PLAIN_PORT=$PORT measured lat --op send
  assert_json record.json '.environment == {} and .server.environment.FI_CXI_LLRING_MODE == "never"
    and .server.environment.FI_CXI_DISABLE_NON_INJECT_MSG_IDC == "1" and .server.idc == false and .server.ll == false
    and .params.idc == false and .params.ll == false'
  # a write is the client's alone
  PLAIN_PORT=$PORT measured lat --op write
  assert_json record.json '.server.idc == false and .params.idc and .params.ll'
  measured lat --op send
  assert_json record.json '.server.environment == {} and .server.idc and .params.idc and .params.ll'
}

@test "a refused registration is no refused service" {
  SIM_CXI_REFUSE_MEMORY=1 refused 3 "cannot register memory: Invalid argument" --op write --svc-id 1
  # shellcheck disable=SC2154  # run --separate-stderr sets it
  [[ $stderr != *"was refused"* ]] || fail "the service is blamed: $stderr"
}

@test "the server's own --svc-id holds where the client names none" {
  perch_serve --svc-id 5
  PLAIN_PORT=$PORT measured lat --svc-id 5 --vni 1024
  assert_json record.json '.server.svc_id == 5 and .params.server_svc_id == null'
}

@test "a service that is unknown or disabled, and a VNI that a service does not allow, are refused with what to do" {
  refused 3 "service 99 with VNI 10 was refused" --svc-id 99
  assert_said "cxi_service list"
  refused 3 "service 6 with VNI 10 was refused" --svc-id 6 --vni 10
  refused 3 "service 1 does not allow VNI 7 (but VNI 10)" --svc-id 1 --vni 7
  refused 3 "without traffic class bulk-data" --svc-id 7 --traffic-class bulk-data
  refused 4 "service 99 with VNI 10 was refused" --server-svc-id 99
}

@test "ends in different VNIs are told so before they wait for each other" {
  SIM_CXI_SERVICES=1:vni=11 refused 4 "in VNI 11 and the peer in 10" --timeout 5s
}

@test "traffic classes are names here, and a number is refused" {
  measured lat --traffic-class low-latency
  assert_json record.json '.params.fabric_class == "low-latency"'
  refused 2 "--traffic-class by number: the cxi backend does not have it" --traffic-class 3
  BACKEND=verbs refused 2 "--traffic-class by name: the verbs backend does not have it" --traffic-class low-latency
  BACKEND=ofi refused 3 "has no --traffic-class bulk-data" --provider tcp --traffic-class bulk-data
}

@test "atomics: what the provider reports is measured, and what it lacks is exit code 3" {
  local type
  for type in int8 uint16 int32 uint64 float double float-complex; do
    measured lat --op atomic-op --atomic-op sum --atomic-type "$type"
    assert_json record.json ".params.atomic_type == \"$type\" and .params.atomic_op == \"sum\""
  done
  measured lat --op fetch-atomic --atomic-op read
  refused 3 "has no fetch-atomic (prod on uint64)" --op fetch-atomic --atomic-op prod
  refused 3 "at most 8 bytes in one fetch-add" --op fetch-add --size 16
  refused 2 "--atomic-op bor is not defined for --atomic-type float" --op atomic-op --atomic-op bor --atomic-type float
  refused 2 "--op compare-atomic does not have it" --op compare-atomic --atomic-op sum
  refused 2 "--op fetch-add says itself what it does" --op fetch-add --atomic-op sum
  refused 2 "use a multiple of 4" --op atomic-op --atomic-type int32 --size 6
}

@test "what atomics fetch is checked word by word" {
  local op type
  while read -r op type; do
    measured lat --op fetch-atomic --atomic-op "$op" --atomic-type "$type" --verify
    assert_json record.json '.integrity.bad_bytes == 0 and .integrity.checked_bytes > 0'
  done <<<$'min int8\nmax uint32\nsum float\nsum int16\nlor int64\nband uint8\nbxor uint64\nread double\nwrite int32'
  while read -r op type; do
    measured bw --op compare-atomic --atomic-op "$op" --atomic-type "$type" --outstanding 4 --verify
    assert_json record.json '.integrity.bad_bytes == 0 and .integrity.checked_bytes > 0'
  done <<<$'cswap uint64\ncswap-ne int8\ncswap-le double\ncswap-gt int32\nmswap uint16'
  refused 2 "nothing comes back" --op atomic-op --verify
}

@test "options that another operation or backend has are refused with exit code 2" {
  refused 2 "--rdzv: --op write has no rendezvous" --op write --rdzv
  refused 2 "--no-hrp: --op read is never" --op read --no-hrp
  refused 2 "--unrestricted: --op send" --unrestricted
  refused 2 "--keys: --op send names no memory" --keys matching
  refused 2 "--no-idc: --op read" --op read --no-idc
  BACKEND=ofi refused 2 "--no-ll: the ofi backend does not have it" --no-ll
  BACKEND=tcp refused 2 "--svc-id: the tcp backend does not have it" --svc-id 1
  refused 2 "has no providers" --provider tcp
}

@test "sizes of 0 and above 4 GiB - 1 are refused" {
  refused 2 "--size '0' is out of range" --size 0
  refused 2 "--size '4294967296' is out of range" --size 4294967296
}

@test "event completion where the provider has no wait objects is exit code 3" {
  SIM_CXI_WAIT=0 refused 3 "cannot sleep for a completion" --completion event
}

@test "remote completion data where the provider has none is exit code 3, and the way around" {
  refused 3 "use --definition completion" --op write --definition half_round_trip
}

@test "without the provider the missing parts are named, with exit code 3" {
  run_apart 3 env -u FI_PROVIDER_PATH "$PERCH" lat 127.0.0.1 --port "$PLAIN_PORT" --backend cxi
  assert_said "this libfabric has no cxi provider"
  [ -e /sys/class/cxi ] || assert_said "no Slingshot NIC on the PCI bus"
  refused 3 "has no device 'cxi9' here; it has: sim_cxi0" --device cxi9
}
