# A host of a Slingshot fabric: what host-check read of its Cassini NICs -> findings. HPE's own cxi_healthcheck wants
# the same (HewlettPackard/shs-docs, CXI_Healthcheck.md); what each file and command prints is by
# HewlettPackard/shs-libcxi, utils/cxi_stat.c and man/cxi_service.1.md.
import "common" as c;
import "hosts/link_flaps" as flaps;
import "hosts/unread" as unread;

def healthcheck: "HPE cxi_healthcheck (shs-docs, CXI_Healthcheck.md)";

# {id, device, status, found, wanted, why, remedy, source}; status: ok, bad, unknown, not_applicable.
def finding($id; $device; $status; $found; $wanted; $why; $remedy; $source):
  { id: ("slingshot-" + $id), device: $device, status: $status, found: $found, wanted: $wanted, why: $why,
    remedy: $remedy, source: $source };

def trimmed: if . == null then null else gsub("^\\s+|\\s+$"; "") | if . == "" then null else . end end;

# The tool of a command that the host lacks, else null
def missing($tool): if .exit == null then $tool else null end;

# A file of Cassini 1 or, under port/0, of Cassini 2.
def of_port($raw; $nic; $one; $two):
  ("/sys/class/cxi/\($nic)/device/port/") as $port
  | $raw.files[$port + $one] // $raw.files[$port + "0/" + $two] | trimmed;

def listed($raw):
  [ $raw.links | keys_unsorted[] | select(startswith("/sys/class/cxi/")) | capture("^/sys/class/cxi/(?<nic>[^/]+)/device/driver$").nic ] | unique;

# ---- one NIC ----------------------------------------------------------------------------------------------------

