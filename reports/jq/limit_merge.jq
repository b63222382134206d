# A set of limits and a site's own file -> the limits of a run, each with the file that it came from. A whole entry of the
# site's replaces the set's with the same id or is added; an entry {id, severity: removed, source} takes one out of the
# judging, and leaves it to be shown.
import "limit_faults" as faults;

def is_removal: type == "object" and .severity == "removed";

# {file, text, document} of each; $site: null where there is none. -> faults, as limit_faults.jq has them, with their file.
def entry_faults($set):
  .document as $d
  | [$set.document.limits[]?.id?] as $ids
  | ( .document |= (if type == "object" and (.limits | type) == "array" then .limits |= map(select(is_removal | not)) else . end)
      # a file of removals alone is a whole one
      | if .document.limits? == [] and ($d.limits | length) > 0 then empty else (.document | faults::site_findings) end ),
    ( $d.limits? | arrays | map(select(is_removal))
      | ( .[] | select((.source | faults::is_text) | not) | {limit: (.id // "number 1"), key: "source", says: "no source: who removes a limit says why"} ),
        ( .[] | (keys_unsorted - ["id", "severity", "source"])[] as $k | {limit: .id, key: $k, says: "a removal has id, severity and source only"} ),
        ( .[] | select(.id as $id | $ids | index([$id]) == null)
          | {limit: (.id | tostring), key: "id", says: "removes nothing: \($set.file) has no limit with this id"} ),
        ( group_by(.id)[] | select(length > 1) | {limit: .[0].id, key: "id", says: "\(length) entries remove it"} ) ),
    ( $d.limits? | arrays | [.[] | select(is_removal) | .id] as $out | .[] | select((is_removal | not) and (.id as $id | $out | index([$id]) != null))
      | {limit: .id, key: "id", says: "it is both removed and given"} );

# The relative limits of the whole, whose partners the site may have replaced or removed, are asked again by the caller.
def merged($set; $site):
  ($site.document.limits // []) as $own
  | [$set.document.limits[].id] as $ids
  | { schema: "perch.limits/1", name: $set.document.name, title: $set.document.title,
      files: [$set.file, ($site.file // empty)],
      limits: (
        [ $set.document.limits[] | .id as $id | . as $old
          | (first($own[] | select(.id == $id)) // null) as $new
          | if $new == null then . + {from: $set.file}
            elif $new | is_removal then . + {from: $set.file, removed: {file: $site.file, source: $new.source}}
            else $new + {from: $site.file, replaces: {from: $set.file, severity: $old.severity, bound: $old.bound, source: $old.source}} end ]
        + [ $own[] | select((is_removal | not) and (.id as $id | $ids | index([$id]) == null)) | . + {from: $site.file} ] ) };
