#!/usr/bin/env bats
# Where the buffers lie: huge pages, and the memory of GPUs. There is no GPU here: the makers' runtimes are test
# doubles under the names of the real libraries (engine/tests/doubles), which check the order of calls and make every
# result a simulated one. They prove nothing about GPUs.

load helpers

setup_file() {
  # PERCH_DOUBLES: another build's
  [ -n "${PERCH_DOUBLES:-}" ] || make --no-print-directory -s -C "$TOP/engine" doubles >&2
  cd "$BATS_FILE_TMPDIR" || return
  export DOUBLES="${PERCH_DOUBLES:-$TOP/engine/build/doubles}" FILE_MARK="memory-$BASHPID-$RANDOM"
  export FI_PROVIDER="tcp,ofi_rxm,shm"
  export PERCH_TEST_MARK=$FILE_MARK
  perch_serve
  # shellcheck disable=SC2153  # perch_serve sets it
  export PLAIN_PORT=$PORT
  LD_LIBRARY_PATH=$DOUBLES perch_serve
  export GPU_PORT=$PORT FILE_SERVERS="${SERVERS[*]}"
}

teardown_file() {
  local pid
  # shellcheck disable=SC2153  # set in setup_file
  for pid in $FILE_SERVERS; do
    kill "$pid" || fail "a server ended before its time: $(cat "$BATS_FILE_TMPDIR"/serve.*.log)"
  done
  PERCH_TEST_MARK=$FILE_MARK no_leak
}

setup() { common_setup; }
teardown() { common_teardown; }

# gpu [EXIT] SUBCOMMAND OPTION...: against the server that has the doubles, with the doubles here too
gpu() {
  local expected=0
  if [[ $1 =~ ^[0-9]$ ]]; then expected=$1 && shift; fi
  LD_LIBRARY_PATH=$DOUBLES run_apart "$expected" "$PERCH" "$1" 127.0.0.1 --port "$GPU_PORT" --json "${@:2}"
}

# plain [EXIT] SUBCOMMAND OPTION...: both ends without them
plain() {
  local expected=0
  if [[ $1 =~ ^[0-9]$ ]]; then expected=$1 && shift; fi
  run_apart "$expected" "$PERCH" "$1" 127.0.0.1 --port "$PLAIN_PORT" --json "${@:2}"
}

# holds JQ-CONDITION: true of the records printed, as an array
holds() {
  # shellcheck disable=SC2154  # run sets it
  printf '%s\n' "$output" | jq -es "$1" >/dev/null || fail "this does not hold: $1
$output"
}

have_library() { ldconfig -p | grep -q "$1"; }

@test "every runtime's memory carries each message, verified, through a bounce" {
  local kind
  for kind in cuda rocm ze; do
    gpu bw --memory "$kind" --bounce --verify --iterations 200 --warmup 100 --size 5000
    holds ".[0] | .status == \"ok\" and .integrity == {bad_bytes: 0, checked_bytes: (300 * 5000)} and .simulated
      and .client.gpu == \"sim_${kind}0\" and .server.gpu == \"sim_${kind}0\" and .params.bounce
      and .params.memory == \"$kind:0\" and .params.tx_memory == \"$kind:0\" and .params.gpu_path == \"bounce\""
    assert_said "proves nothing about GPUs"
    gpu lat --memory "$kind:1" --bounce --verify --iterations 20 --size 1:64
    holds "length == 7 and all(.status == \"ok\" and .integrity.bad_bytes == 0 and .client.gpu == \"sim_${kind}1\")"
  done
}

@test "ofi bounces, too: sends, writes out of a GPU and reads into one; both ways at once" {
  gpu lat --backend ofi --provider tcp --memory cuda --bounce --verify --iterations 20
  holds '.[0] | .integrity.bad_bytes == 0 and .params.inline_bytes == null'
  gpu bw --backend ofi --op write --tx-memory rocm --bounce --verify --iterations 50
  holds '.[0] | .integrity.bad_bytes == 0 and .params.memory == "mixed" and .params.rx_memory == "host"'
  gpu bw --backend ofi --op read --rx-memory ze --bounce --verify --iterations 50
  holds '.[0].integrity.bad_bytes == 0'
  gpu bw --tx-memory ze --rx-memory cuda --bounce --verify --bidirectional --iterations 50
  holds '.[0] | .integrity.bad_bytes == 0 and .client.gpu == "sim_ze0, sim_cuda0"'
}

