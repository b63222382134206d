# The switches of an inventory (its group of switches) -> what the plan says of each: how it is read, which ports lead to
# which hosts where the inventory names them, which priorities must be lossless.

# A port, several, or none named of a host; what the inventory names for hosts that do not take part is left out.
def plan_switch($hosts):
  { provider: .switch_check_provider, scope: (.perch_scope // (if .perch_fabric == "loopback" then "software" else "hardware" end)),
    priorities: (.switch_check_priorities // .host_check_pfc_priorities // []),
    ports: ((.switch_check_ports // {}) | with_entries(select(.key as $host | $hosts | has($host)))
            | map_values(if type == "array" then map(tostring) else [tostring] end)) };

def faults:
  .value as $s
  | ( $s.switch_check_provider | select(IN("nxos", "eos", "sonic", "cumulus", "infiniband") | not)
      | "switch_check_provider is \(tojson), not nxos, eos, sonic, cumulus or infiniband" ),
    ( $s.switch_check_ports // {} | select(type != "object" or any(.[]; type | IN("string", "number", "array") | not))
      | "switch_check_ports is \(tojson), not a port, or a list of ports, for each host" ),
    ( $s.switch_check_priorities // $s.host_check_pfc_priorities // []
      | select(type != "array" or any(.[]; IN(0, 1, 2, 3, 4, 5, 6, 7) | not))
      | "switch_check_priorities is \(tojson), not a list of priorities from 0 to 7" );

def planned($hosts):
  (.switches // {}) | to_entries | map((first(faults) as $fault | error("switch \(.key): \($fault)")), {key, value: (.value | plan_switch($hosts))})
  | from_entries;
