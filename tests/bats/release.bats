#!/usr/bin/env bats
# `make release` in two clones of this tree, under the settings of two users.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR" || return
  git -C "$TOP" ls-files -z --cached --others --exclude-standard >files 2>/dev/null || skip "no git checkout to copy"
  git init --quiet source
  (cd "$TOP" && xargs -0 cp --parents -t "$BATS_FILE_TMPDIR/source" <"$BATS_FILE_TMPDIR/files")
  git -C source add --all
  GIT_COMMITTER_DATE="2026-01-02T03:04:05+01:00" \
    git -C source -c user.name=tester -c user.email=tester@example.org commit --quiet --message "A release"
  git clone --quiet source one
  git clone --quiet source two
  release one
  # what must not reach the files: times and modes of the checkout, the zone, and what is ignored
  find two -path two/.git -prune -o -type f -exec touch --date=2001-01-01 {} +
  git -C two config tar.umask 077
  mkdir two/runs && echo secret >two/runs/secret
  TZ=Asia/Tokyo LC_ALL=C release two
}

# release CLONE
release() { (umask 077 && make -C "$1" release) >"$1.log" 2>&1 3>&- || { cat "$1.log" >&2 && return 1; }; }

setup() {
  common_setup
  DIST=$BATS_FILE_TMPDIR/one/dist
  VERSION=$(sed -n 's/.*PERCH_VERSION "\(.*\)".*/\1/p' "$TOP/engine/src/version.h")
}
teardown() { common_teardown; }

# sbom JQ-CONDITION
sbom() { assert_json "$DIST/perch-$VERSION.cdx.json" "$1"; }

@test "a release is four files, whose checksums hold until a byte is altered" {
  run ls -A "$DIST"
  assert_output "SHA256SUMS
perch-$VERSION.cdx.json
perch-$VERSION.tar.gz
perch-fabric-$VERSION.tar.gz"
  cp -r "$DIST" dist
  cd dist
  run_expecting 0 sha256sum --strict --check SHA256SUMS
  assert_equal "${#lines[@]}" 3
  printf x >>"perch-$VERSION.tar.gz"
  run_expecting 1 sha256sum --strict --check SHA256SUMS
}

@test "the same commit gives the same bytes, whatever the user's settings" {
  diff -r "$DIST" "$BATS_FILE_TMPDIR/two/dist"
}

@test "the source archive has the committed files alone and their commit, and its setup and version work" {
  assert_equal "$(zcat "$DIST/perch-$VERSION.tar.gz" | git get-tar-commit-id)" "$(git -C "$BATS_FILE_TMPDIR/source" rev-parse HEAD)"
  tar -xzf "$DIST/perch-$VERSION.tar.gz"
  diff -r --exclude=.git --exclude=dist --exclude=.venv "$BATS_FILE_TMPDIR/source" "perch-$VERSION"
  run_expecting 0 "perch-$VERSION/setup/setup" --help
  assert_output --partial "usage: setup/setup"
  make --no-print-directory -s -C "perch-$VERSION/engine" check-tool
  run_expecting 0 "perch-$VERSION/engine/build-check/perch" --version
  assert_line --index 0 "perch $VERSION"
}

@test "ansible-galaxy installs and verifies the collection" {
  run_expecting 0 ansible-galaxy collection install --offline -p collections "$DIST/perch-fabric-$VERSION.tar.gz"
  assert_json collections/ansible_collections/perch/fabric/MANIFEST.json ".collection_info.version == \"$VERSION\""
  run_expecting 0 ansible-galaxy collection verify --offline -p collections perch.fabric
  assert_output --partial "Successfully verified"
  assert_json collections/ansible_collections/perch/fabric/FILES.json '[.files[].name] | . == sort and length > 300'
}

@test "the bill of materials is valid CycloneDX 1.6, and an invalid one is found" {
  run_expecting 0 python "$TOP/tests/sbom.py" "$DIST/perch-$VERSION.cdx.json"
  jq '.components[0].type = "thing"' "$DIST/perch-$VERSION.cdx.json" >broken.json
  run_expecting 1 python "$TOP/tests/sbom.py" broken.json
  assert_output --partial thing
}

