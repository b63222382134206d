# Rows -> a table in Markdown.
def seconds: if . == null then "-" else "\(. * 10 | round / 10) s" end;
def answer: if .found == null then "-" elif .found then "yes" else "no" end;
"| session | planted | at | found | as | known after |",
"|---|---|---|---|---|---|",
(.[] | "| \(.session) | \(.title) | \(.start_s | seconds) | \(if .good then answer else "**\(answer)**" end) | \(.kind)\(if .n > 1 and .id != "else" then " (\(.n))" else "" end) | \(.after_s | seconds) |"),
"",
(map(select(.start_s != null)) | "\(map(select(.good)) | length) of \(length) planted as expected; ")
+ (map(select(.id == "else").n) | add // 0 | if . == 0 then "nothing found that was not planted" else "\(.) found that were not planted" end)
