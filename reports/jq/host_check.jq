# What a host's host-check printed (perch.host_check/1) -> its findings, as far as the plan's word of the host asks.
import "common" as c;
import "slingshot" as slingshot;

# The hosts that a flow over a Cassini NIC uses, {NAME: true}: such a flow is hardware whatever the fabric is called.
# flows: the flows of the plan, a stream.
def cxi_hosts(flows):
  reduce (flows | select(.tool == "cxi" or .backend == "cxi")) as $flow
    ({}; .[$flow.client] = true | .[$flow.server] = true);

# A host of the plan, with cxi: true where such a flow uses it.
def is_slingshot: .fabric == "slingshot" or .cxi == true;

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

# What is checked of a host. Of another fabric's: the first, as that is the one that a plan's flows take.
def devices:
  (.fabric == "slingshot") as $all
  | (.devices // [] | if $all then . else .[0:1] end | .[])
  | if type == "object" then . else {name: .} end;

# $host: of the plan, with cxi. Null: the checks did not run, or left nothing that can be read.
def judged($host):
  if is_raw | not then null
  else [ if $host | is_slingshot then
           slingshot::findings([$host | devices])
         else empty end ] end;
