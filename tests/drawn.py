"""A report, or a part of it, of files that a test has altered: drawn.py report|page|export DIR.

`perchctl report` judges first, and so would undo what the test altered. The verdict is stamped as
that of the altered records.
"""

import sys
from pathlib import Path

from perch.errors import PerchError
from perch.exports import junit, prom
from perch.views import details, document, flow_facts, inputs, page, vega
from perch.exports.report import write_report
from tests.stamped import stamp


def export(root: Path) -> None:
    """Writes junit.xml and perch.prom of the verdict and the records that are there."""
    stamp(root)
    run = inputs.read_run(root)
    found = document.measure(run)
    read = details.read(root, run.plan.latency_size)
    times = flow_facts.times(run.records)
    (root / "junit.xml").write_text(junit.document(run, times), encoding="utf-8")
    (root / "perch.prom").write_text(prom.document(run, found.rows, read, times), encoding="utf-8")


def report(root: Path) -> None:
    """Writes everything that is drawn from the verdict and the records that are there."""
    stamp(root)
    with vega.Process() as process:
        for fault in write_report(inputs.read_run(root), process):
            print(fault, file=sys.stderr)


def main(what: str, folder: str) -> int:
    try:
        {"report": report, "page": page.make, "export": export}[what](Path(folder))
    except PerchError as error:
        print(error, file=sys.stderr)
        return error.code
    return 0


sys.exit(main(*sys.argv[1:]))