@test "a GPU is named by its PCI address, and records say which one was used" {
  local kind
  for kind in cuda rocm ze; do
    gpu lat --memory "$kind:FFFF:02:00.0" --bounce --verify --iterations 20
    holds ".[0] | .params.memory == \"$kind:ffff:02:00.0\" and .client.gpu == \"sim_${kind}1\" and .integrity.bad_bytes == 0
      and .client.placement.gpu == \"ffff:02:00.0\" and .server.placement.gpu == \"ffff:02:00.0\""
  done
  gpu lat --tx-memory cuda:1 --bounce --iterations 2
  holds '.[0] | .client.placement.gpu == "ffff:02:00.0"'
  # Each end has memory of both kinds; commands of one device have the next GPU each.
  gpu lat --memory cuda:near --slot 2/2 --bounce --iterations 2
  holds '.[0] | .params.memory == "cuda:near" and .client.placement.gpu == "ffff:02:00.0" and .server.placement.gpu == "ffff:01:00.0"'
  plain lat --iterations 2
  holds '.[0].client.placement | has("gpu") | not'
}

@test "the copies of a bounce are a part of the latency: one at each end of the way" {
  PERCH_FAKE_GPU_COPY_US=2000 gpu lat --memory cuda --bounce --iterations 3 --warmup 0
  # the client's two copies of each round trip alone, halved
  holds '.[0].latency_us.min >= 2000'
}

@test "the runtime is called in its order, from its start to its end" {
  PERCH_FAKE_GPU_LOG=$PWD/calls gpu lat --memory cuda --bounce --iterations 2
  run grep -v cuCtxSetCurrent calls
  assert_output "cuInit
cuDevicePrimaryCtxRetain
cuMemAlloc
cuPointerSetAttribute
cuMemFree
cuDevicePrimaryCtxRelease"
}

@test "no runtime on this host: exit 3, which library, which devices, what to install" {
  local kind library
  for kind in cuda:libcuda.so.1:/dev/nvidia0:nvidia-driver rocm:libamdhip64.so:/dev/kfd:libamdhip64-5 \
    ze:libze_loader.so.1:/dev/dri/renderD:libze-intel-gpu1; do
    IFS=: read -r kind library device package <<<"$kind"
    if have_library "$library"; then skip "this host has $library"; fi
    plain 3 lat --memory "$kind" --bounce
    assert_said "cannot load $library"
    assert_said "$device"
    assert_said "$package"
  done
}

@test "a peer without the runtime is exit 4, with its own words" {
  if have_library libcuda.so.1; then skip "this host has libcuda.so.1"; fi
  LD_LIBRARY_PATH=$DOUBLES run_apart 4 "$PERCH" lat 127.0.0.1 --port "$PLAIN_PORT" --memory cuda --bounce
  assert_said "cannot load libcuda.so.1"
}

@test "no GPU, no such GPU, no memory of it: exit 3" {
  PERCH_FAKE_GPU_COUNT=0 gpu 3 lat --memory cuda --bounce
  assert_said "no NVIDIA GPU on this host: no CUDA-capable device is detected"
  gpu 3 lat --rx-memory rocm:2 --bounce
  assert_said "the runtime sees 2 GPUs on this host, rocm:0 to rocm:1"
  gpu 3 lat --memory ze:0000:3b:00.0 --bounce
  assert_said "no Intel GPU at that PCI address; it has ffff:01:00.0, ffff:02:00.0"
  PERCH_FAKE_GPU_MEMORY=1000000 gpu 3 lat --memory ze --bounce
  assert_said "ze:0 (sim_ze0): cannot get 2 MiB of its memory: out of device memory"
}

@test "a copy that fails in the middle is exit 6, and the server lives on" {
  PERCH_FAKE_GPU_COPY_FAIL=120 gpu 6 lat --memory cuda --bounce --iterations 1000
  assert_said "copying 8 bytes"
  holds '.[0] | .status == "error" and .error.code == 6'
  gpu lat --memory cuda --bounce --iterations 2
}

@test "what a backend never has is exit 2, and says what there is" {
  plain 2 lat --memory cuda
  assert_said "the tcp backend reaches host memory only; --bounce"
  plain 2 lat --backend null --memory ze --bounce
  assert_said "the null backend takes host memory and huge pages only"
  plain 2 lat --bounce
  assert_said "host memory already"
  plain 2 lat --backend ofi --op read --memory cuda --bounce
  assert_said "no process runs at the end of the"
  plain 2 lat --memory gpu:0
  assert_said "give host, huge:2M, huge:1G, cuda[:GPU], rocm[:GPU] or ze[:GPU]; GPU is a number, a PCI address, or near"
}

