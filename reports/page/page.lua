-- What pandoc's own HTML lacks for this page: the verdict as a band, tables and charts that scroll by themselves and can be
-- reached by the keyboard, charts as part of the page, contents. It adds nothing that is said.
-- Runs in the run's folder, under pandoc 2.17 (Debian 12) and newer.

-- So much of drawings a page holds; what is beyond is linked to. A chart has some 30 KiB, so this is for about 130 of them.
local MAX_DRAWN = 4 * 1024 * 1024
local VERDICTS = { PASS = "pass", FAIL = "fail", INCONCLUSIVE = "inconclusive", ["PASS, software only"] = "limited",
  ["PASS, simulated only"] = "limited", ["PASS, imported only"] = "limited" }
local STATUSES = { ["pass"] = "pass", ["FAIL"] = "fail", ["INCONCLUSIVE"] = "inconclusive",
  ["warning"] = "warning", ["not judged"] = "not-judged" }
-- Sections that are open when the page is; a click, or a link to one, opens the others.
local CHARTS_OPEN = 2
local OPEN = { ["The soak"] = true, ["RDMA against TCP"] = true, ["Key findings"] = true, ["Charts"] = true, ["Not measured"] = true,
  ["Medians over the runs"] = true, ["Changes of firmware, kernel and engine"] = true }
-- From so many characters in its longest cell, or word, on, a table is one of sentences rather than of figures; up to so many
-- rows it stays on one sheet of paper; from so many columns on it is set closer there.
local WORDY, LONG_WORD, SHORT, MANY = 60, 30, 15, 8

local stringify = pandoc.utils.stringify
local section = "the report" -- the heading above what is being written
local drawn = 0
local labels = {}

local function escape(text)
  return (text:gsub("[&<>\"']", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }))
end

-- Names of regions, each once: who hears them read out must tell them apart.
local function label(kind)
  local name = kind .. ": " .. section
  labels[name] = (labels[name] or 0) + 1
  return labels[name] == 1 and name or name .. ", " .. labels[name]
end

-- Attributes as a list: a table's order would be another one in each run.
local function reachable(classes, kind)
  return pandoc.Attr("", classes, { { "tabindex", "0" }, { "role", "region" }, { "aria-label", label(kind) } })
end

-- Charts come from vega.py alone; anything that could load or run something is not taken in, whoever has put it there.
local function is_harmless(svg)
  local lower = svg:lower()
  for _, sign in ipairs({ "<script", "<foreignobject", "<image", "<style", "<a[%s>]", "<use", "%son%a+%s*=", "<!" }) do
    if lower:find(sign) then return false end
  end
  for target in lower:gmatch("href%s*=%s*[\"']([^\"']*)") do
    if target:sub(1, 1) ~= "#" then return false end
  end
  return true
end

-- One drawing as a part of the page: ids of its own, coordinates to a hundredth of a pixel, one name instead of hundreds.
local function inlined(svg, name, title)
  local open, body = svg:match("(<svg[^>]*>)(.*)</svg>%s*$")
  if not open or not is_harmless(svg) then return nil end
  local box = open:match('viewBox="([%d%s.-]+)"')
  local width, height = open:match('width="([%d.]+)"'), open:match('height="([%d.]+)"')
  if not (box and width and height) then return nil end
  local prefix = "chart." .. name .. "."
  body = body:gsub('%s(aria%-[%a-]+)="[^"]*"', ""):gsub('%srole="[^"]*"', "")
  body = body:gsub('(%sid=")', "%1" .. prefix):gsub("url%(#", "url(#" .. prefix):gsub('(href="#)', "%1" .. prefix)
  body = body:gsub('(%s[dt]r?a?n?s?f?o?r?m?=")([^"]*)', function(key, value) return key .. value:gsub("(%d+%.%d%d)%d+", "%1") end)
  return string.format('<svg role="img" aria-label="%s" viewBox="%s" width="%s" height="%s">%s</svg>',
    escape(title), box, width, height, body)
end

-- vega.py's colours for words of a chart that is looked at as a file; the page has its own.
local WORDS_STYLE = "<style>text{fill:#%x+}@media%(prefers%-color%-scheme:dark%){text{fill:#%x+}}</style>"

-- ![title](charts/name.svg), which stands alone in its paragraph.
local function chart(image)
  local title = stringify(image.caption)
  local name = image.src:match("^charts/([%w_-]+)%.svg$")
  local file = name and io.open(image.src, "r")
  local svg = file and file:read("a")
  if file then file:close() end
  svg = svg and svg:gsub(WORDS_STYLE, "", 1)
  svg = svg and drawn + #svg <= MAX_DRAWN and inlined(svg, name, title)
  if not svg then
    local where = name and pandoc.Link(image.src, image.src) or pandoc.Str(image.src)
    return pandoc.Para({ pandoc.Str(title), pandoc.Str(": this chart is not part of the page; it may be found as "), where })
  end
  drawn = drawn + #svg
  return pandoc.Div({ pandoc.RawBlock("html", "<figure>" .. svg .. "</figure>") }, reachable({ "scroll", "chart" }, "Chart"))
end

-- A word of status gets its colour beside.
local function marked(cell)
  local class = STATUSES[stringify(cell.contents)]
  if class and #cell.contents == 1 then
    cell.contents = { pandoc.Plain({ pandoc.Span(cell.contents[1].content, { class = "status " .. class }) }) }
  end
end

local function each_cell(tbl, visit)
  for _, body in ipairs(tbl.bodies) do
    for _, row in ipairs(body.body) do
      for _, cell in ipairs(row.cells) do visit(cell) end
    end
  end
