"""Finds the outputs of tools in a file and cuts them out: a tool's own words begin its output.

A log, or Markdown in whose code blocks outputs stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from perch.imports.commands import LONGEST, command, rates
from perch.imports.output import Context, Output

#: Levels of Markdown's headings.
LEVELS = 6

_FENCE = re.compile(" {0,3}(```|~~~)")
_OPENS = re.compile(r" *(?P<fence>```+|~~~+)")
_CLOSES = re.compile(r" *[`~]+ *$")
_HEADING = re.compile("(?P<level>#+) ")
_SETTING = re.compile(r" *[-*+] +(?:\*\*)?[A-Za-z][^:]*:")
_CONTINUES = re.compile(r" *[a-z0-9_./$].*\\$")

_RECORD = re.compile(r'\{.*"schema" *: *"perch\.record/[0-9]"|\{"kind":"(?:sample|interval)"')
_FLOW = re.compile(r'"flow" *: *"[^"]*"')
_DOCUMENT = re.compile(r'[ \t]*\{[ \t]*(?P<key>"?test_info"?[ \t]*:|"start"[ \t]*:)')
_BRACE = re.compile(r"[ \t]*\{[ \t]*$")
_FIRST_KEY = re.compile(r'[ \t]*(?P<key>"?test_info"?[ \t]*:|"start"[ \t]*:)')
_RULE = re.compile(r"-{17,}[ \t]*$")
_PERFTEST = re.compile(r"[ \t]+[A-Za-z_ ]*(?:BW|Latency|Send)[A-Za-z ]* Test[ \t]*$")
_TABLE = re.compile(r"[ \t]*#bytes[ \t]+#")
_LIST = re.compile("#, [a-z]+[ \t]*$")
_IPERF = re.compile("(?:Client connecting to|Server listening on) ")
_IPERF3 = re.compile(r"Connecting to host .*, port [0-9]+[ \t]*$")
_CSV = re.compile(
    "[0-9]{9,}[0-9.:+-]*,[^,]*,[0-9]+,[^,]*,[0-9]+,-?[0-9]+,[0-9.]+[-,]|time,srcaddress,"
)
_CXI = re.compile(" *CXI .* Test *$")
_MORI_SETTING = re.compile(
    " *(?:op_type|num_initiator_dev|transfer_batch_size|enable_batch_transfer|enable_sess"
    "|num_qp_per_transfer|num_worker_threads|poll_cq_mode|iters): "
)
_MORI_TITLE = re.compile(r"[ \t]*\|.*Initiator Rank [0-9]")
_MORI_BORDER = re.compile(r"[ \t]*\+[-+]+\+[ \t]*$")
_MORI_ROW = re.compile(r"[ \t]*\|")

#: A line of the file: its number, from 1, and its text.
_Line = tuple[int, str]


def is_markdown(lines: Iterable[str]) -> bool:
    """Whether a file has fences of code blocks."""
    return any(_FENCE.match(line) for line in lines)


class _Context:
    """What stands before outputs: headings, settings, commands, the link's rate in words."""

    def __init__(self) -> None:
        self.headings = [""] * LEVELS
        self.lines: list[Context] = []
        self.rates: dict[float, int] = {}
        self._used = False

    def heading(self, level: int, title: str) -> None:
        level = min(level, LEVELS)
        self.headings[level - 1 :] = [title] + [""] * (LEVELS - level)
        if level <= 2:
            self.forget()

    def remember(self, context: Context) -> None:
        """What comes after an output belongs to the next one."""
        if self._used:
            self.forget()
        self.lines.append(context)

    def taken(self, *, once: bool) -> list[Context]:
        """The context of an output. `once`: the next output has another one."""
        lines = list(self.lines)
        self._used = True
        if once:
            self.lines.clear()
        return lines

    def forget(self) -> None:
        self.lines.clear()
        self._used = False


