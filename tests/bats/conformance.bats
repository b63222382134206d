#!/usr/bin/env bats
# What every backend must do alike (conformance.bash). Another backend, provider or operation is a line in expect(), and two
# tests. Verbs needs a device: its tests are in verbs.bats, which tests/run runs in User-Mode
# Linux where this machine has none.

load helpers
load conformance

setup_file() {
  [ -n "${HOOKS:-}" ] || make --no-print-directory -s -C "$TOP/engine" hooks >&2
  make --no-print-directory -s -C "$TOP/tests/sim_cxi" build/libcxi-fi.so >&2
  cd "$BATS_FILE_TMPDIR" || return
  # Fewer providers are found faster; those under test are among them.
  export HOOKS=${HOOKS:-$TOP/engine/build-hooks/perch} FI_PROVIDER="tcp,ofi_rxm,shm,cxi" FI_PROVIDER_PATH="$TOP/tests/sim_cxi/build"
  mkdir -p "$BATS_FILE_TMPDIR/fabric"
  export SIM_CXI_FABRIC="$BATS_FILE_TMPDIR/fabric" FILE_MARK="conformance-$BASHPID-$RANDOM"
  export PERCH_TEST_MARK=$FILE_MARK
  perch_serve
  # shellcheck disable=SC2153  # perch_serve sets it
  export PLAIN_PORT=$PORT
  PERCH=$HOOKS perch_serve
  export HOOKS_PORT=$PORT
  PERCH=$HOOKS PERCH_TEST_FLIP=3 perch_serve
  export FLIPPING_PORT=$PORT FILE_SERVERS="${SERVERS[*]}"
}

teardown_file() { file_servers_gone; }

setup() { common_setup; }

teardown() {
  stop_servers
  common_teardown
}

@test "tcp: send conforms" { conforms tcp: send; }
@test "tcp: send notices a flipped byte" { notices_a_flipped_byte tcp: send; }

@test "null: send conforms" { conforms null: send; }
@test "null: send notices a flipped byte" { notices_a_flipped_byte null: send; }
@test "null: write conforms" { conforms null: write; }
@test "null: write notices a flipped byte" { notices_a_flipped_byte null: write; }
@test "null: read conforms" { conforms null: read; }
@test "null: read notices a flipped byte" { notices_a_flipped_byte null: read; }
@test "null: fetch-add conforms" { conforms null: fetch-add; }
@test "null: fetch-add notices a flipped byte" { notices_a_flipped_byte null: fetch-add; }
@test "null: compare-swap conforms" { conforms null: compare-swap; }
@test "null: compare-swap notices a flipped byte" { notices_a_flipped_byte null: compare-swap; }

@test "ofi tcp;ofi_rxm: send conforms" { conforms "ofi:tcp;ofi_rxm" send; }
@test "ofi tcp;ofi_rxm: send notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" send; }
@test "ofi tcp;ofi_rxm: write conforms" { conforms "ofi:tcp;ofi_rxm" write; }
@test "ofi tcp;ofi_rxm: write notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" write; }
@test "ofi tcp;ofi_rxm: read conforms" { conforms "ofi:tcp;ofi_rxm" read; }
@test "ofi tcp;ofi_rxm: read notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" read; }
@test "ofi tcp;ofi_rxm: fetch-add conforms" { conforms "ofi:tcp;ofi_rxm" fetch-add; }
@test "ofi tcp;ofi_rxm: fetch-add notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" fetch-add; }
@test "ofi tcp;ofi_rxm: compare-swap conforms" { conforms "ofi:tcp;ofi_rxm" compare-swap; }
@test "ofi tcp;ofi_rxm: compare-swap notices a flipped byte" { notices_a_flipped_byte "ofi:tcp;ofi_rxm" compare-swap; }

@test "ofi shm: send conforms" { conforms ofi:shm send; }
@test "ofi shm: send notices a flipped byte" { notices_a_flipped_byte ofi:shm send; }
@test "ofi shm: write conforms" { conforms ofi:shm write; }
@test "ofi shm: write notices a flipped byte" { notices_a_flipped_byte ofi:shm write; }
@test "ofi shm: read conforms" { conforms ofi:shm read; }
@test "ofi shm: read notices a flipped byte" { notices_a_flipped_byte ofi:shm read; }
@test "ofi shm: fetch-add conforms" { conforms ofi:shm fetch-add; }
@test "ofi shm: fetch-add notices a flipped byte" { notices_a_flipped_byte ofi:shm fetch-add; }
@test "ofi shm: compare-swap conforms" { conforms ofi:shm compare-swap; }
@test "ofi shm: compare-swap notices a flipped byte" { notices_a_flipped_byte ofi:shm compare-swap; }

# Slingshot, on the simulated provider (tests/sim_cxi): no hardware, and the records say so.
@test "cxi: send conforms" { conforms cxi:cxi send; }
@test "cxi: send notices a flipped byte" { notices_a_flipped_byte cxi:cxi send; }
@test "cxi: write conforms" { conforms cxi:cxi write; }
@test "cxi: write notices a flipped byte" { notices_a_flipped_byte cxi:cxi write; }
@test "cxi: read conforms" { conforms cxi:cxi read; }
@test "cxi: read notices a flipped byte" { notices_a_flipped_byte cxi:cxi read; }
@test "cxi: fetch-add conforms" { conforms cxi:cxi fetch-add; }
@test "cxi: fetch-add notices a flipped byte" { notices_a_flipped_byte cxi:cxi fetch-add; }
@test "cxi: compare-swap conforms" { conforms cxi:cxi compare-swap; }
@test "cxi: compare-swap notices a flipped byte" { notices_a_flipped_byte cxi:cxi compare-swap; }

# sanitized SANITIZERS BACKEND:PROVIDER=OPERATION...: both ends are built with them. What they find ends a client (exit
# code, standard error), a job (so its client) or, at its end, stands in the server's log.
sanitized() {
  local pair
  make --no-print-directory -s -C "$TOP/engine" HOOKS= SANITIZE="$1" >&2
  # shellcheck disable=SC2034  # conformance.bash reads it
  PERCH=$TOP/engine/build-$1/perch
  perch_serve
  PLAIN_PORT=$PORT
  shift
  for pair in "$@"; do conforms "${pair%=*}" "${pair#*=}"; done
  wait_until no_server_jobs
  kill "$SERVER" && wait "$SERVER"
  [ "$(wc -l <"serve.$PORT.log")" -eq 1 ] || fail "$(cat "serve.$PORT.log")"
}

@test "the address and undefined-behaviour sanitizers find nothing" {
  sanitized address,undefined tcp:=send "ofi:tcp;ofi_rxm=write" ofi:shm=read cxi:cxi=write
}

# Two threads: the measurement, and the watchdog that looks at it.
@test "the thread sanitizer finds nothing" {
  sanitized thread "ofi:tcp;ofi_rxm=send"
}