end

local function scrolling(tbl)
  local cells, wordy = 0, false
  each_cell(tbl, function(cell)
    local text = stringify(cell.contents)
    wordy = wordy or #text >= WORDY or text:find(("%S"):rep(LONG_WORD)) ~= nil
    cells = cells + 1
    marked(cell)
  end)
  local classes = { "scroll" }
  if wordy then classes[#classes + 1] = "wordy" end
  if #tbl.colspecs >= MANY then classes[#classes + 1] = "many" end
  if cells <= SHORT * #tbl.colspecs then classes[#classes + 1] = "short" end
  return pandoc.Div({ tbl }, reachable(classes, "Table"))
end

-- The first paragraph that says one of the three words in bold; the sign before it is left to the colour.
local function verdict_of(block)
  if block.t ~= "Para" then return nil end
  for _, inline in ipairs(block.content) do
    if inline.t == "Strong" then return VERDICTS[stringify(inline)] and stringify(inline) end
    if inline.t == "Str" and inline.text:find("%w") then return nil end
  end
end

local function band(block, word)
  while block.content[1].t ~= "Strong" do block.content:remove(1) end
  return pandoc.Div({ block }, { class = "verdict " .. VERDICTS[word] })
end

-- Links out of text from outside lead to the web or into the page, nowhere else.
local function safe_link(link)
  if link.target:find("^https?://") or link.target:find("^#") then return nil end
  return link.content
end

local function contents(headings)
  local items = {}
  for _, h in ipairs(headings) do
    items[#items + 1] = { pandoc.Plain({ pandoc.Link(h.content, "#" .. h.identifier) }) }
  end
  return { pandoc.RawBlock("html", '<nav class="contents" aria-label="Contents">'),
    pandoc.Para({ pandoc.Str("Contents") }), pandoc.BulletList(items), pandoc.RawBlock("html", "</nav>") }
end

local function heading(h)
  section = stringify(h)
  if h.level == 2 and not OPEN[section] then return h end
  if h.level > 1 then h.content = { pandoc.Link(h.content, "#" .. h.identifier) } end
  return h
end

local function html(text) return pandoc.RawBlock("html", text) end

-- Charts two in a row, each with its heading and words; from the third on they are folded.
local function laid_out(blocks)
  local out, number, open = pandoc.List({ html('<div class="charts">') }), 0, false
  for _, block in ipairs(blocks) do
    if block.t == "Header" then
      number = number + 1
      if open then out:insert(html("</div>")) end
      if number == CHARTS_OPEN + 1 then out:insert(html('</div><details><summary>More charts</summary><div class="charts">')) end
      out:insert(html("<div>"))
      open = true
    end
    out:insert(block)
  end
  if open then out:insert(html("</div>")) end
  out:insert(html("</div>"))
  if number > CHARTS_OPEN then out:insert(html("</details>")) end
  return out
end

-- The blocks of a section without its heading, as the page shows them.
local function section_of(head, blocks)
  if not head or head.level == 1 then return blocks end
  local name, out = stringify(head), pandoc.List({})
  if OPEN[name] then
    out:insert(head)
    out:extend(name == "Charts" and laid_out(blocks) or blocks)
    return out
  end
  out:extend({ html("<details><summary>"), head, html("</summary>") })
  out:extend(blocks)
  out:insert(html("</details>"))
  return out
end

-- Folds each section that is not in OPEN: its heading becomes the summary.
local function folded(blocks)
  local out, head, inside = pandoc.List({}), nil, pandoc.List({})
  for _, block in ipairs(blocks) do
    if block.t == "Header" and block.level == 2 then
      out:extend(section_of(head, inside))
      head, inside = block, pandoc.List({})
    else
      inside:insert(block)
    end
  end
  out:extend(section_of(head, inside))
  return out
end

local function page_of(block)
  if block.t == "Header" then return heading(block) end
  if block.t == "Table" then return scrolling(block) end
  if block.t == "Para" and #block.content == 1 and block.content[1].t == "Image" then return chart(block.content[1]) end
  if block.t == "CodeBlock" then
    -- pandoc puts the attributes on <pre>, which is what scrolls
    block.attr = reachable({}, "Commands")
  end
  return block
end

-- Without raw_html in --from, pandoc 2.17 reads tags as HTML all the same: whatever is one becomes the text that it is.
local as_text = {
  RawInline = function(raw) return pandoc.Str(raw.text) end,
  RawBlock = function(raw) return pandoc.Para({ pandoc.Str(raw.text) }) end,
}

function Pandoc(doc)
  doc = doc:walk(as_text):walk({ Link = safe_link })
  local verdict, title
  local headings = {}
  for _, block in ipairs(doc.blocks) do
    if block.t == "Header" and block.level == 1 then title = title or stringify(block) end
    if block.t == "Header" and block.level == 2 then headings[#headings + 1] = block:clone() end
  end
  local out, listed = pandoc.List({}), false
  for _, block in ipairs(doc.blocks) do
    local word = not verdict and verdict_of(block)
    if block.t == "Header" and block.level == 2 and not listed then
      out:extend(contents(headings))
      listed = true
    end
    if word then
      verdict = word
      out:insert(band(block, word))
    else
      out:insert(page_of(block))
    end
  end
  doc.blocks = folded(out)
  doc.meta.pagetitle = pandoc.MetaString((verdict and verdict .. ": " or "") .. (title or "Fabric report"))
  -- an image within a line, from text outside: its words stay
  return doc:walk({ Image = function(image) return image.caption end })
end
