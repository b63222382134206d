# A soak's kinds of anomalies, the gravest first, and its times in words.
import "digits" as d;
import "format" as f;

def kinds:
  [ "corrupt", "hole", "overlap", "length", "foreign", "damaged", "sum", "dropped", "host", "gap", "reboot", "link", "stall", "low", "slow", "drift",
    "change", "rate", "leak", "handles", "counter", "clock" ];

# Seconds as somebody would say them: 50.0 ms, 12.3 s, 5 min 03 s, 23 h 59 min, 3 d 4 h.
def two: if . < 10 then "0\(.)" else tostring end;
def span:
  if type != "number" then "-"
  elif . < 0.0995 then "\(1000 * . | f::figure) ms"
  elif . < 120 then "\(f::figure) s"
  else
    (. + 0.5 | floor) as $s
    | if $s < 7200 then "\($s / 60 | floor) min" + ($s % 60 | if . == 0 then "" else " \(two) s" end)
      elif $s < 172800 then "\($s / 3600 | floor) h" + ($s % 3600 / 60 | floor | if . == 0 then "" else " \(two) min" end)
      else "\($s / 86400 | floor) d" + ($s % 86400 / 3600 | floor | if . == 0 then "" else " \(.) h" end) end
  end;

# What was asked, as it was asked: 24 h, 90 s
def asked:
  if type != "number" then "-"
  elif . >= 3600 and . % 3600 == 0 then "\(. / 3600) h" elif . >= 60 and . % 60 == 0 then "\(. / 60) min"
  elif . == floor then "\(.) s"
  else span end;

# Seconds since the soak began: 3:12:05, with tenths where it is less than two minutes.
def since:
  if type != "number" then "-"
  elif . < 120 then "\(d::fixed(1)) s"
  else floor as $s | "\($s / 3600 | floor):\($s % 3600 / 60 | floor | two):\($s % 60 | two)" end;

# A share of the whole, never rounded up to all of it.
def share: 10000 * . | floor / 100 | if . >= 100 then "100 %" else "\(d::fixed(2)) %" end;

# "2026-11-22T18:23:16.758Z" as it is read in a table; anything else as it is
def clock: if type == "string" then sub("T"; " ") | sub("Z$"; "") else "-" end;
