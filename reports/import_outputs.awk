# Finds the outputs of tools in files and cuts them out, for reports/import: what begins one are the tool's own words.
# Variables: list, a file with a file's name on each line; docs, those among them that are Markdown; out, a folder.
# Writes out/TOOL for each tool that was met (perftest, iperf, iperf3, cxi, mori, perch) with lines of fields between tabs:
#   R number file line kind headings...   an output begins here; kind is "doc" in Markdown, "bare" for a table without a title
#   C line text                           a command that stands before it; S line text: a setting ("- **MTU**: 1024")
#   L line text                           a line of it
#   E how                                 its end: fence (of Markdown), words (of something else), end (of the file)
# and out/files: file, number of its outputs, link rate in words (Gb/s), their line. A file is read line by line, whatever its size.

function emit(kind, line, text) { print kind "\t" line "\t" text >to }

# A rule waits for what follows: it may end a table, or stand above the title of another output, which needs none. iperf
# alone has rules only at the beginning.
function release() {
  if (held && to != "") emit("L", held, rule)
  held = 0
}

function stop(how) {
  if (tool == "iperf") held = 0
  release()
  if (to == "") return
  print "E\t" how >to
  to = tool = flow = ""
  json = config = table = 0
}

function start(name, line, kind,   i, titles) {
  stop("words")
  tool = name
  to = out "/" name
  outputs++
  titles = ""
  for (i = 1; i <= 6; i++) if (heading[i] != "") titles = titles "\t" heading[i]
  print "R\t" (++number) "\t" file "\t" line "\t" kind titles >to
  for (i = 1; i <= contexts; i++) print context[i] >to
  used = 1
  # outside of Markdown a command speaks of the output right below it
  if (!doc) contexts = 0
}

function remember(kind, line, text) {
  if (used) contexts = 0
  used = 0
  context[++contexts] = kind "\t" line "\t" text
}

function count(text, what,   copy) {
  copy = text
  return gsub(what, "", copy)
}

