# Numbers and words as a reader sees them. Templates only place what is made here.
import "common" as c;
import "digits" as d;
import "words" as words;

# Three significant digits, as many as repeats of a network measurement agree in.
def figure:
  if c::is_finite | not then "-"
  elif . == 0 then "0"
  elif (. | fabs) >= 99.95 then d::fixed(0) | d::grouped
  elif (. | fabs) >= 9.995 then d::fixed(1)
  elif (. | fabs) >= 0.9995 then d::fixed(2)
  elif (. | fabs) >= 0.09995 then d::fixed(3)
  elif (. | fabs) >= 0.0009995 then d::fixed(4)
  elif (. | fabs) < 0.00001 then "< 0.00001"
  else d::fixed(5)
  end;

def whole: d::whole;

def size:
  if c::is_finite | not then "-"
  elif . >= 1048576 and . % 1048576 == 0 then "\(. / 1048576) MiB"
  elif . >= 1024 and . % 1024 == 0 then "\(. / 1024) KiB"
  else "\(.) B"
  end;

def times: if c::is_finite then figure + "x" else "-" end;

def memory_size: if c::is_finite then (. / 1073741824 | figure) + " GiB" else "-" end;

def with($sign; $instead): if contains($sign) then split($sign) | join($instead) else . end;

def line: if type == "string" then . elif . == null then "-" else tojson end | if test("\\s") then gsub("\\s+"; " ") | ltrimstr(" ") | rtrimstr(" ") else . end;

# Text from outside, in a cell or anywhere else in Markdown: it says what it says, and no sign of it does anything. What means nothing
# where it stands keeps its looks: an underscore within a word, a number sign within a line, a colon that begins no emoji
# (":fe80:" in an address may be one).
def cell:
  line
  | with("\\"; "\\\\") | with("&"; "&amp;") | with("<"; "&lt;") | with("|"; "\\|") | with("`"; "\\`") | with("*"; "\\*")
  | with("["; "\\[") | with("]"; "\\]") | with("~"; "\\~") | with("$"; "\\$") | with(" #"; " \\#") | with("://"; "\\://") | with("www."; "www\\.")
  | if contains("_") then gsub("(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"; "\\_") else . end
  | if contains(":") then gsub(":(?=(100|1234|[a-z+-][a-z0-9_+-]*):)"; "\\:") else . end
  | if test("^(#|>|[-+=] |[-=_]{3})") then "\\" + . elif test("^[0-9]+[.)] ") then sub("(?<sign>[.)])"; "\\\(.sign)") else . end;

# The same as code; within it nothing can be escaped, so that a text which could end the code, or a cell, is none.
def code: line | if contains("`") or contains("|") or . == "" then cell else "`\(.)`" end;

def unit_sign: if . == "us" then "µs" else . end;

# Counts and round limits are shown as they are, measured figures to three digits.
def plain: if c::is_finite and . == floor then whole else figure end;

def bound($unit):
  ($unit // "" | unit_sign) as $u
  | if . == null then "-"
    elif .min != null and .max == .min then "\(.min | plain) \($u)"
    elif .min != null and .max != null then "\(.min | plain) to \(.max | plain) \($u)"
    elif .min != null then "at least \(.min | plain) \($u)"
    elif .max != null then "at most \(.max | plain) \($u)"
    else "-"
    end
  | sub(" +$"; "");

# Words stay as they are: whoever puts them into a table makes a cell of them.
def value($unit):
  if type == "number" then "\(plain) \($unit // "" | unit_sign)" | sub(" +$"; "")
  elif type == "string" then .
  elif . == null then "-"
  else tojson end;

def names($max): words::names($max);
def plural($word): words::plural($word);
def finding: words::finding;
