# A judged run -> its line of index.jsonl (perch.index/1). $folder: its name beside the index; $id: its fabric's, or "";
# $digest: verdict.json's SHA-256; $plan (empty where it cannot be read), $verdict, $index (the lines that are there): --slurpfile.
($verdict[0] | if .schema == "perch.verdict/1" and (.run | type) == "string" then . else error("no verdict") end) as $v
| ($plan[0] // {}) as $p
# what was accepted before stays so, as long as the verdict is that which was accepted
| (first($index[] | select(.run == $v.run)) // {}) as $was
| { schema: "perch.index/1", run: $v.run, $folder, created: ($p.created // null), suite: ($p.suite.name? // null),
    limits: ($p.limits // null), fabric: (if $id == "" then null else $id end), scope: $v.scope, verdict: $v.verdict,
    planned: $v.coverage.planned, measured: $v.coverage.measured, digest: $digest,
    accepted: (if $was.digest == $digest then $was.accepted else null end),
    label: (if $was.digest == $digest then $was.label else null end),
    forced: (if $was.digest == $digest then $was.forced else null end) }