@test "the bill names the archive, each pinned package with its hashes, and the libraries that the engine links" {
  local pins
  sbom ".metadata.component | .version == \"$VERSION\" and .hashes[0].content == \"$(sha256sum <"$DIST/perch-$VERSION.tar.gz" | cut -c 1-64)\""
  sbom '.metadata.timestamp == "2026-01-02T03:04:05+01:00"'
  pins=$(sed -nE 's/^([A-Za-z0-9._-]+)==([^ ]+).*/\1 \2/p' "$TOP"/setup/requirements*.txt | sort)
  assert_equal "$(jq -r '.components[] | select(.purl | startswith("pkg:pypi/")) | "\(.name) \(.version)"' "$DIST"/*.cdx.json | sort)" "$pins"
  assert_equal "$(jq -r '.components[].externalReferences[]?.hashes[].content' "$DIST"/*.cdx.json | sort)" \
    "$(grep -oh 'sha256:[0-9a-f]*' "$TOP"/setup/requirements*.txt | cut -c 8- | sort)"
  run jq -r '.components[] | select(.purl | startswith("pkg:deb/")) | .name' "$DIST/perch-$VERSION.cdx.json"
  assert_output "libc6-dev
libfabric-dev
libibverbs-dev
libjansson-dev
librdmacm-dev
libssl-dev
zlib1g-dev"
}

@test "the bill tells what runs from what only tests, and what needs what" {
  sbom '[.components[] | select(.scope == "required") | .name] | contains(["ansible-core", "polars-runtime-32", "MarkupSafe", "libibverbs-dev"]) and index("pytest") == null'
  sbom '.dependencies[] | select(.ref | startswith("pkg:pypi/rich@")) | .dependsOn | any(startswith("pkg:pypi/markdown-it-py@"))'
}

@test "changed and new files are named and refused; ignored ones are not" {
  git clone --quiet "$BATS_FILE_TMPDIR/source" three
  cd three
  mkdir runs && echo ignored >runs/file
  echo changed >>README.md
  echo new >notes.txt
  run_expecting 2 setup/release
  assert_output "release: uncommitted changes in README.md, notes.txt; commit or remove them first"
  touch new{1..7}.txt
  run_expecting 2 setup/release
  assert_output --partial "README.md, new1.txt, new2.txt, new3.txt, new4.txt and 4 more;"
  [ ! -e dist ] || fail "dist was made"
}

@test "a collection of another version is refused, and make version corrects it" {
  git clone --quiet "$BATS_FILE_TMPDIR/source" four
  cd four
  git config user.name tester && git config user.email tester@example.org
  sed -i 's/\(PERCH_VERSION "\).*"/\19.8.7"/' engine/src/version.h
  git commit --quiet --all --message "A version"
  run_expecting 2 setup/release
  assert_output "release: galaxy.yml lacks the version 9.8.7 of engine/src/version.h; run make version"
  run_expecting 0 make version
  assert_equal "$(grep '^version:' galaxy.yml)" "version: 9.8.7"
}

@test "a version that is tagged is released from its tag alone" {
  git clone --quiet "$BATS_FILE_TMPDIR/one" five
  cd five
  git config user.name tester && git config user.email tester@example.org
  git tag "v$VERSION"
  echo later >>README.md
  git commit --quiet --all --message "Later"
  run_expecting 2 setup/release
  assert_output "release: tag v$VERSION is another commit; set a new version or check out the tag"
  git checkout --quiet "v$VERSION"
  run_expecting 0 make release
  diff -r "$DIST" dist
}

@test "outside of a clone a release is refused, in a folder of another one, too" {
  tar -xzf "$DIST/perch-$VERSION.tar.gz"
  run_expecting 2 "perch-$VERSION/setup/release"
  assert_output --partial "is not a git checkout; release from a clone"
  git init --quiet .
  run_expecting 2 "perch-$VERSION/setup/release"
  assert_output --partial "is not a git checkout; release from a clone"
}
