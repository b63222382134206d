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

# InfiniBand's narrow counters stop at their width, too, and cards keep them for RoCE (section 16.1.3.5).
def stops_at:
  { symbol_error: "65535", link_error_recovery: "255", link_downed: "255", port_rcv_errors: "65535",
    port_rcv_remote_physical_errors: "65535", port_rcv_switch_relay_errors: "65535", port_xmit_discards: "65535",
    port_xmit_constraint_errors: "255", port_rcv_constraint_errors: "255", local_link_integrity_errors: "15",
    excessive_buffer_overrun_errors: "15", VL15_dropped: "65535" };

# All of them are short counts, of which none is full or may be: then their differences are plain, and need no look at each.
# The text of all is looked at once, as a match costs more than the rest of a counter, and a large run has some ten million.
def plain:
  tojson
  | test("^\\[(?:\"[0-9]{1,15}\",?)*\\]$")
    and (contains("\"4294967295\"") or contains("\"65535\"") or contains("\"255\"") or contains("\"15\"") | not);

# A counter that only one of the two readings has (a device that came or went) is no counter.
def differences($before; $after):
  if ($before | type) != "object" or ($after | type) != "object" then {}
  elif [$before[], $after[]] | plain then
    reduce ($before | keys_unsorted[]) as $k ({};
      $after[$k] as $late
      | if $late == null then .
        elif $late == $before[$k] then setpath([$k]; 0)
        else setpath([$k]; ($late | tonumber) - ($before[$k] | tonumber) | if . < 0 then null else . end) end)
  else
    reduce ($before | keys_unsorted[]) as $k ({};
      if $after | has($k) | not then .
      elif $after[$k] != null and stops_at[$k] == $after[$k] then .[$k] = null
      else .[$k] = difference($before[$k]; $after[$k]) end)
  end;

def seconds($a; $b):
  [try (($b | tonumber) - ($a | tonumber)) catch null] | .[0] | if . != null and . > 0 then . else null end;

