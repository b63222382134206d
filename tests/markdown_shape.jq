# pandoc's JSON -> its text, with what each thing in it is. Code is told by its text alone, for words with a backtick stand as text
# where others stand as code; a chart's words for those who cannot see it have no brackets.
def shape:
  if type == "array" then .[] | shape
  elif type != "object" then empty
  elif .t == "Str" then .c
  elif .t == "Space" or .t == "SoftBreak" then " "
  elif .t == "Code" then .c[1]
  elif .t == "CodeBlock" then "\n{commands}" # words of a shell, quoted otherwise
  elif .t == "Image" then "{Image \(.c[2][0])}"
  elif .t == "Link" then "{Link \(.c[2][0]) ", (.c[1] | shape), "}"
  elif .t == "RawInline" or .t == "RawBlock" then "{" + .t + " " + .c[1] + "}"
  elif .t == null then .[] | shape
  elif .t == "Para" or .t == "Plain" then "\n", (.c | shape)
  elif .t == "Header" then "\n{Header \(.c[0])} ", (.c[2] | shape)
  elif .t == "Table" then "\n{Table of \(.c[2] | length) columns}", (.c[3:] | shape), "\n{end}"
  else "{" + .t + " ", (.c | shape), "}" end;
[.blocks | shape] | add | gsub(" ?\n ?"; "\n")
