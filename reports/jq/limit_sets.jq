# The limits of a run, for role plan: {set: {file, text, document}, site: the same or null} -> inputs/limits.json, or the
# faults, one a line, on standard error and exit 1. file: the name that is shown; text: as written, for the lines.
# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).
import "limit_merge" as merge;
import "limit_faults" as faults;
import "common" as _;

. as $in
| [ ($in.set | .document | faults::file_findings | faults::at($in.set.file; $in.set.text)),
    ($in.site | values | merge::entry_faults($in.set) | faults::at($in.site.file; $in.site.text)) ] as $faults
| if $faults != [] then $faults | unique | join("\n") + "\n" | halt_error(1)
  else
    merge::merged($in.set; $in.site)
    | . as $merged
    | [faults::run_findings | faults::at($merged.files | join(" with "); "")]
    | if . == [] then $merged else join("\n") + "\n" | halt_error(1) end
  end
