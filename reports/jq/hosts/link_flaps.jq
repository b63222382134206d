# How often a link went down: fewer than 5 times in an hour and 10 in ten are wanted (HPE cxi_healthcheck's rule, the only
# published one), by the kernel's log and by the count that the interface keeps.

# Whether the time before the log's ten hours explains what the interface counted and the log does not show: it does as
# long as that is fewer than 10 in each ten hours of it. Otherwise the log has not got all.
def explained($unseen; $uptime_h):
  $unseen < 5 or ($uptime_h != null and $unseen < 10 * ([($uptime_h - 10) / 10, 0] | max | ceil));

# $times: when it went down by the log, null where that cannot be read; $count: null where there is none; $now: of the
# reading -> {status, found}. Where the log is not there to say when, a count that never reached 5 is enough.
def judged($times; $count; $uptime_h; $now):
  (if $times == null then null
   else def within($s): [$times[] | select($now == null or . > $now - $s)] | length;
     {hour: within(3600), ten: within(36000)} end) as $log
  | if $log != null and $count != 0 then
      "\($log.hour) in the last hour, \($log.ten) in ten" as $found
      | if $log.hour >= 5 or $log.ten >= 10 then {status: "bad", $found}
        elif $count == null or explained($count - $log.ten; $uptime_h) then {status: "ok", $found}
        else { status: "unknown",
               found: ($found + " in the log, but the interface counted \($count) in "
                       + if $uptime_h == null then "an unknown time" else "\($uptime_h | floor) hours" end) } end
    elif $count == null then
      {status: "unknown", found: "neither the kernel's log nor the interface's counter can be read"}
    elif $count < 5 then {status: "ok", found: "\($count) since boot"}
    elif $uptime_h != null and $count >= 10 * ([$uptime_h / 10, 1] | max | ceil) then
      {status: "bad", found: "\($count) in \($uptime_h | floor) hours"}
    else {status: "unknown", found: "\($count) since boot; the log does not show when"} end;

def wanted: "fewer than 5 in an hour and 10 in ten hours";
def why: "each time the link goes down, outstanding packets are lost and sent again";
