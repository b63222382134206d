# Bit errors of each link of an NVIDIA card, before and after FEC, by MFT's mlxlink or by mstflint's mstlink -> findings. Ethernet's
# FEC is nic_fec.jq's, too; of InfiniBand nothing else tells it.
import "common" as c;
import "hosts/nic_read" as r;

# More corrected bits than this are too many: perch/checks/fec.py has the reason.
def limit: 1e-5;

# "5E-10" -> 5e-10; "15E-255" is a counter that counted nothing.
def rate: [strings | select(test("^[0-9]{1,15}(\\.[0-9]{1,6})?(E-[0-9]{1,3})?$")) | tonumber + 0] | .[0];

# After FEC as perch/checks/counters.py has it.
def left_limit: 1e-15;

# mlxlink or mstlink -c --json -> {raw, left, minutes}; null: no answer that can be read. A symbol's rate is after the link's own retries.
def counted:
  [strings | c::parsed | objects | select(.status | objects | .code == 0) | .result | objects | .output | objects
   | .["Physical Counters and BER Info"] | objects
   | { raw: (.["Raw Physical BER"] | rate), left: ((.["Symbol BER"] | rate) // (.["Effective Physical BER"] | rate)),
       minutes: (.["Time Since Last Clear [Min]"] | rate) }
   | select(.raw != null and .left != null)] | .[0];

def bits($raw; $d; $name):
  (r::said($raw; $name) | counted) as $said
  | if $said == null then r::unread($raw; $name)
    else
      r::either($said.raw <= limit and $said.left <= left_limit;
        "\($said.raw) before FEC, \($said.left) after it"
        + if $said.minutes == null then "" else ", in \($said.minutes | floor | c::whole) minutes" end; null) end
  | r::finding("bit-errors"; $d.name;
      { severity: "advisory", wanted: "at most 1e-5 before FEC, 1e-15 after it", source: "mlxlink or mstlink -c; IEEE Std 802.3, 2.4e-4 for PAM4 links",
        why: "a link with little margin loses packets when it gets warmer or older",
        remedy: "Clean or replace cable and transceiver on both ends; mlxlink -m shows the module, -e the eye" });

def findings($raw; $host; $devices):
  select($host.scope == "hardware")
  | $devices[] | . as $d | select(.rdma and (.cxi | not)) | .chain[0] | strings | . as $function
  | select($raw.links["/sys/bus/pci/devices/\($function)/driver"] | strings | endswith("/mlx5_core"))
  | bits($raw; $d; "link \($function)");
