# Whether other hosts reach the ports that a host listens on, by the rules of its packet filters.
import "common" as c;
import "hosts/machine_read" as m;
import "hosts/firewall_rules" as firewall;

def port_text: "\(.port)/\(.protocol)";

# The verdict of all filters that could be read on one port, for the connection $c.
def judged($nft; $iptables; $c; $hidden):
  [ (if $iptables.exit == 0 then $iptables.stdout | firewall::iptables($c) else null end) as $old
    | (if $old != null then $old | firewall::reachable else empty end),
      (if $nft.exit == 0 then
         $nft.stdout | firewall::nft($c; $old != null and ($iptables.stdout | test("\\(nf_tables\\)")))
         | if . == null then "unknown" else firewall::reachable end
       else empty end) ] as $verdicts
  # a filter that could not be read may still close the port, and never opens it
  | firewall::joined($verdicts + if $hidden then ["unknown"] else [] end);

# Whether there may be rules that could not be asked for. Distributions build both filters as modules: one that is not
# loaded has none. The tables of the older one are listed in /proc for root.
def hidden($raw; $nft; $iptables):
  m::file($raw; "/proc/modules") as $modules
  | def may_be($name): $modules == null or ($modules | test("(^|\\n)" + $name + " "));
    ($nft.exit != 0 and may_be("nf_tables"))
    or ($iptables.exit != 0
        and if $raw.files["/proc/net/ip_tables_names"] == null then may_be("ip_tables")
            else m::file($raw; "/proc/net/ip_tables_names") != null end);

def allow_command($raw):
  if any($raw.files["/proc/*/comm"] // "" | split("\n")[]; test("^[0-9]+ firewalld")) then
    "firewall-cmd --permanent --add-port=PORT/PROTOCOL && firewall-cmd --reload"
  elif $raw.files["/etc/ufw/ufw.conf"] // "" | test("(^|\\n)ENABLED=yes") then "ufw allow PORT/PROTOCOL"
  else "Let the port through (nft add rule inet filter input tcp dport PORT accept)" end;

def ports($host; $soft):
  [ ($host.ports // [])[] | {port: ., protocol: "tcp"} ]
  # Soft-RoCE is UDP of the kernel (4791, by IANA), and passes its filter; a NIC's RoCE passes none
  + if $soft then [{port: 4791, protocol: "udp"}] else [] end;

# $interfaces: those of the devices under test
def findings($host; $interfaces; $soft):
  . as $raw
  | m::command($raw; "nft") as $nft | m::command($raw; "iptables") as $iptables
  | hidden($raw; $nft; $iptables) as $hidden
  | ports($host; $soft) as $ports
  | [ $ports[] | . + {verdict: judged($nft; $iptables; . + {interfaces: $interfaces}; $hidden)} ] as $all
  | def of($verdict): [$all[] | select(.verdict == $verdict) | port_text];
    m::finding("firewall";
      { status: (if $ports == [] then "not_applicable" elif of("closed") != [] then "bad" elif of("unknown") != [] then "unknown" else "ok" end),
        # what the rules leave open is shown by the measurement itself
        severity: (if of("closed") != [] then "required" else "advisory" end),
        found: (if $ports == [] then "no port is listened on"
                else [ (of("open") | select(. != []) | "let through: " + join(", ")), (of("closed") | select(. != []) | "closed: " + join(", ")),
                       (of("unknown") | select(. != [])
                        | "the rules do not tell: " + join(", ") + " ("
                          + (if $nft.exit != 0 and $iptables.exit != 0 then [($nft | m::refusal("nft")), ($iptables | m::refusal("iptables-save"))] | join("; ")
                             elif $hidden then [($nft, $iptables) | select(.exit != 0) | m::refusal(.argv[0] // "one of nft and iptables-save")] | join("; ")
                             else "they ask for more than the port" end) + ")") ] | join("; ") end),
        wanted: (if $ports == [] then null else "let through: " + ($ports | map(port_text) | join(", ")) end),
        why: "the two ends of a test meet at these ports, and its tools listen there",
        # where the other filter closes nothing, the one without its tool stays unknown
        missing: (if $hidden then [($nft | m::missing("nft")), ($iptables | m::missing("iptables-save")) | values] | first // null else null end),
        remedy: allow_command($raw), source: "nft(8), iptables-save(8)" });
