# The clock of a machine, by the program that keeps it, and the clocks of hosts against each other.
import "common" as c;
import "hosts/machine_read" as m;

# Seconds that a connection may take to reach a host: Ansible's default timeout. Until then a difference may be the way.
def way_s: 10;

# chronyc -c tracking: refid, name, stratum, reference time, offset of the system's clock, last offset, RMS offset, three
# of frequency, root delay, root dispersion, interval, leap status (chrony's client.c; librenms-agent reads the same).
def chrony($raw):
  m::command($raw; "chrony")
  | if .exit != 0 then null
    else .stdout | m::trimmed // "" | split(",")
      | if length != 14 then null
        else {leap: .[13], offset: (.[4] | m::number), delay: (.[10] | m::number), dispersion: (.[11] | m::number), server: .[1]}
          | if .offset == null or .delay == null or .dispersion == null then null
            # as far from the true time as chronyc(1) bounds it
            else .error_s = ((.offset | fabs) + .dispersion + .delay / 2) end end end;

# timedatectl show: NTPSynchronized is the kernel's word, set by the program that keeps the clock.
def kernel_says($raw):
  m::command($raw; "timedatectl") | if .exit != 0 then null else .stdout | capture("(^|\\n)NTPSynchronized=(?<v>yes|no)(\\n|$)").v // null end;

def is_kept($raw; $limit):
  chrony($raw) as $chrony | kernel_says($raw) as $says
  | if $chrony != null then $chrony.leap != "Not synchronised" and $chrony.error_s <= $limit
    elif $says != null then $says == "yes"
    else null end;

def limit($host): $host.wanted.clock_skew_s // 1;

def findings($host):
  . as $raw
  | limit($host) as $limit | chrony($raw) as $chrony | kernel_says($raw) as $says | is_kept($raw; $limit) as $kept
  | m::finding("clock";
      { status: (if $kept == null then "unknown" elif $kept then "ok" else "bad" end),
        found: (if $chrony != null then
                  if $chrony.leap == "Not synchronised" then "chrony: not synchronised"
                  else "chrony: within \($chrony.error_s * 1000 | c::figure) ms of \($chrony.server)" end
                elif $says != null then if $says == "yes" then "synchronised (kernel)" else "not synchronised (kernel)" end
                else "neither chronyc nor timedatectl reports a state" end),
        missing: (if m::command($raw; "timedatectl").exit == null then m::command($raw; "chrony") | m::missing("chronyc") else null end),
        wanted: "synchronised within \($limit) s", why: "logs and records of several hosts are compared by their times",
        remedy: "Run systemctl enable --now chronyd, and give all hosts the same time server", source: "chronyc(1), timedatectl(1)" });

# When the controller asked, and the host's clock as the script began: {asked, read}, or null.
def reading($raw):
  { asked: ($raw.files.PERCH_ASKED // "" | capture("^(?<t>[0-9-]+T[0-9:]+)(?<f>\\.[0-9]+)?Z?$") // null
            | if . == null then null else (.t + "Z" | c::attempt(fromdateiso8601; null)) as $t
              | if $t == null then null else $t + ("0" + (.f // "") | tonumber) end end),
    read: (m::command($raw; "clock") | if .exit == 0 then .stdout | m::number else null end) }
  | if .asked == null or .read == null then null else .read - .asked end;

def median: sort | .[length / 2 | floor];

# Each host's clock against the middle of all, the controller's among them. What a connection takes makes a host look
# ahead; behind it can only be by its clock.
def between($hosts):
  [ $hosts[] | {host: .host.name, limit: limit(.host), kept: is_kept(.raw; limit(.host)), ahead: reading(.raw)} ] as $all
  | ([0, $all[].ahead | numbers] | median) as $middle
  | [ $all[] | (if .ahead == null then null else .ahead - $middle end) as $off
      | . + { $off, verdict: (if $off == null then "unknown" elif ($off | fabs) <= .limit then "ok"
                              elif ($off | fabs) > .limit + way_s then "bad" elif .kept == true then "ok" else "unknown" end) } ] as $judged
  | def one($part):
      m::finding("clock-skew";
        { wanted: "within \($judged[0].limit) s of each other", why: "logs and records of several hosts are compared by their times",
          remedy: "Run systemctl enable --now chronyd, and give all hosts the same time server; timedatectl shows the time",
          source: "site policy; a connection that takes up to \(way_s) s looks like a clock that is ahead" } + $part);
    if ($judged | length) < 2 then empty
    else
      ( $judged[] | select(.verdict != "ok")
        | one({ host, status: .verdict,
                found: (if .off == null then "its clock was not compared with the controller's"
                        else "\(.off | fabs | c::figure) s " + (if .off < 0 then "behind" else "ahead of" end) + " the median of \($judged | length) hosts and the controller"
                             + if .verdict == "unknown" then ", or a slow connection" else "" end end) }) ),
      ( if all($judged[]; .verdict == "ok") then
          one({host: null, status: "ok", found: "at most \([$judged[].off | numbers | fabs] | max // 0 | c::figure) s from the median"}) else empty end )
    end;
