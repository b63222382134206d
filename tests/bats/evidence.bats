#!/usr/bin/env bats
# What a run's word rests on: files that are as they were fetched, and a verdict that anybody can compute again from them.

load helpers
load judge

setup() { judge_setup; }
teardown() { common_teardown; }

seal() { run_expecting "$1" "$TOP/reports/seal" "${@:2}" run; }

@test "a sealed run passes; an edited raw file, a removed one and an added one each make it inconclusive, and are named" {
  seal 0
  cp -r run sealed
  judge 0
  assert_equal "$(check_status manifest)" pass
  # one byte that no reader sees: a blank at the end of a line of standard error
  printf ' ' >>run/raw/alpha/flows/iperf3/alpha/beta/1/client.stderr
  judge 3
  assert_equal "$(check_status manifest/changed)" inconclusive
  assert_json run/verdict.json '.checks[] | select(.id == "manifest/changed") | .evidence == ["raw/alpha/flows/iperf3/alpha/beta/1/client.stderr"]'
  rm -r run && cp -r sealed run
  rm run/raw/alpha/flows/iperf3/alpha/beta/1/client.stderr
  judge 3
  assert_equal "$(check_status manifest/missing)" inconclusive
  rm -r run && cp -r sealed run
  echo >run/raw/beta/added
  judge 3
  assert_equal "$(check_status manifest/new)" inconclusive
  # neither the plan nor the limits can be bent later
  rm -r run && cp -r sealed run
  edit run/inputs/limits.json '.limits |= map(.severity = "advisory")'
  judge 3
  assert_json run/verdict.json '.checks[] | select(.id == "manifest/changed") | .evidence == ["inputs/limits.json"]'
}

@test "a manifest that is no manifest is inconclusive; a run without one says so and is judged as ever" {
  judge 0
  assert_equal "$(check_status manifest)" not_judged
  seal 0
  echo "junk" >>run/raw/manifest.sha256
  judge 3
  assert_equal "$(check_status manifest/line)" inconclusive
  : >run/raw/manifest.sha256
  judge 3
  assert_equal "$(check_status manifest/new)" inconclusive
  rm run/raw/manifest.sha256 && mkdir run/raw/manifest.sha256
  judge 3
  assert_equal "$(check_status manifest/line)" inconclusive
  rmdir run/raw/manifest.sha256 && mkfifo run/raw/manifest.sha256
  judge 3
  assert_equal "$(check_status manifest/line)" inconclusive
}

@test "sealing again adds what is new and never changes a hash that stands there" {
  seal 0
  cp run/raw/manifest.sha256 before
  echo edited >>"$TCP/client.stderr"
  echo >run/raw/alpha/later
  seal 0
  assert_output --partial "1 files sealed"
  diff before <(head -n -1 run/raw/manifest.sha256)
  judge 3
  assert_json run/verdict.json '[.checks[] | select(.id | startswith("manifest/")) | .id] == ["manifest/changed"]'
  run_expecting 2 "$TOP/reports/seal" nowhere
}

@test "a raw file that was replaced by a pipe or a link is missing, and nobody waits for it" {
  seal 0
  rm "$TCP/client.stderr" "$IPERF3/client.stderr"
  mkfifo "$TCP/client.stderr"
  ln -s /etc/hostname "$IPERF3/client.stderr"
  LIMIT=20 run_expecting 3 "$JUDGE" run
  assert_json run/verdict.json '.checks[] | select(.id == "manifest/missing") | .evidence | length == 2'
}

# ---- bundles ----

