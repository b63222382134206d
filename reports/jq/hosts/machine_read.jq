# What the checks of a machine share: how a finding is made, and how files, values of all CPUs and commands are read.
import "common" as c;

# {id, device, status, severity, found, value, wanted, why, remedy, source, missing}; status: ok, bad, unknown, not_applicable,
# or info, where nothing absolute is wanted and hosts are only compared. Severity: required or advisory.
def finding($id; $part):
  { id: ("machine-" + $id), device: null, status: "info", severity: "advisory", found: null, value: null, missing: null,
    wanted: "the same on all hosts of a group", why: null, remedy: null, source: null } + $part
  # what a host says may be any length; a finding is read by a person
  | .found |= if type == "string" then .[0:400] else . end
  | .value |= if type == "string" then .[0:400] else . end;

def trimmed: if type != "string" then null else (if test("^\\s|\\s$") then gsub("^\\s+|\\s+$"; "") else . end) | if . == "" then null else . end end;

# At most 15 digits: what is longer no double holds, and no kernel counts.
def number: if type != "string" then null else trimmed | if . != null and test("^-?[0-9]{1,15}(\\.[0-9]+)?$") then tonumber else null end end;

# What host-check printed without what it cannot have printed.
def sane:
  def texts: with_entries(select(.value | type == "string"));
  .files |= texts | .links |= (texts | with_entries(select(.value | . != "" and (endswith("/") | not))))
  | .commands |= with_entries(select(.value | type == "object" and (.stdout | type == "string") and (.exit | type == "number" or . == null)));

def file($raw; $path): $raw.files[$path] | trimmed;
def file_number($raw; $path): $raw.files[$path] | number;

# Whether /sys and /proc could be read at all: each of these is in every kernel. Only then is absent a word of its own.
def has_sysfs($raw): file($raw; "/sys/devices/system/cpu/present") != null;
def has_sysctls($raw): file($raw; "/proc/sys/kernel/ostype") != null;

def command($raw; $name): $raw.commands[$name] | if type == "object" then . else {exit: null, stdout: "", stderr: ""} end;

# The tool of a command that the host lacks, else null
def missing($name): if .exit == null then $name else null end;

# Why a command gave no answer. 124 and 137 are timeout(1)'s.
def refusal($name):
  if .exit == null then "\($name) is not installed"
  elif .exit == 124 or .exit == 137 then "\($name) did not answer in time, and was stopped"
  else "\($name) answered \(.exit): \(.stderr | trimmed // "it said nothing" | gsub("\\s+"; " ") | .[0:160])" end;

# A value that hosts are compared by, and that may be wanted: null is not known, nothing wanted is info.
def held($value; $wanted):
  if $value == null then "unknown" elif $wanted == null then "info" elif $value == $wanted then "ok" else "bad" end;

def wanted_or_alike: if . == null then "the same on all hosts of a group" else . end;

# ---- what each CPU says (host-check's spread): "0-63,128 performance" a line ---------------------------------------

# "0-3,8" -> how many; null where that is no list
def cpu_count:
  if test("^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$") | not then null
  else [split(",")[] | split("-") | map(tonumber) | .[-1] - .[0] + 1] | add end;

# [{cpus, value}], the first CPU's first; null where nothing or something else was read
def spread($raw; $path):
  $raw.files[$path] | trimmed
  | if . == null then null
    else [split("\n")[] | capture("^(?<cpus>[0-9][0-9,-]*) (?<value>.*\\S)\\s*$") // null]
      | if any(.[]; . == null) then null else sort_by(.cpus | split("-") | .[0] | split(",") | .[0] | tonumber) end
    end;

def per_cpu($raw; $what): spread($raw; "/sys/devices/system/cpu/cpu*/" + $what);

def spread_text:
  if length == 1 then "\(.[0].value) on all \(.[0].cpus | cpu_count | c::plural("CPU"))"
  else map("\(.value) on \(.cpus | if length > 60 then .[:60] + "..." else . end)") | .[:6] | join("; ") end;

# The distinct values, for comparison.
def spread_value: map(.value) | unique | join(", ");

# ---- the kernel's command line --------------------------------------------------------------------------------------

# The value of an argument, the last one that counts; "" of one without; null where it is not there.
def argument($raw; $name):
  [ file($raw; "/proc/cmdline") // "" | splits("\\s+") | select(. == $name or startswith($name + "=")) | ltrimstr($name) | ltrimstr("=") ]
  | last;

# Of these arguments those that were given, as they stand there.
def arguments($raw; $names):
  [ file($raw; "/proc/cmdline") // "" | splits("\\s+") | select((split("=") | .[0]) as $n | $names | index([$n]) != null) ];
