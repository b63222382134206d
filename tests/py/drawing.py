"""Pictures that are drawn once for all tests of a process: the same spec gives the same picture."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from perch.views import vega

Alone = vega.Process


class Pictures:
    """One process that draws, and what it has drawn."""

    def __init__(self) -> None:
        self._process: vega.Process | None = None
        self._known: dict[str, str] = {}

    def svg(self, spec: str) -> str:
        if spec not in self._known:
            self._process = self._process or Alone()
            try:
                self._known[spec] = self._process.svg(spec)
            except ValueError:
                self.end()  # it may have ended
                raise
        return self._known[spec]

    def end(self) -> None:
        if self._process:
            self._process.end()
        self._process = None

    def of_a_report(self) -> type[vega.Process]:
        """Stands for the process of each report."""
        pictures = self

        class Process(Alone):
            def __init__(self) -> None:
                self.waits = ThreadPoolExecutor(1)

            def end(self) -> None:
                pass  # the pictures keep it

            def svg(self, spec: str) -> str:
                return pictures.svg(spec)

        return Process
