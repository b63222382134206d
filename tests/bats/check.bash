# shellcheck shell=bash
# What `perch check` says of a command, held against that command's records. Load it after helpers.

# Every key of the check, but those that differ from line to line, is a key of each record, with the same value.
CONFORMS='
  def part($whole): . as $part
    | if type == "object" then ($whole | type) == "object" and all(keys[]; . as $k | ($whole | has($k)) and ($part[$k] | part($whole[$k])))
      else . == $whole end;
  def fits_provider($p): .provider == $p or (.provider // "" | startswith($p + ";"));
  def fits($line): . as $record
    | .kind == $line.kind and .params.size_bytes == $line.size_bytes
      and ($line | {batch, chunk_bytes, chunks} | to_entries | all(.value == null or .value == $record.params[.key]))
      and ($line.pair == .transfer.pair and $line.asked == .transfer.asked);
  . as $records
  | $check[0]
  | (({definition, connection} | with_entries(select(.value != null))) + {backend, op, params: (.params | del(.sizes, .batches))}) as $each
  | .provider as $provider
  | .expect as $expect
  | ($records | length) == ($expect | length)
    and all($records[]; . as $record | $each | part($record))
    and all($records[]; $provider == null or fits_provider($provider))
    and all(range($expect | length); . as $i | $records[$i] | fits($expect[$i]))'

# conform RECORDS COMMAND WORD...: of the records in a file all that is said of the command is true
conform() {
  local records=$1
  shift
  "$PERCH" check "$@" >job.json || fail "refused: $*"
  jq -es --slurpfile check job.json "$CONFORMS" "$records" >/dev/null || fail "$*: this does not hold of the records: $(cat job.json)"
}