# One end of a flow, or a host's idle baseline:
# {seconds, address, route, host{}, netdev{NAME{}}, rdma{NAME/PORT{netdev, counters{}}}, cxi{NAME{netdev, counters{}}}}.
def counted:
  if type != "object" or (.before | type) != "object" or (.after | type) != "object" then null
  else .before as $b | .after as $a
    | def ports($b; $a):
        reduce ($b // {} | keys_unsorted[]) as $k ({};
          .[$k] = {netdev: $b[$k].netdev, counters: differences($b[$k].counters; $a[$k].counters)});
      { seconds: seconds($b.time_s; $a.time_s), address: .address_interface, route: .route_interface,
        host: differences($b.host; $a.host),
        netdev: (reduce ($b.netdev // {} | keys_unsorted[]) as $k ({}; .[$k] = differences($b.netdev[$k]; $a.netdev[$k]))),
        cxi: ports($b.cxi; $a.cxi), rdma: ports($b.rdma; $a.rdma) }
  end;

# ---- readings like the last one ------------------------------------------------------------------------------------------
# Flows of one test read the same counters, of which few move. What one reading teaches spares a look at each of the next.

# The places of a reading's tables, which are those of what was counted, too.
def table_places:
  ["host"], (.netdev // {} | keys_unsorted[] | ["netdev", .]), (("rdma", "cxi") as $kind | .[$kind] // {} | keys_unsorted[] | [$kind, ., "counters"]);

# How a reading is built: its tables and their counters, in order. null where one of them is none.
def built($places):
  [[.address_interface, .route_interface, (.before | (.netdev, (.rdma, .cxi | . // {}), getpath($places[]) | keys_unsorted), (.rdma, .cxi | .[]?.netdev))]?] | .[0];

# Reading -> {built, places, tables: what of each may move, as paths, and what the rest of it was, moving: the places of all of
# those, still: what is counted where nothing moves, with `names`, by table, of what may}; null where it teaches nothing. $counted:
# of it, or null; $before: the lesson before.
def lesson($counted; $before):
  if $counted == null then null
  else
    [[.before | table_places]?] as [$places]
    | built($places // []) as $built
    | if $places == null or $built == null or any((.before | getpath($places[])); type != "object") then null
      else
        (if $before.built == $built then $before.still.names else null end) as $known
        | .before as $b
        | [ $places[] as $at
            | ($counted | getpath($at)) as $n
            | (($known | getpath($at)) // []) as $old
            | [$n | keys_unsorted[] | select($n[.] != 0 or (. as $k | $old | index([$k]) != null))] as $names
            | ($names | map([.])) as $paths
            | {$at, $names, $paths, rest: ($b | getpath($at) | delpaths($paths))} ] as $tables
        | { $built, $places, $tables, moving: [$tables[] | .at + .paths[]],
            still: (reduce $tables[] as $t ($counted; setpath($t.at; getpath($t.at) | map_values(0)) | setpath(["names"] + $t.at; $t.names))) }
      end
  end;

# As counted(), spared by a lesson where the reading is built alike. Only then it has `names`.
def counted_like($lesson):
  if $lesson == null or (.before | type) != "object" or (.after | type) != "object" or built($lesson.places) != $lesson.built then counted
  else
    .before as $b | .after as $a
    # the texts of what stood still and was otherwise before; null where it did not stand still
    | [ $lesson.tables[] as $t
        | ($b | getpath($t.at) | delpaths($t.paths)) as $rest
        | if [$a | getpath($t.at) | delpaths($t.paths)]? != [$rest] then null elif $rest == $t.rest then empty else $rest[] end ] as $odd
    | if $odd + [$b, $a | getpath($lesson.moving[])] | plain | not then counted
      else
        reduce $lesson.moving[] as $at ($lesson.still | setpath(["seconds"]; seconds($b.time_s; $a.time_s));
          setpath($at; ($a | getpath($at) | tonumber) - ($b | getpath($at) | tonumber) | if . < 0 then null else . end))
      end
  end;

# As a record carries it: the host's counters by name, then each device's that moved. One that stood still is left out.
def as_recorded:
  def moved($names): . as $all | reduce ($names // keys_unsorted)[] as $k ({}; if $all[$k] == 0 then . else setpath([$k]; $all[$k]) end);
  def name: if contains(".") or contains(" ") then gsub("[. ]"; "_") else . end;
  def named(f): . as $all | reduce keys_unsorted[] as $k ({}; setpath([$k | name]; $all[$k] | f));
  if . == null then {}
  elif .names == null then .host + (.netdev | named(moved(null))) + (.rdma + .cxi | named(.counters | moved(null)))
  else
    .names as $names
    | def of_kind($kind): .[$kind] as $all | reduce ($all | keys_unsorted[]) as $k ({}; setpath([$k | name];
        if $kind == "netdev" then $all[$k] | moved($names.netdev[$k]) else $all[$k].counters | moved($names[$kind][$k].counters) end));
      .host + of_kind("netdev") + of_kind("rdma") + of_kind("cxi")
  end;

# Counters that stand still on a healthy path: drops, errors and what was sent again.
# Those that move in nearly every flow are looked up: jq compiles a pattern anew each time that it is asked.
def known_trouble:
  { rx_bytes: false, tx_bytes: false, rx_packets: false, tx_packets: false, rcvd_pkts: false, sent_pkts: false, rdma_sends: false,
    rdma_recvs: false, ack_deferred: false, port_rcv_data: false, port_xmit_data: false, port_rcv_packets: false, port_xmit_packets: false,
    unicast_rcv_packets: false, unicast_xmit_packets: false, rx_write_requests: false, rx_read_requests: false, TcpRetransSegs: true };
def names_trouble:
  test("(^|_)err|drop|retry|retrans|discard|duplicate|out_of_|nak|timeout|missed|overrun|fifo|collision"; "i")
  or test("downed|rnr|symbol|constraint|xmit_wait|ecn|cnp"; "i")
  # of a Cassini NIC and its retry handler
  or test("uncorrected_cw|_paused_[0-9]|_replay_event|nacks$|pkts_cancelled"; "i");
def is_trouble: known_trouble[.] as $known | if $known == null then names_trouble else $known end;
