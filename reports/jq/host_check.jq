# What a host's host-check printed (perch.host_check/1): whose it is, and what of it is to be judged.
import "common" as c;

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

# Two things are read of every host: an answer without them is none, whatever else it says.
def is_raw:
  type == "object" and all(.files, .later, .links, .commands; type == "object")
  and (.files["/proc/uptime"] | type) == "string" and .commands.kernel.exit == 0;

# A host of the plan, with its name and what is wanted of it (inputs/hosts/NAME.json), as the areas of checks know it.
def subject:
  { name, fabric, scope, wanted: (.wanted // {}), ports: (.ports // [.port // empty]),
    devices: [.devices // [] | .[] | if type == "object" then . else {name: .} end] };

# What is checked of a host: all that RDMA depends on, or a Slingshot NIC alone, as of plans that do not say that they owe
# more. Each is a module host_AREA.jq with findings($host) and between($hosts). $all: whether the plan says so.
def areas($all; $is_slingshot):
  (if $all then ["machine", "nic", "qos"] else [] end) + if $is_slingshot then ["slingshot"] else [] end;