@test "a provider that does not reach a GPU is exit 3, and --bounce is offered" {
  gpu 3 lat --backend ofi --provider tcp --memory cuda
  assert_said "does not reach the memory of GPUs"
  assert_said "--bounce"
  gpu 3 lat --backend ofi --provider shm --memory cuda
  assert_said "--bounce copies through host memory instead"
}

@test "FI_HMEM carries it without a bounce, on the simulated CXI provider: sends, writes, reads and atomics" {
  local options
  # The simulated provider works on addresses: it stands for a device that reaches the GPU.
  export PERCH_FAKE_GPU_VISIBLE=1 FI_PROVIDER_PATH=$TOP/tests/sim_cxi/build
  unset FI_PROVIDER
  make --no-print-directory -s -C "$TOP/tests/sim_cxi" >&2
  PERCH_TEST_MARK=$PERCH_TEST_MARK LD_LIBRARY_PATH=$DOUBLES perch_serve
  GPU_PORT=$PORT
  for options in "lat --memory cuda" "lat --memory ze:1" "bw --op write --memory rocm" "bw --op read --memory cuda" \
    "bw --op write --rx-memory ze" "bw --op read --tx-memory rocm" "lat --op fetch-add --rx-memory cuda" \
    "transfer --op write --memory cuda --batch 4" "transfer --op read --memory rocm --batch 4 --chunk 1K"; do
    read -ra options <<<"$options"
    gpu "${options[@]}" --backend cxi --verify --iterations 20
    holds '.[0] | .integrity.bad_bytes == 0 and .integrity.checked_bytes > 0 and .simulated
      and .params.gpu_path == "fi_hmem" and (.params.bounce | not)'
  done
  # a GPU for each pair of devices, in threads of their own
  gpu transfer --memory cuda:1,0 --devices sim_cxi0,sim_cxi0 --server-devices sim_cxi0,sim_cxi0 --backend cxi --verify \
    --size 4K --batch 4 --iterations 20
  holds 'map(.params.tx_memory) == ["cuda:1", "cuda:0", "cuda:1,0"] and map(.server.gpu)[:2] == ["sim_cuda1", "sim_cuda0"]
    and all(.[]; .status == "ok" and .integrity.bad_bytes == 0 and .integrity.checked_bytes > 0)'
  # near: no GPU is nearer to a simulated NIC, so each pair has its own
  gpu transfer --memory cuda:near --devices sim_cxi0,sim_cxi0 --server-devices sim_cxi0,sim_cxi0 --backend cxi --verify \
    --size 4K --batch 4 --iterations 20
  holds 'map(.client.placement.gpu) == ["ffff:01:00.0", "ffff:02:00.0", "ffff:01:00.0,ffff:02:00.0"]
    and map(.server.placement.gpu) == map(.client.placement.gpu) and all(.[]; .params.memory == "cuda:near"
    and .status == "ok" and .integrity.bad_bytes == 0 and .integrity.checked_bytes > 0)'
  # Immediate data commands are built by the host, which cannot read the payload.
  gpu lat --backend cxi --tx-memory cuda --iterations 2
  holds '.[0].params | .idc == false and .inline_bytes == null'
  gpu lat --backend cxi --rx-memory cuda --iterations 2
  holds '.[0].params.idc == true'
  stop_servers
}

@test "huge pages on every backend, or how many are free and how to reserve them" {
  local free total
  free=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages 2>/dev/null || echo 0)
  total=$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages 2>/dev/null || echo 0)
  if [ "$free" -ge 2 ]; then
    plain lat --huge 2M --verify --iterations 20
    holds '.[0].params | .memory == "huge:2M" and .huge == 2097152 and .tx_memory == "huge:2M" and (.bounce | not)'
    plain lat --backend null --tx-memory huge:2M --iterations 20
    holds '.[0].params | .memory == "mixed" and .rx_memory == "host"'
  fi
  plain 3 bw --memory huge:2M --verify --size 4294967295 --outstanding 2
  assert_said "pages are needed, and "
  assert_said " of $total are free"
  assert_said "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
  assert_said "hugepagesz=2M hugepages="
}
