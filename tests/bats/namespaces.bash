# Two network namespaces, alpha and beta, joined by two pairs of veth: p0 in 10.77.0.0/24, p1 in 10.78.0.0/24. Needs root, as
# only root makes namespaces.

two_namespaces() {
  [ "$(id -u)" -eq 0 ] || skip "network namespaces need root"
  NET=perch-$BASHPID
  ip netns add "$NET-alpha" 2>/dev/null || skip "this kernel or container makes no network namespaces"
  ip netns add "$NET-beta"
  wire p0 10.77.0
  wire p1 10.78.0
}

no_namespaces() {
  ip netns del "$NET-alpha" 2>/dev/null || true
  ip netns del "$NET-beta" 2>/dev/null || true
}

inside() { ip netns exec "$NET-$1" "${@:2}"; }

# wire NAME NETWORK: a cable between the two, with address 1 at alpha and 2 at beta
wire() {
  ip -n "$NET-alpha" link add "$1" type veth peer name "$1" netns "$NET-beta"
  ip -n "$NET-alpha" addr add "$2.1/24" dev "$1"
  ip -n "$NET-beta" addr add "$2.2/24" dev "$1"
  local host
  for host in alpha beta; do
    ip -n "$NET-$host" link set lo up
    ip -n "$NET-$host" link set "$1" up
    inside "$host" sysctl -qw "net.ipv4.conf.$1.rp_filter=0" net.ipv4.conf.all.rp_filter=0
  done
}

# walk_both: both agents walk the plan of the folder run.
walk_both() {
  local host
  echo "a-secret-of-this-test" >token && chmod 600 token
  for host in alpha beta; do
    inside "$host" "$(packed_agent)" start --plan "$(share "$host")" --host "$host" --out "run/raw/$host" --engine "$PERCH" --start-window 5 \
      --token-file "$PWD/token" 3>&-
  done
  for host in alpha beta; do WAIT=90 wait_until agent_ended "run/raw/$host"; done
}
