"""The texts of a Markdown document, and its lines that are too long."""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.prose.rules import CODE, Finding, Kind, Text

COLUMNS = 100
_PARSER = MarkdownIt("commonmark").enable("table")
_MARK = re.compile(r"[*_~]{2,}")


def texts(file: str, source: str, kind: Kind = Kind.PROSE) -> Iterator[Text]:
    """Each paragraph, item, heading and cell; code blocks and HTML have no prose."""
    line, heading = 1, False
    for token in _PARSER.parse(source):
        if token.map is not None:
            line = token.map[0] + 1
        if token.type in {"heading_open", "th_open"}:
            heading = True
        elif token.type in {"heading_close", "th_close"}:
            heading = False
        elif token.type == "inline" and (words := _words(token)):
            yield Text(file, line, Kind.HEADING if heading else kind, words)


def _words(inline: Token) -> str:
    """What a reader sees of a paragraph, on one line; code is one word."""
    parts = []
    for child in inline.children or ():
        if child.type == "text":
            parts.append(child.content)
        elif child.type in {"code_inline", "html_inline"}:
            parts.append(CODE if child.type == "code_inline" else " ")
        elif child.type in {"softbreak", "hardbreak"}:
            parts.append(" ")
        elif child.type == "image":
            parts.append(child.content)
    return " ".join(_MARK.sub("", "".join(parts)).split())


def long_lines(file: str, source: str) -> Iterator[Finding]:
    """Lines over the limit; rows of tables and addresses cannot be broken."""
    for number, line in enumerate(source.splitlines(), 1):
        if len(line) > COLUMNS and not line.lstrip().startswith("|") and "://" not in line:
            advice = f"{len(line)} columns, at most {COLUMNS}"
            yield Finding(file, number, "columns", line[:40] + "...", advice)
