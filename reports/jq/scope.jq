# What an output shows of its own worth: hardware, software or simulated.
import "path" as path;

# The sum of a transfer names all of its devices.
def names: strings | split(",")[];

# An RDMA device without hardware, by its name or by the driver that its host reports; rdma_rxe and siw are the kernel's two.
def soft_device($host):
  any(names; test("^(rxe|siw)") or ($host.rdma_drivers[.] // "" | test("^(rdma_rxe|siw|software)$")));

# Another witness, whatever a device is called: no card counts under the names of rxe's own counters. $counted: one side's of a record.
def soft_counters($counted; $device):
  ($device // "" | gsub("[. ]"; "_") | split(",")) as $names
  | any($counted // {} | to_entries[]; (.value | type) == "object"
        and ($names == [] or (.key as $k | any($names[]; . as $name | $k | startswith($name + "/"))))
        and (.value | has("sent_pkts") or has("rcvd_pkts")));

def is_cxi($flow):
  $flow.tool == "cxi" or (.backend // $flow.backend) == "cxi"
  or (.provider // $flow.provider // "" | test("(^|;)cxi(;|$)"));

# The provider cxi drives a Cassini device; what runs on a host that lists none, or not the one it names, is a simulation.
def cassini_missing($flow; $hosts):
  . as $p
  | any(("client", "server") as $role
        | ($hosts[$flow[$role]].cxi_drivers // {}) as $drivers
        | ($p[$role].device // path::planned($flow; $role; "device")) as $device
        | if $device == null then ($drivers | length) == 0 else ($drivers[$device] // "") == "" end; .);

# What the output itself shows of its worth: sockets, memory of one host and soft devices are software, whoever plans them.
def shown_scope($flow; $fabric; $hosts):
  if .simulated == true or any(.client.device, .server.device; type == "string" and startswith("sim_"))
     or (is_cxi($flow) and cassini_missing($flow; $hosts)) then "simulated"
  elif (.client.device | soft_device($hosts[$flow.client])) or (.server.device | soft_device($hosts[$flow.server]))
     or soft_counters(.counters.client; .client.device) or soft_counters(.counters.server; .server.device)
     or ((.link.layer // $fabric) | . == "loopback" or . == "shm") then "software"
  elif $flow.tool == "perftest" or $flow.tool == "cxi" then "hardware"
  elif $flow.tool != "perch" or ((.backend // $flow.backend) | . == null or . == "tcp" or . == "null")
     or ((.provider // $flow.provider // "") | test("^(tcp|udp|shm|sm2|net|sockets)")) then "software"
  else "hardware" end;

# Hardware is what both hosts name a driver for that is not a soft device's: without it no counter makes it hardware.
def proven_hardware($p; $scope; $hosts; $flow):
  def without_driver:
    ("client", "server") as $role
    | ($p[$role].device // path::planned($flow; $role; "device"))
    | ([names] | if . == [] then [null] else . end)[] as $device
    | select(($hosts[$flow[$role]] | (.rdma_drivers[$device // ""] // .cxi_drivers[$device // ""] // "")) == "")
    | "nothing shows that \($device // "the device") of \($flow[$role]) (\($role)) is hardware: its driver is not in environment.json";
  if $scope != "hardware" or .state != "proven" then .
  else (first(without_driver) // null) as $why
    | if $why == null then . else .state = "unknown" | .reason = $why end
  end;
