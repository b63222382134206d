# A verdict as JUnit XML, for CI systems: one testcase a check. A check that failed is a failure, one that could not be judged an
# error, an advisory one has passed with a word, and one that does not apply is skipped with its reason.
import "format" as f;

# XML 1.0 (section 2.2, Char) has no place for most control characters, not even as references.
def is_char: . == 9 or . == 10 or . == 13 or (. >= 32 and . <= 55295) or (. >= 57344 and . <= 65533) or . >= 65536;
# jq 1.6 writes &apos; where 1.7 writes &#39;.
def text: tostring | explode | map(if is_char then . else 65533 end) | implode | @html | gsub("&apos;"; "&#39;");
# A parser makes spaces of these in an attribute.
def attribute: text | gsub("\n"; "&#10;") | gsub("\t"; "&#9;") | gsub("\r"; "&#13;");

def told_max: 20;

def measured: .unit as $unit | .measured | if type == "number" then f::value($unit) elif . == null then "-" else . end;
def headline: "\(.title): \(measured)" + (.unit as $unit | .limit | f::bound($unit) | if . == "-" then "" else " (limit: \(.))" end);
def details:
  [ headline,
    (if .source == null then empty else "source: \(.source)" end),
    (if .evidence == [] then empty else "evidence: \(.evidence | join(", "))" end),
    (if .remedy == null then empty else "to do: \(.remedy)" end),
    (.told[]? | "\(.start // "time not known")\(if .end == null or .end == .start then "" else " to \(.end)" end)"
                + "\([.flow, .host] | map(values) | if . == [] then "" else ", \(join(" at "))" end): \(.text) (\(.evidence | join(", ")))") ]
  | join("\n");

def outcome:
  if .status == "fail" or .status == "inconclusive" then
    {fail: "failure", inconclusive: "error"}[.status] as $element
    | "<\($element) type=\"\(.status)\" message=\"\(headline | attribute)\">\(details | text)</\($element)>"
  elif .status == "not_judged" then "<skipped message=\"\(headline | attribute)\"/>"
  elif .status == "advisory" then "<system-out>\(details | text)</system-out>"
  else ""
  end;

def seconds: if . == null then "" else " time=\"\(. * 1000 | round / 1000)\"" end;

# $times: {test: seconds that its flows measured}. Only the check of all flows of a test has a time of its own.
def testcase($times):
  "    <testcase classname=\"perch.\(.id | split("/")[0] | attribute)\" name=\"\(.id | attribute)\""
  + (if .id | startswith("flows/") then $times[.id[6:]] | seconds else "" end)
  + (outcome | if . == "" then "/>" else ">\(.)</testcase>" end);

# The verdict itself, so that a run without PASS is never green.
def of_verdict:
  { id: "verdict", title: "The verdict is PASS", status: ({PASS: "pass", FAIL: "fail"}[.verdict] // "inconclusive"), measured: .verdict,
    limit: null, unit: null, source: "design, the verdict", evidence: [], remedy: "See the other checks, and report.md" };

# Verdict -> XML. $about: {created, seconds, times}.
def document($about):
  . as $verdict
  # of a soak's checks the first anomalies, so that who reads no report has their times
  | (.soak.anomalies // [] | map(select(.check != null)) | group_by(.check) | map({key: .[0].check, value: .[:told_max]}) | from_entries) as $told
  | ([of_verdict] + (.checks | map(if $told[.id] == null then . else .told = $told[.id] end))) as $checks
  | (" tests=\"\($checks | length)\" failures=\"\([$checks[] | select(.status == "fail")] | length)\""
     + " errors=\"\([$checks[] | select(.status == "inconclusive")] | length)\"") as $counts
  | "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"perch\"\($counts)\($about.seconds | seconds)>\n"
    + "  <testsuite name=\"\(.run | attribute)\"\($counts) skipped=\"\([$checks[] | select(.status == "not_judged")] | length)\"\($about.seconds | seconds)"
    + (if $about.created == null then "" else " timestamp=\"\($about.created | attribute)\"" end) + ">\n"
    + "    <properties><property name=\"verdict\" value=\"\(.verdict | attribute)\"/><property name=\"scope\" value=\"\(.scope | attribute)\"/></properties>\n"
    + ($checks | map(testcase($about.times) + "\n") | join("")) + "  </testsuite>\n</testsuites>\n";
