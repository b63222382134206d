"""Vega-Lite specs -> SVG, by a process of its own: vl-convert lets no other thread run meanwhile.

`python -m perch.views.vega` answers each line of standard input, a spec in JSON, with a line: the
SVG, or why there is none. It ends with its input.

Offline and deterministic: vl-convert carries its own Vega, and nothing of the drawing depends on
time or place.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any

from perch import programs

#: The Vega-Lite that the specs are written for; vl-convert carries several.
VEGA_LITE = "5.20"

#: Words are read on both grounds: at least 4.5:1 on white and on the dark one of page.css. The page
#: has colours of its own and leaves this out (page.lua).
WORDS_STYLE = (
    "<style>text{fill:#59636e}@media(prefers-color-scheme:dark){text{fill:#a3adb8}}</style>"
)

#: A mark and what it says; vl-convert writes its words as a label for screen readers only.
_point = re.compile(
    r'<(path|line) aria-label="([^"]*)"([^>]*aria-roledescription="'
    r'(?:point|rule mark|rect mark|bar|line mark)"[^>]*)/>'
)

#: Seconds for one chart: eight times what a whole report of 100,000 records may take
#: (tests/bench/report).
CHART_S = 120.0

#: Vega starts in a third of a second with it, while the figures of the report are read.
_FIRST = '{"mark": "point", "data": {"values": []}}'


def svg(spec: str) -> str:
    """Raises ValueError where it cannot be drawn."""
    import vl_convert

    drawn = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
    titled = _point.sub(r'<\1 aria-label="\2"\3><title>\2</title></\1>', drawn)
    return titled.replace(">", f">{WORDS_STYLE}", 1)


class Process:
    """The process that draws; `waits` is the thread that waits for it."""

    def __init__(self) -> None:
        self.waits = ThreadPoolExecutor(1)
        self._is_late = False
        self._process = subprocess.Popen(
            # -P: not a module of the folder in which perchctl was called
            [sys.executable, "-P", "-m", __name__],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.waits.shutdown(cancel_futures=True)
        self.end()

    def end(self) -> None:
        """Ends the process."""
        programs.end(self._process)

    def _end_late(self) -> None:
        self._is_late = True
        programs.kill(self._process)

    def svg(self, spec: str) -> str:
        """The same. Raises TimeoutError where it took too long, which ends the process."""
        late = Timer(CHART_S, self._end_late)
        late.start()
        try:
            answer = self._answer(spec)
        except (BrokenPipeError, json.JSONDecodeError):
            import vl_convert  # noqa: F401  # its absence has a message of its own

            if self._is_late:
                why = f"the process that draws gave no answer within {CHART_S:g} s and was killed"
                raise TimeoutError(why) from None
            raise ValueError("the process that draws has ended") from None
        finally:
            late.cancel()
        if "why" in answer:
            raise ValueError(answer["why"])
        return str(answer["svg"])

    def _answer(self, spec: str) -> Any:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked and answers
        asked.write(f"{spec}\n".encode())
        asked.flush()
        return json.loads(answers.readline())


def main() -> None:
    svg(_FIRST)
    for line in sys.stdin:
        try:
            answer = {"svg": svg(line)}
        except ValueError as error:
            answer = {"why": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
