# What a host's host-check printed (perch.host_check/1) -> its findings, as far as the plan's word of the host asks.
import "common" as c;
import "planned" as planned;
import "slingshot" as slingshot;
import "host_machine" as machine;
import "host_nic" as nic;
import "host_qos" as qos;

# Seconds by which a host's clock may be behind the controller's, which wrote `created`. Source: site policy.
def clock_skew: 300;

# Why what host-check printed is not of this host and run; null where it is. $environment: what the agent read there.
def misplaced($environment; $created):
  (.collected | c::attempt(fromdateiso8601; null)) as $read
  | ($created | c::attempt(fromdateiso8601; null)) as $begun
  | if $environment.hostname == null then "no environment.json says whose it is"
    elif .hostname != $environment.hostname then
      "it is of \(.hostname | tojson), environment.json of \($environment.hostname | tojson)"
    elif $read == null or $begun == null then "it or the plan does not say when it was made"
    elif $read < $begun - clock_skew then "it is of \(.collected), before the plan of \($created)"
    else null end;

def is_raw: type == "object" and all(.files, .later, .links, .commands; type == "object");

# The Cassini NICs that are checked. Of another fabric's host: the first, as that is the one that a plan's flows take.
def nics:
  (.fabric == "slingshot") as $all
  | (.devices // [] | if $all then . else .[0:1] end | .[])
  | if type == "object" then . else {name: .} end;

# A host of the plan, with its name and what is wanted of it (inputs/hosts/NAME.json), as the areas of checks know it.
def subject:
  { name, fabric, scope, wanted: (.wanted // {}), ports: (.ports // [.port // empty]),
    devices: [.devices // [] | .[] | if type == "object" then . else {name: .} end] };

# $host: of the plan, with cxi, name, wanted, and areas: whether all that RDMA depends on is checked, or a Slingshot NIC
# alone, as of plans that do not say that they owe more. Null: the checks did not run, or left nothing that can be read.
def judged($host):
  if is_raw | not then null
  else
    ($host | subject) as $subject
    | [ if $host.areas then machine::findings($subject), nic::findings($subject), qos::findings($subject) else empty end,
        if $host | planned::is_slingshot then slingshot::findings([$host | nics]) else empty end ]
  end;
