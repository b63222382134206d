# A table of the report: columns with a title and a Markdown rule, rows of finished cells.

def left($title): {title: $title, rule: "---"};
def right($title): {title: $title, rule: "---:"};

# A column in which no row says anything is noise; the first one names the row.
def slim:
  . as $t
  | [ range(0; $t.columns | length) as $i
      | select($i == 0 or ([$t.rows[] | select(.[$i] != "-")] | length) > 0) | $i ] as $keep
  | . + {columns: [$t.columns[$keep[]]], rows: [$t.rows[] as $row | [$row[$keep[]]]]};
