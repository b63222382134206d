# The module in each port (transceiver or cable): which it is, and its light, current and heat against its own thresholds ->
# findings. Of ethtool -m the text is read: its JSON has the key module_temperature twice, once for the thresholds.
import "common" as c;
import "hosts/nic_read" as r;

def entries: [strings | split("\n")[] | capture("^\\s*(?<key>[A-Z][^:]*?)\\s*: *(?<value>.*?)\\s*$")];
def entry($key): [.[] | select(.key == $key).value | select(. != "")] | .[0];

# "0.8316 mW / -0.80 dBm" -> {value: 0.8316, text: "-0.80 dBm"}; "47.11 degrees C / 116.79 degrees F" -> {value: 47.11, ...}
def level:
  [capture("^(?<value>-?[0-9]{1,6}(\\.[0-9]{1,6})?) (?<unit>mW|mA|V|degrees C)\\b( / (?<dbm>-?[0-9.]+|-inf) dBm)?")
   | {value: (.value | tonumber + 0), text: (if .dbm != null then "\(.dbm) dBm" else "\(.value) \(.unit | if . == "degrees C" then "C" else . end)" end)}] | .[0];

# What is measured, as ethtool's sfpdiag.c, qsfp.c and cmis.c call it -> {kind, channel: text or null}
def measured:
  [ ( capture("^(Rcvr|Receiver) signal [a-zA-Z ]+?( *\\(Channel (?<channel>[0-9]+)\\))?$") | {kind: "rx power", channel} ),
    ( capture("^(Transmit avg optical power|Laser output power)( *\\(Channel (?<channel>[0-9]+)\\))?$") | {kind: "tx power", channel} ),
    ( capture("^Laser (tx )?bias current( *\\(Channel (?<channel>[0-9]+)\\))?$") | {kind: "bias current", channel} ),
    ( capture("^Module (?<kind>temperature|voltage)$") | {kind, channel: null} ) ] | .[0];
def kinds:
  { "Laser rx power": "rx power", "Laser output power": "tx power", "Laser tx power": "tx power", "Laser bias current": "bias current",
    "Module temperature": "temperature", "Module voltage": "voltage" };
def about: "(?<name>Laser (rx|tx|output) power|Laser bias current|Module (temperature|voltage)) (?<way>high|low) (?<grade>alarm|warning)";

