"""A pytest plugin: `pytest --tap` prints TAP in place of pytest's own report, with xdist, too.

At the end it names the files whose tests took longest.
"""

from __future__ import annotations

from collections import defaultdict

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tap", action="store_true", help="print TAP, a line for each test")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if config.getoption("tap") and not is_worker:
        config.pluginmanager.set_blocked("terminalreporter")
        config.pluginmanager.register(Tap(), "tap")


#: Files that are named.
LONGEST = 20


class Tap:
    """Prints a test's line when all of its phases have ended; a fault's text comes before it."""

    def __init__(self) -> None:
        self.printed = 0
        self.phases: dict[str, list[pytest.TestReport]] = {}
        self.seconds: dict[str, float] = defaultdict(float)

    def line(self, outcome: str, name: str, text: str = "") -> None:
        for said in text.splitlines():
            print(f"# {said}")
        self.printed += 1
        print(f"{outcome} {self.printed} - {name}", flush=True)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.line("not ok", f"{report.nodeid} can be collected", report.longreprtext)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        phases = self.phases.setdefault(report.nodeid, [])
        phases.append(report)
        self.seconds[report.location[0]] += report.duration
        if report.when not in ("setup", "call"):  # the teardown, or xdist's word for a dead worker
            self.test(report.nodeid, self.phases.pop(report.nodeid))

    def test(self, name: str, phases: list[pytest.TestReport]) -> None:
        failed = [phase.longreprtext for phase in phases if phase.failed]
        skipped = [phase.longrepr for phase in phases if phase.skipped]
        if failed:
            self.line("not ok", name, "\n".join(failed))
        elif skipped:
            reason = skipped[0][2] if isinstance(skipped[0], tuple) else "expected to fail"
            self.line("ok", f"{name} # SKIP {reason.removeprefix('Skipped: ')}")
        else:
            self.line("ok", name)

    def pytest_sessionfinish(self) -> None:
        for file in sorted(self.seconds, key=self.seconds.__getitem__, reverse=True)[:LONGEST]:
            print(f"# {self.seconds[file]:.0f} s: {file}")
        # a test that did not end is planned, and has no line
        print(f"1..{self.printed + len(self.phases)}", flush=True)
