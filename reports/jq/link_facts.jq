# What the hosts say of the links that flows used, where the tool does not: rate, MTU, and what PCIe lets through.
import "common" as c;

# What one host's checks and environment.json say, by the name of a device or an interface: {rate_gbit_s, mtu_bytes, pcie_gbit_s}.
# Input: the host as hosts.jq read it, with its checks. A device has the rate of its interface, and no MTU: that is the path's.
def of_host:
  . as $host
  | def value($id): [$host.checks // [] | .[] | select(.id == $id and (.value | c::is_finite) and .device != null)];
    (.interfaces // {}) as $interfaces
  | (reduce ($host.idle.rdma // {}, $host.idle.cxi // {} | to_entries[]) as $d ({};
       ($d.key | sub("/[0-9]+$"; "")) as $name | ($interfaces[$d.value.netdev // ""] // {}) as $under
       # of several ports nobody knows which is meant
       | .[$name] = (if has($name) then {} else $under | {rate_gbit_s} end))) as $by_interface
  | reduce value("nic-link-speed")[] as $f ($interfaces + $by_interface; .[$f.device].rate_gbit_s = $f.value)
  # a Cassini NIC says its speed as BS_200G
  | reduce ($host.checks // [] | .[] | select(.id == "slingshot-link-speed" and .device != null)) as $f (.;
      ([$f.found // "" | capture("(?<n>[0-9]+)G").n | tonumber] | .[0]) as $rate
      | if $rate == null then . else .[$f.device].rate_gbit_s = $rate end)
  # Gb/s of the narrowest link to memory, rounded down. A packet there has at least 20 bytes beside its payload (PCI Express
  # Base Specification 5.0: framing and sequence 4, header 12, LCRC 4), and no more payload than is set.
  | ([value("nic-pcie-max-payload")[] | {key: .device, value: .value}] | from_entries) as $payload
  | reduce value("nic-pcie-bandwidth")[] as $f (.;
      ($payload[$f.device] // null) as $most
      | .[$f.device].pcie_gbit_s = (($f.value + 1) * (if $most == null then 1 else $most / ($most + 20) end) | c::rounded));

# The least that is said by all of them; null where one is silent.
def least: if any(.[]; . == null) then null else min end;

# $hosts: with `links`, as of_host made them; $client and $server: the names of the devices or interfaces in use.
def between($hosts; $flow; $client; $server):
  def said($host; $names): if ($names // "") == "" then [null] else $names | split(",") | map($hosts[$host].links[.]) end;
  (said($flow.client; $client) + said($flow.server; $server)) as $ends
  | { rate_gbit_s: ([$ends[].rate_gbit_s] | least), mtu_bytes: ([$ends[].mtu_bytes] | least),
      pcie_gbit_s: ([$ends[].pcie_gbit_s | values] | min) };

def is_stream: .connection == "stream" or .backend == "tcp" or (.tool | IN("iperf", "iperf3"));

# A part's link with what the hosts know of it beside what the tool said. $routes: {client, server}, the interfaces to each other.
def known($hosts; $flow; $routes):
  .link as $link
  | (({connection, backend: (.backend // $flow.backend), tool: $flow.tool}) | is_stream) as $stream
  | (if $stream then between($hosts; $flow; $routes.client; $routes.server) else between($hosts; $flow; .client.device; .server.device) end) as $facts
  | ($link // {})
  # the rate of a transfer's sum is that of all its pairs, which only the tool adds up
  + { rate_gbit_s: ($link.rate_gbit_s // if .kind == "sum" then null else $facts.rate_gbit_s end), mtu_bytes: ($link.mtu_bytes // if $stream then $facts.mtu_bytes else null end) }
  + if $facts.pcie_gbit_s == null or $stream then {} else {pcie_gbit_s: $facts.pcie_gbit_s} end
  # Linux names an interface with a tag after its number (eth1.100); a wrong guess moves a ceiling by less than its tolerance
  + if $stream and all($routes.client, $routes.server; . // "" | test("\\.[0-9]{1,4}$")) then {vlan: true} else {} end
  + if $stream and (.client.address // "" | test(":") and (startswith("::ffff:") | not)) then {ipv6: true} else {} end;
