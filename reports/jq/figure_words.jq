# Words and units that several tables share.
import "format" as f;

def definition_words:
  { half_round_trip: "half of a round trip", completion: "from posting to local completion",
    batch_completion: "from posting the first transfer of a batch to the completion of its last",
    receiver_acknowledged: "payload until the receiver's final acknowledgement",
    initiator_completion: "payload until the initiator's last completion",
    receiver_payload: "payload that the receiver counted", sender_payload: "payload that the sender wrote",
    frame_completion: "whole Ethernet frames until the sender's last completion" }[. // ""]
  // (. // "not stated");

def waiting_words: if . == "event" then "waiting by events" elif . == "busy" then "busy polling" else "waiting mode not stated" end;

# The smallest size, 4 KiB (a page) and the largest show where the curves start, bend and end; charts show the rest.
def picked_sizes: (unique | sort) as $s | [$s[0], 4096, $s[-1]] | map(select(. as $x | $s | index([$x]) != null)) | unique;

def quantity($unit):
  if . == null then "-" elif $unit == "segments" then f::whole else "\(f::figure) \($unit | f::unit_sign)" end;
