# Holds what the checks of NICs find on changed fixtures against what each case expects (tests/fixtures/hosts/nic-cases.json).
import "hosts/nic" as nic;
import "hosts/nic_cabling" as cabling;

def hosts:
  { "nic-mlx5": {name: "alpha", fabric: "roce", scope: "hardware", devices: [{name: "mlx5_0", gid_index: 3}]},
    "nic-mlx5-infiniband": {name: "alpha", fabric: "infiniband", scope: "hardware", devices: [{name: "mlx5_0", gid_index: 0}]},
    "nic-bnxt": {name: "alpha", fabric: "roce", scope: "hardware", devices: [{name: "bnxt_re0", gid_index: 3}]},
    "nic-irdma": {name: "alpha", fabric: "roce", scope: "hardware", devices: [{name: "rocep3s0", gid_index: 1}]},
    "nic-rxe": {name: "alpha", fabric: "roce", scope: "software", devices: [{name: "rxe0", gid_index: 1}]} };
def subject($of): hosts[$of] + {wanted: {relaxed_ordering: true, irq_local: true}};

# What a change says to be null is not there at all.
def changed($change):
  reduce ($change | to_entries[]) as $part
    (.; reduce ($part.value | to_entries[]) as $entry
      (.; if $entry.value == null then del(.[$part.key][$entry.key]) else .[$part.key][$entry.key] = $entry.value end));

def judged($raw; $host): $raw | [nic::findings($host)];

# A line for each finding that is not as the case expects it.
def misses($fixtures):
  .case as $name | .expect as $expect
  | .change as $change | judged($fixtures[.of] | changed($change); subject(.of) * .host) as $found
  | $expect[] as $want
  | [$found[] | select(.id == $want.id and .device == $want.device)] as $these
  | if ($these | length) != 1 then "\($name): \($these | length) findings \($want.id) of \($want.device)"
    else
      $these[0]
      | select((.status == $want.status and (.found | test($want.found)) and ($want.severity == null or .severity == $want.severity)
                and ($want.remedy == null or (.remedy | test($want.remedy)))) | not)
      | "\($name): \(.id) is \(.status), \(.severity): \(.found); remedy: \(.remedy)"
    end;

# ---- nonsense ---------------------------------------------------------------------------------------------------

# Every text of a host replaced by the same nonsense.
def nonsense: ["", "?\u0001?", "999999999999999999999999", "-", "nan", ("x" * 70000), 7, null, {}, []];
# What may be well all the same: what the names of links alone tell.
def told_by_links: ["nic-device", "nic-driver", "nic-board"];
def believed($fixtures):
  hosts | keys_unsorted[] as $of | nonsense[] as $text
  | $fixtures[$of]
  | .files |= map_values($text) | .later |= map_values($text) | .commands |= map_values(.stdout = $text)
  | judged(.; subject($of) * {wanted: {mtu: 1500, link_gbit_s: 1, ring_rx: 1, coalescing: {"rx-usecs": 0}, firmware: "1", max_read_request: 512}})[]
  | select((.status == "ok" or .status == "info") and (.id as $id | told_by_links | index([$id]) == null))
  | "\($of), \($text | tojson | .[0:20]): \(.id) is \(.status): \(.found)";

# ---- several hosts ----------------------------------------------------------------------------------------------

# A second host like the fixture's, with addresses of its own; $change as above, after that.
def second($raw; $change):
  $raw | tojson | gsub("c000:0201"; "c000:0202") | gsub("192\\.0\\.2\\.1\\b"; "192.0.2.2") | gsub("28:b2"; "28:b3") | gsub("28b2"; "28b3") | fromjson
  | changed($change);

def group($raws):
  [range($raws | length) as $n | {host: (subject("nic-mlx5") + {name: "host\($n)"}), raw: $raws[$n]}];
def between($raws): [nic::between(group($raws))];
def nothing($group): [nic::between($group)];

# ---- cables -----------------------------------------------------------------------------------------------------

# {HOST: [LEAF of rail 0, ...]} -> what is found between these hosts, a line each but for those that are well. $other: their number.
def cables($leaves):
  [ $leaves | to_entries[] | .value as $of
    | { host: { name: .key, fabric: "roce", scope: "hardware", devices: [$of | keys[] | {name: "mlx5_\(.)", netdev: "eth\(.)"}] },
        raw: { files: {}, later: {}, links: ([$of | keys[] | {key: "/sys/class/infiniband/mlx5_\(.)", value: "../x"}] | from_entries),
               commands: {lldp: {argv: ["lldpctl"], exit: 0, stderr: "", stdout: ({lldp: {interface:
                 [$of | to_entries[] | select(.value != null) | {"eth\(.key)": {chassis: {(.value): {id: {type: "mac", value: "mac of \(.value)"}}}, port: {id: {type: "ifname", value: "1"}}}}]}} | tojson)}} } } ]
  | [cabling::between(.)]
  | (map(select(.status != "ok")) | .[] | "\(.host) \(.device) \(.severity): \(.found)"), "\(map(select(.status == "ok")) | length) well";