class Cutter:
    """Takes the lines of one file. `outputs`: what was found; `rate`: Gb/s of its link, in words.

    A rule ("-----") waits for what follows: it may end a table, or stand above the title of another
    output, which needs none.
    """

    def __init__(self, file: str, *, markdown: bool) -> None:
        self.file = file
        self.outputs: list[Output] = []
        self._markdown = markdown
        self._context = _Context()
        self._current: Output | None = None
        self._fence = ""
        self._partial: str | None = None  # a line of code that goes on, "numactl ... \"
        self._command: str | None = None  # a command that goes on
        self._rule: _Line | None = None
        self._border: _Line | None = None  # of a table of MORI-IO
        self._brace: _Line | None = None  # of a document that waits for its first key
        self._depth: int | None = None  # of braces within a document
        self._flow = ""
        self._has_table = False
        self._has_rows = False
        self._configured = 0  # of MORI-IO: 1 settings, 2 a table after them

    @property
    def rate(self) -> tuple[float, int] | None:
        """Gb/s that the document states, and where; None where it states none or several."""
        rates = self._context.rates
        return next(iter(rates.items())) if len(rates) == 1 else None

    def cut(self, lines: Iterable[str]) -> None:
        number = 0
        for number, line in enumerate(lines, start=1):
            text = line.removesuffix("\r").replace("\r", " ")
            if self._partial is not None:
                text = f"{self._partial} {text.lstrip(' ')}"
                self._partial = None
            # it may not look like a command in its first line: "numactl ... \", then "torchrun"
            if self._fence and text.endswith("\\") and _CONTINUES.match(text):
                self._partial = text[:-1].rstrip(" ")
            else:
                self._line(number, text)
        if self._partial is not None:
            self._line(number, self._partial)
        self._stop()

    # ---- one output ------------------------------------------------------------------------------

    def _is(self, tool: str) -> bool:
        return self._current is not None and self._current.tool == tool

    def _emit(self, number: int, text: str) -> None:
        if self._current is not None:
            self._current.lines.append(text)
            self._current.at.append(number)

    def _release(self) -> None:
        if self._rule is not None:
            self._emit(*self._rule)
        self._rule = None

    def _stop(self, *, fenced: bool = False) -> None:
        # iperf alone has rules only at the beginning
        if self._is("iperf"):
            self._rule = None
        self._release()
        if self._current is not None:
            self._current.fenced = fenced
        self._current = self._depth = None
        self._flow = ""
        self._has_table = False
        self._configured = 0

    def _start(self, tool: str, number: int, *, bare: bool = False) -> None:
        self._stop()
        self._current = Output(
            file=self.file,
            line=number,
            tool=tool,
            bare=bare,
            titles=[title for title in self._context.headings if title],
            # outside of Markdown a command speaks of the output right below it
            context=self._context.taken(once=not self._markdown),
        )
        self.outputs.append(self._current)

    # ---- what is around outputs ------------------------------------------------------------------

    def _around(self, number: int, text: str) -> bool:
        """Fences, headings, settings and prose of Markdown; True where no tool printed the line."""
        found = _OPENS.match(text)
        if found and not self._fence:
            self._stop()
            self._fence = found["fence"]
            return True
        if found and self._fence in text and _CLOSES.match(text):
            self._stop(fenced=True)
            self._fence = ""
            return True
        if self._fence:
            return False
        heading = _HEADING.match(text)
        if heading:
            self._stop()
            self._context.heading(len(heading["level"]), text[heading.end() :].replace("\t", " "))
        for rate in rates(text):
            self._context.rates.setdefault(rate, number)
        if _SETTING.match(text):
            self._context.remember(Context("setting", text))
        return False

    def _is_command(self, text: str) -> bool:
        """Whether the line is a command, or goes on with one; it is remembered when it is whole."""
        found = command(text, fenced=bool(self._fence))
        if found is None and self._command is None:
            return False
        if self._command is not None:
            whole = f"{self._command} {text.lstrip(' ')}"
        else:
            self._stop()
            whole = found or ""
        self._command = None
        if whole.endswith("\\"):
            self._command = whole[:-1].rstrip(" ")
        else:
            self._context.remember(Context("command", whole))
        return True

    # ---- documents -------------------------------------------------------------------------------

    def _is_record(self, number: int, text: str) -> bool:
        """Whether it is a line of the engine, or a record: those of one flow are one output."""
        if not text.startswith("{") or not (self._is("perch") or _RECORD.match(text)):
            return False
        if text.startswith('{"kind":"sample"'):
            return True
        found = _FLOW.search(text)
        flow = found[0] if found else ""
        if not self._is("perch") or flow != self._flow:
            self._start("perch", number)
        self._flow = flow
        self._emit(number, text)
        return True

    def _document_line(self, number: int, text: str) -> None:
        self._emit(number, text)
        if self._depth is not None:
            self._depth += text.count("{") - text.count("}")
            if self._depth <= 0:
                self._stop()

    def _begin_document(self, key: str, number: int, text: str) -> None:
        self._start("perftest" if "test_info" in key else "iperf3", number)
        self._depth = 0
        self._document_line(number, text)

    def _is_document(self, number: int, text: str) -> bool:
        """Whether the line is of a JSON document: its first key tells whose."""
        if self._brace is not None:
            opened, brace = self._brace
            if not text.strip(" \t"):
                return True
            self._brace = None
            if found := _FIRST_KEY.match(text):
                self._begin_document(found["key"], opened, brace)
                self._document_line(number, text)
                return True
            if self._depth is not None:
                self._document_line(opened, brace)
        if found := _DOCUMENT.match(text):
            self._begin_document(found["key"], number, text)
            return True
        if _BRACE.match(text) and (self._depth is None or text.startswith("{")):
            self._brace = (number, text)
            return True
        if self._depth is not None:
            self._document_line(number, text)
            return True
        return False

    # ---- text ------------------------------------------------------------------------------------

    def _line(self, number: int, text: str) -> None:
        if self._markdown and self._around(number, text):
            return
        if self._is_record(number, text) or self._is_document(number, text):
            return
        if _RULE.match(text):
            self._release()
            self._rule = (number, text)
        elif self._is_command(text):
            pass
        elif _MORI_BORDER.match(text) and not self._is("mori"):
            self._border = (number, text)
            self._release()
        else:
            self._text(number, text)

    def _text(self, number: int, text: str) -> None:
        """A line of a tool, or of nothing that is known."""
        is_short = len(text) <= LONGEST
        is_csv = is_short and _CSV.match(text) is not None
        if not (is_short and self._begins(number, text, is_csv=is_csv)):
            self._release()
        self._border = None
        if self._current is None:
            return
        if self._is("mori") and _MORI_ROW.match(text):
            self._configured = 2
        if self._is("perftest"):
            # with -H or -U the header is printed again behind each list of times
            self._has_table = not _LIST.match(text) and (
                self._has_table or _TABLE.match(text) is not None
            )
        self._has_rows = self._has_rows and is_csv
        self._emit(number, text)

    def _begins(self, number: int, text: str, *, is_csv: bool) -> bool:
        """Starts another output, or says that the line begins none."""
        if _PERFTEST.match(text) and "CXI" not in text:
            self._start("perftest", number)
        elif _TABLE.match(text) and (not self._is("perftest") or self._has_table):
            self._start("perftest", number, bare=True)
        elif _IPERF.match(text):
            self._start("iperf", number)
        elif _IPERF3.match(text):
            self._start("iperf3", number)
        elif is_csv and not (self._is("iperf") and self._has_rows):
            self._start("iperf", number)
            self._has_rows = True
        elif _CXI.match(text):
            self._start("cxi", number)
        else:
            return self._begins_mori(number, text)
        return True

    def _begins_mori(self, number: int, text: str) -> bool:
        if _MORI_SETTING.match(text):
            begins = not self._is("mori") or self._configured == 2
            if begins:
                self._start("mori", number)
            self._configured = 1
            return begins
        if _MORI_TITLE.match(text) and not self._is("mori"):
            border = self._border
            self._start("mori", border[0] if border else number)
            if border:
                self._emit(*border)
            return True
        return False
