# What the hosts' checks found of devices and their settings, for whoever describes what was measured. A check that passes
# says in the verdict what was wanted; here stands what is there, each thing once, with the hosts that have it.

# Ids that describe a device under test or how it is configured. The rest of the findings stands in the checks.
def described:
  ["nic-board", "nic-firmware", "nic-driver", "nic-pcie-speed", "nic-pcie-width", "nic-numa-node", "nic-port-state", "nic-link-layer",
   "nic-link-speed", "nic-mtu", "nic-path-mtu", "slingshot-link-state", "slingshot-link-speed", "slingshot-libfabric",
   "qos-pfc", "qos-pause", "qos-ets", "qos-dcbx", "qos-dscp-trust", "qos-dscp-priority", "qos-roce-tos", "qos-path", "qos-ecn",
   "qos-ecn-parameters", "qos-cnp", "qos-buffers", "qos-pfc-watchdog"];

# -> {facts: [{id, device, status, found, hosts}]}, or {} where no host was checked. hosts: null where all of them have it.
def section($plan; $hosts):
  ($plan.hosts | length) as $all
  | (described | map({key: ., value: true}) | from_entries) as $wanted
  | [ $plan.hosts | keys_unsorted[] as $host | ($hosts[$host].checks // [])[] | select($wanted[.id])
      | {id, device, status, found, $host} ]
  | if . == [] then {}
    else
      { facts: (group_by([.id, .device, .status, .found])
                | map((map(.host) | unique) as $names
                      | .[0] | del(.host) | . + {hosts: (if ($names | length) == $all then null else $names end)})) }
    end;
