# Input of programs that read the files of several hosts or switches: "path<TAB>line" of each file, each owner's ended by the
# mark. No more than these two stands here, as each function costs time to begin.
import "common" as c;

def next_part($mark): [label $stop | inputs | if startswith($mark) then ., break $stop else . end];

# One of these files; null where it is absent, damaged or of another schema.
def document($path; $schema):
  ($path + "\t") as $p
  | map(select(startswith($p)) | ltrimstr($p)) | join("\n") | c::parsed
  | if type == "object" and .schema == $schema then . else null end;