# A value that must be one of a few words.
def worded($id; $nic; $found; $good; $wanted; $why; $remedy):
  finding($id; $nic; (if $found == null then "unknown" elif $found | test($good; "i") then "ok" else "bad" end);
          ($found // "cannot be read"); $wanted; $why; $remedy; healthcheck);

# Cassini 1 has 200 Gb/s, Cassini 2, whose files lie under port/0, 400.
def speed($raw; $nic):
  of_port($raw; $nic; "speed"; "link/speed") as $found
  | (if $raw.files["/sys/class/cxi/\($nic)/device/port/0/link/speed"] != null then 400 else 200 end) as $wanted
  | ($found // "" | capture("(?<n>[0-9]+)G").n // null | if . == null then null else tonumber end) as $rate
  | finding("link-speed"; $nic; if $rate == null then "unknown" elif $rate >= $wanted then "ok" else "bad" end;
            $found // "cannot be read"; "\($wanted) Gb/s";
            "a slower link caps every bandwidth, and nothing else shows it";
            "Look at the switch port's configuration and at the cable; then slingshot's fabric manager"; healthcheck);

def link($raw; $nic):
  worded("link-state"; $nic; of_port($raw; $nic; "link"; "link/state"); "^up$"; "up";
         "nothing passes a link that is down";
         "Look at the cable and the switch port; dmesg -T | grep cxi says why it went down"),
  speed($raw; $nic),
  worded("link-retry"; $nic; of_port($raw; $nic; "link_layer_retry"; "llr/state"); "^(on|running)$"; "on";
         "without link-layer retry every damaged frame is lost, and has to be sent again end to end";
         "Look at the switch port's policy for llr, and restart the link"),
  worded("loopback"; $nic; of_port($raw; $nic; "loopback"; "config/loopback"); "^(off|none|disabled)$"; "off";
         "a port in loopback carries nothing to the fabric";
         "Take the port out of loopback (ethtool --set-priv-flags), and restart the link"),
  worded("pfc"; $nic; of_port($raw; $nic; "pause"; "link/config/pause_map"); "^pfc"; "pfc/802.1qbb";
         "without priority flow control a full buffer drops frames, and global pause stops every traffic class";
         "Set the switch port's QoS policy (fabric manager, template-policy), and restart the link");

# ---- services ---------------------------------------------------------------------------------------------------

# "1 10", "64-127" -> [[1, 1], [10, 10], [64, 127]]
def ranges: [splits("[ ,]+") | select(test("^[0-9]+(-[0-9]+)?$")) | split("-") | map(tonumber) | [.[0], .[-1]]];

# The text of `cxi_service list -v`, older and newer: [{id, enabled, system, vnis (null: any)}]
def services:
  def yes: . == "Yes";
  reduce split("\n")[] as $line ([];
    ($line | capture("^ *ID: (?<id>[0-9]+)( |$)").id // null) as $id
    | ($line | capture("^ *(---> )?(?<k>[A-Za-z][A-Za-z /]*[A-Za-z]) *: (?<v>.*)$") // {k: null}) as $pair
    | if $id != null then . + [{id: ($id | tonumber), enabled: null, system: false, vnis: null}]
      elif length == 0 or $pair.k == null then .
      elif $pair.k == "Enabled" then .[-1].enabled = ($pair.v | yes)
      elif $pair.k == "System Service" then .[-1].system = ($pair.v | yes)
      elif $pair.k == "VNIs" or $pair.k == "Valid VNIs" then .[-1].vnis = ($pair.v | ranges)
      else . end);

def allows($vni): .vnis == null or any(.vnis[]; .[0] <= $vni and $vni <= .[1]);

def vni_text: if . == null then "any" else map(unique | map(tostring) | join("-")) | join(" ") end;
def service_text: "\(.id)\(if .enabled then "" else " (disabled)" end), VNI \(.vnis | vni_text)";

def service($raw; $nic; $planned):
  ($raw.commands["services \($nic)"] // {}) as $said
  | (($said.stdout // "") | services) as $services
  | $planned.svc_id as $id | $planned.vni as $vni
  | [$services[] | select(.enabled and (.system | not)) | select($id == null or .id == $id)] as $fit
  | [$fit[] | select($vni == null or allows($vni))] as $good
  | (if $id == null then "a service that is enabled" else "service \($id), enabled" end
     + if $vni == null then "" else ", with VNI \($vni)" end) as $wanted
  | (if $services == [] then
       "cannot be read (" + (if $said.exit == null then "cxi_service is not installed"
                             else "exit \($said.exit): \($said.stderr | trimmed // "nothing said" | .[0:120])" end)
       + ")"
     else $services | map(service_text) | join("; ") end) as $found
  | finding("service"; $nic; if $services == [] then "unknown" elif $good == [] then "bad" else "ok" end;
            $found; $wanted;
            "without a service that allows this VNI the provider refuses to open the NIC";
            "cxi_service list -d \($nic); then cxi_service enable or create, or other svc_id and vni in perch_devices";
            "cxi_service(1), fi_cxi(7)")
  | .missing = ($said | missing("cxi_service"));

def retry_handler($raw; $nic):
  ($raw.commands["retry-handler \($nic)"] // {exit: null, stdout: ""}) as $said
  | ($said.stdout | trimmed) as $state
  | finding("retry-handler"; $nic;
            if $said.exit == null or $state == null then "unknown" elif $state == "active" then "ok" else "bad" end;
            if $said.exit == null then "cannot be asked: no systemctl" else $state // "nothing was said" end; "active";
            "packets that are lost or refused are repeated by it alone, and the provider offers no NIC without it";
            "systemctl status cxi_rh@\($nic); after a crash the node has to be rebooted (shs-docs, retry_handler.md)";
            healthcheck)
  | .missing = ($said | missing("systemctl"));

# ---- flaps and codewords ----------------------------------------------------------------------------------------

def uptime_h($raw):
  ($raw.files["/proc/uptime"] // "" | capture("^(?<s>[0-9.]+)").s // null)
  | if . == null then null else tonumber / 3600 end;

# Whether host-check could read the kernel's log: a running kernel has said something since it started.
def log_is_readable($raw):
  $raw.commands["kernel-log"] // {} | .exit == 0 and (.stdout // "" | trimmed) != null;

# Lines of the kernel's log, "1763740800.123456 host kernel: cxi_ss1 0000:21:00.0: cxi0[hsn0]: CXI_EVENT_LINK_DOWN".
# Null where the log cannot be read.
def downs($raw; $nic):
  ($raw.commands["link-events"] // {exit: null, stdout: ""}) as $said
  | if log_is_readable($raw) | not then null
    # journalctl --quiet --grep answers 1 and says nothing where nothing was found, and also without a log
    elif $said.exit != 0 and ($said.exit != 1 or $said.stdout != "" or ($said.stderr | trimmed) != null) then null
    else [$said.stdout | split("\n")[] | select(test("CXI_EVENT_LINK_DOWN"))
          | select(test("\\bcxi[0-9]+\\b") | not) // select(test("\\b" + $nic + "\\b"))
          | capture("^ *(?<t>[0-9]+(\\.[0-9]+)?) ").t | tonumber] end;

def counted_downs($raw; $nic):
  $raw.links["/sys/class/cxi/\($nic)/device/net"] as $net
  | $raw.files["/sys/class/net/\($net)/carrier_down_count"] // "" | trimmed
  | if . == null then null else c::attempt(tonumber; null) end;

def flaps($raw; $nic):
  flaps::judged(downs($raw; $nic); counted_downs($raw; $nic); uptime_h($raw); $raw.collected | c::attempt(fromdateiso8601; null))
  | finding("link-flaps"; $nic; .status; .found; flaps::wanted; flaps::why;
            "Reseat or replace the cable; compare the switch port's counters"; healthcheck);

def reading:
  capture("^(?<v>[0-9]+)@(?<t>[0-9]+\\.[0-9]+)") // null
  | if . == null then null else map_values(tonumber) end;

# Codewords a second, from the driver's counters a second apart, else as cxi_stat measured them.
def codewords($raw; $nic):
  def rate($which):
    "/sys/class/cxi/\($nic)/device/telemetry/hni_pcs_\($which)_cw" as $path
    | ($raw.files[$path] // "" | reading) as $a | ($raw.later[$path] // "" | reading) as $b
    | if $a == null or $b == null or $b.t <= $a.t or $b.v < $a.v then null
      else ($b.v - $a.v) / ($b.t - $a.t) end;
  def said($name):
    $raw.commands["status \($nic)"].stdout // "" | capture("\\n +" + $name + " CW: (?<v>[0-9.]+)/s").v // null
    | if . == null then null else tonumber end;
  { good: (rate("good") // said("Good")), corrected: (rate("corrected") // said("Corrected")),
    uncorrected: (rate("uncorrected") // said("Uncorrected")) };

def codeword_errors($raw; $nic):
  codewords($raw; $nic)
  | finding("codewords"; $nic;
            if .uncorrected == null then "unknown" elif .uncorrected > 0 then "bad"
            elif .good != null and .good == 0 then "bad" else "ok" end;
            if .uncorrected == null then "cannot be read"
            else "\(.uncorrected | c::rounded)/s uncorrected, \(.corrected | c::rounded // "?")/s corrected, "
                 + "\(.good | c::rounded // "?")/s good" end;
            "0/s uncorrected, above 0/s good"; "an uncorrected codeword is a frame that was lost on the link";
            "Reseat or replace the cable, then the card; look at the switch port's errors";
            "shs-docs, net_diags_cxiberstat.md: a rate of uncorrected errors that is not zero needs a repair")
  | .missing = ($raw.commands["status \($nic)"] // {exit: null} | missing("cxi_stat"));

def libfabric($raw; $nic):
  ($raw.commands.libfabric // {exit: null, stdout: ""}) as $said
  | ([$said.stdout | split("\n")[] | capture("^ *domain: (?<d>\\S+)$").d] | unique) as $domains
  | finding("libfabric"; $nic;
            if $said.exit == null then "unknown" elif any($domains[]; . == $nic) then "ok" else "bad" end;
            if $said.exit == null then "fi_info is not installed"
            elif $domains == [] then "no NIC: \($said.stderr | trimmed // "exit \($said.exit)" | .[0:120])"
            else $domains | join(", ") end;
            $nic; "the provider cxi offers a NIC only when its link, retry handler and address are in order";
            "fi_info -p cxi; put right what else is found here, and look at libfabric's version";
            "fi_cxi(7), fi_info(1)")
  | .missing = ($said | missing("fi_info"));

# ---- the host ---------------------------------------------------------------------------------------------------

def driver_of($raw; $nic): $raw.links["/sys/class/cxi/\($nic)/device/driver"] | sub(".*/"; "");

# $devices: those under test, [{name, svc_id, vni}] of the plan; none named: every one that is there.
def of_devices($devices):
  . as $raw
  | listed($raw) as $there
  | (if $devices == [] then $there | map({name: .}) else $devices end) as $wanted
  | ($wanted | map(.name) - $there) as $missing
  | def device($status; $found):
      finding("device"; null; $status; $found;
              if $devices == [] then "one NIC at least" else $wanted | map(.name) | join(", ") end;
              "without device and driver nothing can be measured";
              "lsmod | grep cxi; dmesg -T | grep cxi; install cray-cxi-driver, or correct perch_devices"; healthcheck);
    if $there == [] then device("not_applicable"; "no Slingshot device")
    else
      device(if $missing == [] then "ok" else "bad" end;
             ($there | map("\(.) (\(driver_of($raw; .)))") | join(", "))
             + if $missing == [] then "" else "; not there: \($missing | join(", "))" end),
      ( $wanted[] | select(.name as $n | $there | index([$n]) != null) | . as $planned | .name as $nic
        | link($raw; $nic), retry_handler($raw; $nic), service($raw; $nic; $planned), flaps($raw; $nic),
          codeword_errors($raw; $nic), libfabric($raw; $nic) )
    end;

# Input: what host-check printed. $host: as area.jq has it. Of another fabric's host the first device is checked alone, as
# that is the one that a plan's flows take.
def findings($host):
  . as $raw | of_devices($host.devices | if $host.fabric == "slingshot" then . else .[0:1] end) | unread::settled($raw);

# Every finding on a Cassini NIC is of one host.
def between($hosts): empty;