# packed: run, sealed and judged, in run.bundle.tar.gz and, unpacked, in tree/RUN
packed() {
  seal 0
  judge 0
  run_expecting 0 "$TOP/reports/bundle" "$@" run
  mkdir tree && tar -xzf run.bundle.tar.gz -C tree
  ROOT=$(echo tree/*)
}

verify() { run_expecting "$1" "$TOP/reports/verify" "${@:2}"; }

# repack: tree as a bundle again, as reports/bundle packs it, in again.tar.gz
repack() {
  bash -c ". '$TOP/reports/pack.bash'; pack '$ROOT'" | gzip -n >again.tar.gz
}

# manifest: what somebody does who edits a file and covers it up
manifest() { (. "$TOP/reports/pack.bash" && list_files "$ROOT" | (cd "$ROOT" && xargs -d '\n' sha256sum --) >sum && mv sum "$ROOT/manifest.sha256"); }

@test "the same run gives the same bundle, byte for byte, and its verdict can be computed again from it" {
  packed
  run_expecting 0 "$TOP/reports/bundle" run second.tar.gz
  cmp run.bundle.tar.gz second.tar.gz
  verify 0 run.bundle.tar.gz
  assert_output --partial "verdict.json: the same, to the byte"
  assert_output --partial "PASS: 29 of 29"
  for file in plan.json inputs/limits.json raw/alpha/environment.json records.jsonl verdict.json bundle.json manifest.sha256; do
    [ -s "$ROOT/$file" ] || fail "there is no $file"
  done
  assert_json "$ROOT/bundle.json" '.schema == "perch.bundle/1" and .verdict == "PASS" and (.host_configuration | has("raw/alpha/environment.json"))'
  local edit schema=$TOP/reports/schema/bundle.schema.json
  run_expecting 0 check-jsonschema --schemafile "$schema" "$ROOT/bundle.json"
  for edit in 'del(.versions.jq)' '.verdict = "GOOD"' '.versions.tools[0] = "perch"' '.host_configuration["raw/alpha/environment.json"] = "0"' \
    '.host_configuration["/etc/passwd"] = .host_configuration["raw/alpha/environment.json"]' '.extra = 1'; do
    jq "$edit" "$ROOT/bundle.json" >wrong.json
    run_expecting 1 check-jsonschema --schemafile "$schema" wrong.json
  done
  # no earlier bundle is written over
  run_expecting 1 "$TOP/reports/bundle" run
}

@test "one byte that was changed is named with its file, wherever it is" {
  packed
  local file
  for file in plan.json inputs/limits.json records.jsonl verdict.json bundle.json raw/alpha/flows/iperf3/alpha/beta/1/client.stdout; do
    cp "$ROOT/$file" kept
    printf ' ' | dd of="$ROOT/$file" bs=1 seek=9 conv=notrunc status=none
    repack
    verify 1 again.tar.gz
    assert_output --partial "$file: changed since it was packed"
    cp kept "$ROOT/$file"
  done
  rm "$ROOT/inputs/limits.json"
  repack
  verify 1 again.tar.gz
  assert_output --partial "inputs/limits.json: missing"
}

@test "a byte of the archive itself that was changed is damage, at its begin, in its middle and at its end" {
  packed
  local at size
  size=$(stat -c %s run.bundle.tar.gz)
  for at in 4 9 $((size / 3)) $((size / 2)) $((size - 6)); do
    cp run.bundle.tar.gz bent.tar.gz
    printf '\x55' | dd of=bent.tar.gz bs=1 seek="$at" conv=notrunc status=none
    verify 1 bent.tar.gz
    assert_output --partial "bent.tar.gz is damaged"
  done
  head -c $((size / 2)) run.bundle.tar.gz >half.tar.gz
  verify 1 half.tar.gz
  # what gzip itself says nothing of: zeros and another member behind its end, another header within
  { cat run.bundle.tar.gz && head -c 64 /dev/zero; } >zeros.tar.gz
  { cat run.bundle.tar.gz && gzip -n </dev/null; } >member.tar.gz
  gzip -dc run.bundle.tar.gz >whole.tar
  { head -c 20480 whole.tar | gzip -n && tail -c +20481 whole.tar | gzip -n; } >members.tar.gz
  for at in zeros member members; do
    verify 1 $at.tar.gz
    assert_output --partial "$at.tar.gz is damaged"
  done
  # headers, too: another owner
  tar -C tree -cf - --format=gnu --sort=name --mtime=@0 --owner=7 --group=0 --numeric-owner --mode=u=rwX,go=rX "${ROOT#tree/}" | gzip -n >owner.tar.gz
  verify 1 owner.tar.gz
  assert_output --partial "not as reports/bundle packs them"
}

@test "who covers an edit up with a new manifest is found by the recomputed verdict, and by the signature" {
  ssh-keygen -q -t ed25519 -N '' -f key
  echo "site@example.org namespaces=\"perch\" $(cut -d ' ' -f 1,2 key.pub)" >signers
  packed --key key
  verify 0 --signers signers run.bundle.tar.gz
  assert_output --partial 'Good "perch" signature for site@example.org'
  verify 0 run.bundle.tar.gz
  assert_output --partial "nobody vouches for"
  edit "$ROOT/verdict.json" '.coverage.measured = 28'
  manifest
  repack
  verify 1 --signers signers again.tar.gz
  assert_output --partial "the signature is bad"
  rm "$ROOT/manifest.sha256.sig"
  repack
  verify 1 again.tar.gz
  assert_output --partial "verdict.json: judged anew, another file"
  verify 1 --signers signers again.tar.gz
  assert_output --partial "is not signed"
  # a key that signers does not name
  ssh-keygen -q -t ed25519 -N '' -f other
  echo "other@example.org $(cut -d ' ' -f 1,2 other.pub)" >others
  verify 1 --signers others run.bundle.tar.gz
}

@test "bundle.json says what the run says, and verify says what it does not make anew" {
  packed
  local change
  while read -r change; do
    cp "$ROOT/bundle.json" kept
    edit "$ROOT/bundle.json" "$change"
    manifest
    repack
    verify 1 again.tar.gz
    assert_output --partial "bundle.json says otherwise than the run that it describes"
    cp kept "$ROOT/bundle.json"
  done <<'CHANGES'
.verdict = "FAIL"
.scope = "hardware"
.host_configuration["raw/alpha/environment.json"] |= sub("^.."; "zz")
.versions.tools[0].version = "9"
CHANGES
  rm "$ROOT/bundle.json"
  manifest
  repack
  verify 1 again.tar.gz
  assert_output --partial "it holds no bundle.json"
  cp kept "$ROOT/bundle.json"
  manifest
  cp -r "$ROOT" tree/another
  bash -c ". '$TOP/reports/pack.bash'; pack tree/another" | gzip -n >again.tar.gz
  verify 1 again.tar.gz
  assert_output --partial "is not called as its run"
  # without a manifest of the raw files and without a signature there is little to rely on
  rm "$ROOT/raw/manifest.sha256"
  "$JUDGE" "$ROOT"
  manifest
  repack
  verify 0 again.tar.gz
  assert_output --partial "nor whether they altered plan, limits or raw outputs before"
  assert_output --partial "raw/manifest.sha256: none"
  assert_output --partial "are as packed: they were not made anew"
}

@test "a key may stand several times among the signers, each time for something else, and an expired one signs nothing" {
  ssh-keygen -q -t ed25519 -N '' -f key
  packed --key key
  local public
  public=$(cut -d ' ' -f 1,2 key.pub)
  printf '%s\n' "git@example.org namespaces=\"git\" $public" "site@example.org namespaces=\"perch\" $public" >signers
  verify 0 --signers signers run.bundle.tar.gz
  assert_output --partial 'signature for site@example.org'
  echo "git@example.org namespaces=\"git\" $public" >signers
  verify 1 --signers signers run.bundle.tar.gz
  echo "site@example.org valid-before=\"20200101\" $public" >signers
  verify 1 --signers signers run.bundle.tar.gz
}

@test "a bundle that would write elsewhere is refused before it is unpacked: links, absolute names, climbing ones, too much of it" {
  packed
  local name=${ROOT#tree/}
  echo mine >outside
  ln -s "$PWD/outside" "$ROOT/raw/link"
  tar -C tree -cf - "$name" | gzip -n >link.tar.gz
  rm "$ROOT/raw/link" && ln "$ROOT/plan.json" "$ROOT/raw/hard"
  tar -C tree -cf - "$name" | gzip -n >hard.tar.gz
  rm "$ROOT/raw/hard" && mkfifo "$ROOT/raw/pipe"
  tar -C tree -cf - "$name" | gzip -n >pipe.tar.gz
  rm "$ROOT/raw/pipe"
  tar -C tree -cPf - --transform "s|^$name/plan.json|$name/../../outside|" "$name" | gzip -n >climbs.tar.gz
  tar -C tree -cPf - --transform "s|^$name/plan.json|$PWD/outside|" "$name" | gzip -n >absolute.tar.gz
  tar -C tree -cf - "$name" "$name/plan.json" --hard-dereference | gzip -n >twice.tar.gz
  for what in link hard pipe climbs absolute twice; do
    LIMIT=20 verify 1 "$what.tar.gz"
    assert_output --partial "$what.tar.gz is damaged"
    assert_equal "$(cat outside)" mine
  done
  PERCH_VERIFY_MOST_BYTES=10000 verify 3 run.bundle.tar.gz
  assert_output --partial "more than 10000 bytes"
  verify 2 nowhere.tar.gz
}

@test "no secret goes into a bundle" {
  packed
  refute grep -rqiE 'token=|PRIVATE KEY' "$ROOT"
  rm run.bundle.tar.gz
  echo secret >run/raw/alpha/token
  run_expecting 1 "$TOP/reports/bundle" run
  assert_output --partial "raw/alpha/token"
  rm run/raw/alpha/token
  printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\n' >run/raw/alpha/notes
  run_expecting 1 "$TOP/reports/bundle" run
  assert_output --partial "raw/alpha/notes"
  [ ! -e run.bundle.tar.gz ]
}

@test "a run of which a part cannot be read is not packed at all" {
  seal 0
  judge 0
  # as root nothing is unreadable: find itself says that it could not read a folder
  mkdir bin
  printf '#!/bin/bash\n"%s" "$@" | grep -v /beta/\nexit 1\n' "$(command -v find)" >bin/find
  chmod +x bin/find
  PATH=$PWD/bin:$PATH run_expecting 3 "$TOP/reports/bundle" run
  assert_output --partial "a part of run cannot be read"
  [ ! -e run.bundle.tar.gz ]
}

@test "of a soak the lines of its intervals are verified, too: edited ones and absent ones are named" {
  rm -r run
  python3 "$TOP/tests/soak_compose.py" run --duration 300 --interval 60
  run timeout 60 "$TOP/reports/judge" run
  run_expecting 0 "$TOP/reports/bundle" run
  run_expecting 0 "$TOP/reports/verify" run.bundle.tar.gz
  assert_output --partial "intervals.jsonl: the same, to the byte"
  rm run.bundle.tar.gz
  sed -i '5s/"start_s":/"start_s":1/' run/intervals.jsonl
  run_expecting 0 "$TOP/reports/bundle" run
  run_expecting 1 "$TOP/reports/verify" run.bundle.tar.gz
  assert_output --partial "intervals.jsonl: judged anew, another file"
  rm run.bundle.tar.gz run/intervals.jsonl
  run_expecting 0 "$TOP/reports/bundle" run
  run_expecting 1 "$TOP/reports/verify" run.bundle.tar.gz
  assert_output --partial "intervals.jsonl: judged anew, another file"
}

@test "a link in a run's folder brings nothing of outside into the bundle" {
  packed
  rm run.bundle.tar.gz
  mkdir outside && echo elsewhere >outside/x.svg
  rm -rf run/report.md run/charts
  ln -s "$PWD/outside/x.svg" run/report.md
  ln -s "$PWD/outside" run/charts
  run_expecting 0 "$TOP/reports/bundle" run
  refute grep -q elsewhere <(tar -xzOf run.bundle.tar.gz)
}
