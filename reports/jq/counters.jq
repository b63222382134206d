# What the agents counted around a flow: raw text before and after -> differences as numbers.

# Exact although both counters may lie above 2^53, where jq's numbers have gaps: groups of nine digits are subtracted
# apart. Null where the counter went backwards (reset, or 32 bits that wrapped, nobody knows how often) or stands at the
# end of its width, where InfiniBand's own counters stop (Architecture Specification 1.7, section 16.1.3.5).
def difference($before; $after):
  def low: if length > 9 then ("1" + .[-9:] | tonumber) - 1e9 else tonumber end;
  def high: if length > 9 then .[:-9] | tonumber else 0 end;
  def count: type == "string" and test("^[0-9]{1,20}$");
  def full: . == "4294967295" or . == "18446744073709551615";
  if ($before | count | not) or ($after | count | not) or ($after | full) then null
  else (($after | high) - ($before | high)) * 1e9 + ($after | low) - ($before | low) | if . < 0 then null else . end
  end;

# A counter that only one of the two readings has (a device that came or went) is no counter.
def differences($before; $after):
  if ($before | type) != "object" or ($after | type) != "object" then {}
  else $before | with_entries(.key as $k | select($after | has($k)) | .value = difference(.value; $after[$k])) end;

def seconds($a; $b):
  [try (($b | tonumber) - ($a | tonumber)) catch null] | .[0] | if . != null and . > 0 then . else null end;

# One end of a flow, or a host's idle baseline:
# {seconds, address, route, host{}, netdev{NAME{}}, rdma{NAME/PORT{netdev, counters{}}}, cxi{NAME{netdev, counters{}}}}.
def counted:
  if type != "object" or (.before | type) != "object" or (.after | type) != "object" then null
  else .before as $b | .after as $a
    | { seconds: seconds($b.time_s; $a.time_s), address: .address_interface, route: .route_interface,
        host: differences($b.host; $a.host),
        netdev: ($b.netdev // {} | with_entries(.key as $k | .value = differences(.value; $a.netdev[$k]))),
        cxi: ($b.cxi // {} | with_entries(.key as $k | .value = { netdev: .value.netdev,
                                            counters: differences(.value.counters; $a.cxi[$k].counters) })),
        rdma: ($b.rdma // {} | with_entries(.key as $k | .value = { netdev: .value.netdev,
                                            counters: differences(.value.counters; $a.rdma[$k].counters) })) }
  end;

# As a record carries it: the host's counters by name, then each device's that moved. One that stood still is left out.
def as_recorded:
  def moved: with_entries(select(.value != 0));
  def named: with_entries(.key |= gsub("[. ]"; "_"));
  if . == null then {}
  else .host + (.netdev | map_values(moved) | named) + (.rdma + .cxi | map_values(.counters | moved) | named) end;

# Counters that stand still on a healthy path: drops, errors and what was sent again.
def is_trouble:
  test("(^|_)err|drop|retry|retrans|discard|duplicate|out_of_|nak|timeout|missed|overrun|fifo|collision"; "i")
  or test("downed|rnr|symbol|constraint|xmit_wait|ecn|cnp"; "i")
  # of a Cassini NIC and its retry handler
  or test("uncorrected_cw|_paused_[0-9]|_replay_event|nacks$|pkts_cancelled"; "i");
