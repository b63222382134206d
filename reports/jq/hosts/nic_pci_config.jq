# PCI configuration space as od prints it -> the fields of PCI Express that matter here. The layout is the PCI Express
# Base Specification's, the names Linux' include/uapi/linux/pci_regs.h. lspci needs the same root and adds no more.
import "hosts/nic_read" as r;

# od -A x -t x1: "000040 10 80 ..." a line of 16 bytes; "*" for lines like the one before; the length ends it.
def parsed:
  reduce (split("\n")[] | select(. != "") | split(" ")) as $line
    ({lines: {}, repeats: [], before: null, size: 0};
     if $line[0] == "*" then .repeats += [.before]
     elif $line[0] | test("^[0-9a-f]{6,7}$") | not then .
     else ($line[0] | r::hex) as $at
       | .size = $at
       | if ($line | length) == 17 then .lines[$at | tostring] = $line[1:] | .before = {$at, bytes: $line[1:]} | .size = $at + 16 else . end end);

def byte($n):
  (.lines[$n - $n % 16 | tostring] // (last(.repeats[] | select(. != null and .at <= $n).bytes) // null)) as $bytes
  | if $bytes == null or $n >= .size then null else $bytes[$n % 16] | r::hex end;
def word($n): byte($n) as $low | byte($n + 1) as $high | if $low == null or $high == null then null else $low + 256 * $high end;
def bit($n): . / pow(2; $n) | floor % 2 == 1;
def bits($from; $count): . / pow(2; $from) | floor % pow(2; $count);

# Where a capability lies, or null. No list is longer than its space: a damaged one may be a circle.
def capability($id):
  . as $config
  | {at: (byte(52) // 0), left: 48}
  | until(.at < 64 or .left == 0 or ([.at as $at | $config | byte($at) == $id] | .[0]);
          .at as $at | {at: (($config | byte($at + 1) // 0) | . - . % 4), left: (.left - 1)})
  | if .at < 64 or .left == 0 then null else .at end;
def extended($id):
  . as $config
  | {at: 256, left: 256}
  | until(.at < 256 or .left == 0 or ([.at as $at | $config | word($at) == $id] | .[0]);
          .at as $at | {at: (($config | word($at + 2) // 0) / 16 | floor), left: (.left - 1)})
  | if .at < 256 or .left == 0 then null else .at end;

# Of Device Control 2, 7.5.3.16: the time that a card waits for an answer of memory; null: reserved
def timeouts: {"0": "50 us to 50 ms", "1": "50 to 100 us", "2": "1 to 10 ms", "5": "16 to 55 ms", "6": "65 to 210 ms", "9": "260 to 900 ms", "10": "1 to 3.5 s", "13": "4 to 13 s", "14": "17 to 64 s"};

# {readable, express, payload, payload_most, read_request, relaxed_ordering, redirect, ats, extended_tags, aspm, atomics, timeout}; what is
# not there is null.
def fields:
  parsed as $config
  | $config
  | if .size < 64 or word(0) == 65535 then {readable: false}
    else
      capability(16) as $express
      | if $express == null then (if .size > 64 then {readable: true, express: false} else {readable: false} end)
        else
          word($express + 8) as $control | word($express + 16) as $link | word($express + 40) as $second | extended(13) as $acs | extended(15) as $ats
          | (if $acs == null then null else word($acs + 6) end) as $acs_control
          | (if $ats == null then null else word($ats + 6) end) as $ats_control
          | if $control == null then {readable: false}
            else
              { readable: true, express: true,
                payload: (128 * pow(2; $control | bits(5; 3))), payload_most: (128 * pow(2; $config | byte($express + 4) % 8)),
                read_request: (128 * pow(2; $control | bits(12; 3))), relaxed_ordering: ($control | bit(4)),
                extended_tags: (if $config | byte($express + 4) | bit(5) then $control | bit(8) else null end),
                aspm: (if $link == null then null else ["off", "L0s", "L1", "L0s and L1"][$link | bits(0; 2)] end),
                atomics: (if $second == null then null else $second | bit(6) end),
                timeout: (if $second == null then null elif $second | bit(4) then "none" else timeouts[$second | bits(0; 4) | tostring] end),
                # requests or completions between two devices go up to the root, and not straight across the switch
                redirect: (if $acs_control == null then null else ($acs_control | bit(2) or bit(3)) end),
                ats: (if $ats_control == null then null else $ats_control | bit(15) end) } end end end;
