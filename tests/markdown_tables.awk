# Tables of a report: names each one without rows, each column but the first that has dashes alone, and words that no reader
# should meet. Prints nothing where all is well.
function close_table(  i) {
  if (inside && !rows) print FILENAME ":" start ": a table without rows"
  for (i = 3; inside && rows && i < columns; i++) if (dashes[i] == rows) print FILENAME ":" start ": column " i - 1 " has dashes alone"
  inside = 0; rows = 0; delete dashes
}
/^\|/ {
  gsub(/\\\|/, "/")
  columns = split($0, cells, "|")
  if (!inside) { inside = 1; start = FNR; next }
  if ($0 ~ /^\| *---/) next
  rows++
  for (i = 3; i < columns; i++) if (cells[i] ~ /^ *-? *$/) dashes[i]++
  next
}
{ close_table() }
END { close_table() }
/(^|[^A-Za-z`])(null|undefined|None|NaN|nan)([^A-Za-z]|$)/ { print FILENAME ":" FNR ": " $0 }
