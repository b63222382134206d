# shellcheck shell=bash disable=SC2034  # bundle and verify, which source this, use what is not used here
# For bundle and verify: what a bundle is made like. Both must do this alike, for verify packs again what it unpacked.

# Names that may stand in a bundle: those of plans, hosts and flows, and nothing that climbs, hides or surprises.
readonly PATH_PATTERN='^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$'

# Of a host's files what is configuration: without what another moment would read otherwise.
readonly CONFIGURATION='del(.idle, .collected, .later, .commands)'

# list_files ROOT: what the manifest names, in its order
list_files() {
  (cd -- "$1" && find . -type f ! -path ./manifest.sha256 ! -path ./manifest.sha256.sig -printf '%P\n' | LC_ALL=C sort)
}

# pack ROOT: a tar whose bytes depend on names and contents alone
pack() {
  LC_ALL=C tar --create --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --directory="$(dirname "$1")" "$(basename "$1")"
}