# ethtool -m -> {name, details, levels: [{kind, channel, value, text}], limits: {KIND: {"high alarm": level}}, flags: [...]}
def transceiver:
  entries as $entries
  | ($entries | entry("Vendor name")) as $vendor | ($entries | entry("Vendor PN")) as $part
  | if ($entries | entry("Identifier")) == null or ($vendor == null and $part == null) then null
    else
      ($entries | entry("Active firmware version")) as $firmware
      | [$entries[] | (.key | measured) as $what | select($what != null) | (.value | level) as $level | select($level != null) | $what + $level] as $levels
      # a lane without light or current carries nothing, or is not measured; a link that needs it is down
      | [$levels[] | select(.kind == "rx power" and .value <= 0.0001) | .channel] as $dark
      | { name: ([$vendor, $part, if $firmware == null then null else "firmware \($firmware)" end | values] | join(" ") | .[0:80]),
          # of what other makers' modules are, too: the kind of light or copper, and how long the copper is
          type: ([$entries[] | select(.key == "Transceiver type" or (.key | test("^(Length \\(Copper|Cable assembly length)"))).value] | unique | if any(.[]; test("Ethernet"))
                 and all(.[]; test("unknown|unspecified|reserved"; "i") | not) then join(", ") else null end),
          details: ([($entries | entry("Vendor rev") | values | "revision \(.)"), ($entries | entry("Vendor SN") | values | "serial \(.)")] | map(", " + .[0:40]) | add // ""),
          levels: [$levels[] | select(.value > 0.0001 or .kind == "temperature") | select(.channel as $at | $at == null or ($dark | index([$at]) == null))],
          limits: (reduce ($entries[] | (.key | [capture("^" + about + " threshold$")] | .[0]) as $limit | select($limit != null)
                           | (.value | level) as $level | select($level != null) | $limit + {$level}) as $one
                     ({}; .[kinds[$one.name]]["\($one.way) \($one.grade)"] = $one.level)),
          flags: [ $entries[] | select(.value == "On") | .key | capture("^" + about + " *(\\(Chan(nel)? (?<channel>[0-9]+)\\))?$")
                   | select(.channel as $at | $at == null or ($dark | index([$at]) == null)) | . + {kind: kinds[.name]} ] } end;

# The kinds of the modules below an interface; null where one cannot be read.
def parts($raw; $netdev):
  [r::carriers($raw; $netdev)[] | [r::said($raw; "module \(.)") | strings | transceiver | .name] | .[0]]
  | if any(.[]; . == null) then null else unique end;

# The same of their types.
def types($raw; $netdev):
  [r::carriers($raw; $netdev)[] | [r::said($raw; "module \(.)") | strings | transceiver | .type] | .[0]]
  | if any(.[]; . == null) then null else unique end;

def place: .kind + if .channel == null then "" else " of channel \(.channel)" end;

# Levels beyond their limits of a grade; a module that has no such limits has zeros in their place.
def beyond($grade):
  .limits as $limits
  | .levels[] | . as $level | ($limits[.kind] // {}) as $of | $of["high \($grade)"] as $high | $of["low \($grade)"] as $low
  | select($high != null and $low != null and $high.value > $low.value)
  | if .value > $high.value then "\(place) \(.text), \($grade) above \($high.text)"
    elif .value < $low.value then "\(place) \(.text), \($grade) below \($low.text)" else empty end;

# "rx power -0.80 to -0.21 dBm": of a kind its least and greatest
def ranges:
  [.levels | group_by(.kind)[] | sort_by(.value) | "\(.[0].kind) \(.[0].text)" + if .[0].text == .[-1].text then "" else " to \(.[-1].text)" end] | join(", ");

def which($raw; $d; $carrier; $optic):
  r::command($raw; "module \($carrier)") as $said
  # of a kind of module that it does not know ethtool prints the bytes
  | ([$said.stdout | strings | test("^Offset\\s+Values")] | any) as $hex
  | (r::is_tried($raw; "module \($carrier)") or $hex) as $tried
  | if $optic != null then r::result("info"; "\($optic.name)\($optic.details)"; $optic.name)
    elif r::is_guest($raw; $d.chain[0]) then r::guest($d.chain[0])
    elif $hex then r::unknown("this ethtool prints bytes of this kind of module; use ethtool 6.6 or newer")
    elif $said.exit == 0 then r::unknown("ethtool -m \($carrier) names no module")
    elif $tried and ($said.stderr | strings | test("not supported"; "i")) then r::not_applicable("the driver of \($carrier) does not tell its module")
    else r::unread($raw; "module \($carrier)") end
  | r::finding("module"; $carrier;
      { severity: (if $tried then "advisory" else "required" end), wanted: null, source: "ethtool -m; SFF-8472, SFF-8636, CMIS",
        why: "other modules and other firmware have other faults", remedy: "Use one kind of module" });

def levels($carrier; $optic):
  [$optic | beyond("alarm")] as $alarms
  | [$optic | beyond("warning")] as $warnings
  | [$optic.flags[] | "\(place): \(.way) \(.grade) since it was last read"] as $flags
  | if $optic.levels == [] then r::not_applicable("the module tells no levels")
    elif $optic.limits == {} and $flags == [] then r::result("info"; $optic | ranges; null)
    else
      (if $alarms != [] then $alarms elif $warnings != [] then $warnings else $flags end) as $bad
      | r::either($bad == []; if $bad == [] then $optic | ranges else $bad | c::names(4) end; null) end
  | r::finding("module-levels"; $carrier;
      { severity: (if $alarms != [] then "required" else "advisory" end), wanted: "within the module's own limits",
        why: "too little light or too much heat comes before bit errors", source: "ethtool -m; SFF-8472, SFF-8636, CMIS: alarm and warning levels",
        remedy: "Clean connectors and fibres, check airflow, or replace the module; look at the other end, too" });

def findings($raw; $host; $devices):
  select($host.scope == "hardware")
  | r::interfaces($devices)[] | select((.cxi | not) and r::there($raw; .netdev)) | . as $d
  | r::carriers($raw; .netdev)[] as $carrier
  | (r::said($raw; "module \($carrier)") | [strings | transceiver] | .[0]) as $optic
  | which($raw; $d; $carrier; $optic), (select($optic != null) | levels($carrier; $optic));
