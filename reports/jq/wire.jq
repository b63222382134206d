# What a flow says that it moved, and in how many packets: payload from the client (sent) and to it (received), warm-up and
# all sizes included.
import "common" as c;
import "claims" as claims;

# {sent, received, most_sent, most_received}: at least and at most; null where the tool does not tell.
def of_part:
  .claims
  | if . == null or (.sent | c::is_finite | not) or (.received | c::is_finite | not) then null
    else {sent, received, most_sent: (.most_sent // .sent), most_received: (.most_received // .received)} end;

# Whether nobody saw them arrive: the engine says so by null, perftest says nothing at all.
def loss_is_unknown:
  if .loss != null then .loss.lost_messages == null
  else .kind == "bandwidth" and (.connection // "" | IN("UC", "UD")) end;

# What of the claim was lost on the way, warm-up included where the tool tells.
def lost_bytes($size): .claims.lost // (claims::lost * $size);

# Payload that fits one packet. Without a word of the MTU: the smallest of InfiniBand, and Ethernet's. IPv6 and TCP have
# headers of 72 bytes at most in front of a segment (RFC 8200, 9293 and 7323).
def room($rdma):
  if $rdma and .link.layer == "slingshot" then 2048 # PORTALS_MTU (HewlettPackard/shs-libcxi, utils/utils_common.h)
  elif $rdma then .link.mtu_bytes // 256 else [(.link.mtu_bytes // 1500) - 72, 1] | max end;

# A transfer goes in one message or several, each with packets of its own.
def pieces: [.params.chunks // 1, 1] | max;

# An RDMA message has packets of its own. A stream's has one at least where it waits for its answer: what it fills beyond
# that, a card or veth may carry as one large segment (TSO). Others may share segments, or lie in one more than they fill.
def with_packets($rdma):
  room($rdma) as $room
  | (.params.size_bytes | if . == null or . < 1 then $room else . end) as $size
  | ($size / $room | ceil) as $each
  | (if $rdma then $each elif .kind == "latency" then 1 else 0 end) as $least
  | pieces as $pieces
  | ((if $rdma then $each else $each + 1 end) + $pieces - 1) as $most
  # 128: perftest's depth, where nothing is said
  | ([.params.outstanding // 128, 1] | max) as $depth
  | ([.params.queue_pairs // 1, 1] | max) as $pairs
  | (.elapsed_s // 0) as $elapsed
  | (lost_bytes($size) / $size) as $lost
  | loss_is_unknown as $unseen
  | of_part
  | if . == null then null
    else
      { sent, received, most_sent, most_received,
        least_packets_sent: (.sent / $size * $least), least_packets_received: (.received / $size * $least),
        packets_sent: (.most_sent / $size * $most), packets_received: (.most_received / $size * $most),
        messages: ([.most_sent, .most_received] | max / $size * $pieces), elapsed: $elapsed,
        lost: ($lost * $size), lost_packets: ($lost * $least),
        # sent, and not seen to arrive
        unseen_sent: (if $unseen then .sent else 0 end), unseen_received: (if $unseen then .received else 0 end),
        unseen_packets_sent: (if $unseen then .sent / $size * $least else 0 end),
        unseen_packets_received: (if $unseen then .received / $size * $least else 0 end),
        window: ($depth * $pairs * $each), room: $room }
    end;

# All sizes of a flow together; null unless every one tells.
def of_flow($rdma):
  map(with_packets($rdma))
  | if length == 0 or any(.[]; . == null) then null
    elif length == 1 then .[0] + {sizes: 1}
    else
      . as $all
      | ($all[0] | keys_unsorted - ["window", "room"]) as $summed
      | { sizes: length, window: (map(.window) | max), room: (map(.room) | max) }
        + (reduce $summed[] as $k ({}; setpath([$k]; reduce $all[] as $one (null; . + $one[$k]))))
    end;