# A command of one of the tools: behind a prompt, or in Markdown's code. Returns it without the prompt, or "".
function command(text,   bare) {
  bare = text
  if (!sub(/^(\[[^]]*\] ?|[^ ]*[@:~\/][^ ]* ?)?[$#] +/, "", bare) && !sub(/^\++ +/, "", bare) && !fenced) return ""
  if (fenced && text ~ /^# /) return ""
  sub(/^ +/, "", bare)
  while (sub(/^(sudo|time|nohup|[A-Z_]+=[^ ]*|(numactl|taskset|timeout|stdbuf)( +(-[^ ]*|[0-9a-fx,-]+))*) +/, "", bare)) continue
  if (bare ~ /^([^ ]*\/)?(ib_(send|write|read|atomic)_(bw|lat)|raw_ethernet_(bw|lat)|iperf3?|cxi_(send|write|read|atomic)_(bw|lat))( |$)/) return bare
  if (bare ~ /^([^ ]*\/)?(torchrun|python3?) .*benchmark\.py/) return bare
  return ""
}

# "9.23 Gbps (92% of 10G link)", "link rate: 25 Gb/s": the rate that a document states in words. "x" where it states two.
function link_words(text,   rest, words) {
  rest = text
  while (match(rest, /[0-9]+(\.[0-9]+)? ?(G|GbE|Gb\/s|Gbps|Gbit\/s)[ -](link|line)|[Ll]ink([ -]([Rr]ate|[Ss]peed))?(\*\*)?: *(\*\*)? ?[0-9]+(\.[0-9]+)? ?(GbE|Gb\/s|Gbps|Gbit\/s|G([^A-Za-z\/]|$))/)) {
    words = substr(rest, RSTART, RLENGTH)
    rest = substr(rest, RSTART + RLENGTH)
    match(words, /[0-9]+(\.[0-9]+)?/)
    words = substr(words, RSTART, RLENGTH) + 0
    if (rate == "") { rate = words; rate_line = nr }
    else if (rate != words) rate = "x"
  }
}

# Markdown around outputs: fences, headings, settings and prose. Returns 1 where the line is no output's.
function markdown(text,   level) {
  if (match(text, /^ *(```+|~~~+)/)) {
    if (!fenced) { stop("words"); fenced = substr(text, RSTART, RLENGTH); sub(/^ */, "", fenced); return 1 }
    if (index(text, fenced) && text ~ /^ *[`~]+ *$/) { stop("fence"); fenced = ""; return 1 }
  }
  if (fenced) return 0
  if (match(text, /^#+ /)) {
    stop("words")
    level = RLENGTH - 1
    if (level > 6) level = 6
    for (i = level; i <= 6; i++) heading[i] = ""
    heading[level] = substr(text, RLENGTH + 1)
    gsub(/\t/, " ", heading[level])
    if (level <= 2) contexts = used = 0
  }
  link_words(text)
  if (text ~ /^ *[-*+] +(\*\*)?[A-Za-z][^:]*:/) remember("S", nr, text)
  return 0
}

# A JSON document begins with a brace; what it is of stands in its first key.
function document(text) {
  if (text ~ /^[ \t]*\{[ \t]*("?test_info"?[ \t]*:|"start"[ \t]*:)/) begin_json(text ~ /test_info/ ? "perftest" : "iperf3", nr, text)
  else if (text ~ /^[ \t]*\{[ \t]*$/ && (!json || text ~ /^\{/)) { opened = nr; opening = text; return 1 }
  else return 0
  return 1
}

function begin_json(name, line, text) {
  start(name, line, kind_here())
  json = 1
  depth = 0
  json_line(line, text)
}

function json_line(line, text) {
  emit("L", line, text)
  depth += count(text, "[{]") - count(text, "[}]")
  if (depth <= 0) stop("words")
}

function kind_here() { return doc ? "doc" : "" }

# Engine's lines and records: those of one flow together are one output.
function records(text,   id) {
  if (text ~ /^\{"kind":"sample"/) return 1
  id = match(text, /"flow" *: *"[^"]*"/) ? substr(text, RSTART, RLENGTH) : ""
  if (tool != "perch" || id != flow) start("perch", nr, kind_here())
  flow = id
  emit("L", nr, text)
  return 1
}

function line_of_file(text) {
  if (doc && markdown(text)) return
  # an opened document's first key
  if (opened) {
    if (text ~ /^[ \t]*$/) return
    if (text ~ /^[ \t]*"?test_info"?[ \t]*:/ || text ~ /^[ \t]*"start"[ \t]*:/) {
      begin_json(text ~ /test_info/ ? "perftest" : "iperf3", opened, opening)
      opened = 0
      if (to != "") json_line(nr, text)
      return
    }
    if (json && to != "") json_line(opened, opening)
    opened = 0
  }
  if (text ~ /^\{.*"schema" *: *"perch\.record\/1"/ || text ~ /^\{"kind":"(sample|interval)"/ || (tool == "perch" && text ~ /^\{/)) { records(text); return }
  if (document(text)) return
  if (json) { json_line(nr, text); return }
  if (text ~ /^-----------------+[ \t]*$/) { release(); held = nr; rule = text; return }
  if ((found = command(text)) != "" || more) { whole_command(found, text); return }
  if (text ~ /^[ \t]+[A-Za-z_ ]*(BW|Latency|Send)[A-Za-z ]* Test[ \t]*$/ && text !~ /CXI/) start("perftest", nr, kind_here())
  else if (text ~ /^[ \t]*#bytes[ \t]+#/ && (tool != "perftest" || table)) start("perftest", nr, "bare")
  else if (text ~ /^(Client connecting to|Server listening on) /) start("iperf", nr, kind_here())
  else if (text ~ /^Connecting to host .*, port [0-9]+[ \t]*$/) start("iperf3", nr, kind_here())
  else if (csv(text) && !(tool == "iperf" && rows)) { start("iperf", nr, kind_here()); rows = 1 }
  else if (text ~ /^ *CXI .* Test *$/) start("cxi", nr, kind_here())
  else if (mori_config(text)) { if (tool != "mori" || config == 2) start("mori", nr, kind_here()); config = 1 }
  else if (text ~ /^[ \t]*\|.*Initiator Rank [0-9]/ && tool != "mori") { start("mori", border ? border : nr, kind_here()); if (border) emit("L", border, border_text) }
  else if (text ~ /^[ \t]*\+[-+]+\+[ \t]*$/ && tool != "mori") { border = nr; border_text = text; release(); return }
  else release()
  border = 0
  if (to == "") return
  if (tool == "mori" && text ~ /^[ \t]*\|/) config = 2
  if (tool == "perftest" && text ~ /^[ \t]*#bytes/) table = 1
  if (!csv(text)) rows = 0
  emit("L", nr, text)
}

function csv(text) { return text ~ /^[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]+[0-9.:+-]*,[^,]*,[0-9]+,[^,]*,[0-9]+,-?[0-9]+,[0-9.]+[-,]/ || text ~ /^time,srcaddress,/ }

function mori_config(text) {
  return text ~ /^ *(op_type|num_initiator_dev|transfer_batch_size|enable_batch_transfer|enable_sess|num_qp_per_transfer|num_worker_threads|poll_cq_mode|iters): /
}

# A command may go on over several lines.
function whole_command(found, text) {
  if (more) { sub(/^ +/, "", text); pending = pending " " text }
  else { stop("words"); pending = found; pending_line = nr }
  more = sub(/ *\\$/, "", pending)
  if (!more) remember("C", pending_line, pending)
}

# A command that goes on may not look like one in its first line: "numactl ... \", then "torchrun".
function joined(text) {
  if (partial != "") { sub(/^ +/, "", text); text = partial " " text }
  partial = ""
  if (fenced && text ~ /\\$/ && text ~ /^ *[a-z0-9_.\/$]/) { sub(/ *\\$/, "", text); partial = text; return 0 }
  whole = text
  return 1
}

BEGIN {
  while ((getline file <docs) > 0) is_doc[file] = 1
  close(docs)
  while ((getline file <list) > 0) {
    doc = file in is_doc
    nr = outputs = contexts = used = held = opened = more = border = rate_line = 0
    fenced = rate = partial = ""
    for (i = 1; i <= 6; i++) heading[i] = ""
    while ((status = getline text <file) > 0) {
      nr++
      sub(/\r$/, "", text)
      gsub(/\r/, " ", text)
      if (joined(text)) line_of_file(whole)
    }
    close(file)
    if (partial != "") line_of_file(partial)
    stop("end")
    print file "\t" outputs "\t" rate "\t" rate_line "\t" nr >(out "/files")
  }
}
