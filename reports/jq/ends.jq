# The times that the two ends of a flow tell, held against each other and against what the tool says of itself.
import "common" as c;

# Seconds since the epoch; jq 1.6 reads no fraction.
def moment:
  if type != "string" or (test("^[0-9-]{10}T[0-9:]{8}(\\.[0-9]+)?Z$") | not) then null
  else (.[:19] + "Z" | c::attempt(fromdateiso8601; null)) as $whole
    | if $whole == null then null else $whole + ("0" + .[19:-1] | tonumber) end
  end;

def number: [tonumber?] | .[0];

def after($a; $b): if $a == null or $b == null then 0 else [$a - $b, 0] | max end;

# Seconds by which the server's clock is ahead of the client's (below 0: behind), as far as the order of things shows it,
# null where an end told no times. The client begins after both have met and ends before they meet again (agent.d/flow.bash):
# whatever is told the other way round is the clocks'. The same holds of the readings of counters, and of the tool's own word,
# which lies within its process. Text in one format sorts like its times, so that dates are read only where something is wrong.
def skew_s($times; $client; $server; $parts):
  ($times.client) as $c | ($times.server) as $s
  | if $c.started == null or $s.started == null or $c.ended == null or $s.ended == null then null
    else
      ([$parts[].started | strings]) as $said
      | ( (if $s.started > $c.started then after($s.started | moment; $c.started | moment) else 0 end)
          as $ahead
          | (if $c.ended > $s.ended then after($c.ended | moment; $s.ended | moment) else 0 end) as $behind
          | (if $said == [] then 0
             elif ($said | min) < $c.started then after($c.started | moment; $said | min | moment)
             elif ($said | max) > $c.ended then after($said | max | moment; $c.ended | moment)
             else 0 end) as $own
          # the hosts of a soak do not meet: each begins and ends by itself
          | if any($parts[]; .soak != null) then [$own]
            else
              [ $ahead, -$behind, $own,
                after($server.before.time_s | number; $client.before.time_s | number),
                -after($client.after.time_s | number; $server.after.time_s | number) ]
            end )
      | max_by(fabs) | c::rounded
    end;

# A second more than a process lived is granted for the clocks: the tools take theirs from another than the agent.
def granted_s: 1;

# Sizes that took longer than their process lived contradict themselves. Devices of a transfer work at the same time, and a soak that
# goes on after a reboot has had several processes (soak_flow.jq holds its time).
def within_process($client):
  if ($client.elapsed_s | type) != "number" then .
  else
    ([.[] | select(.status == "ok" and .kind != "transfer" and .soak.resumed != true) | .elapsed_s | numbers] | add // 0) as $sum
    | if $sum <= 1.05 * $client.elapsed_s + granted_s then .
      else map(if .status != "ok" then .
               else .status = "error"
                 | .error = {code: 6, traffic: true,
                             message: "its sizes took \($sum | c::rounded) s, but its process lived \($client.elapsed_s) s"} end)
      end
  end;
