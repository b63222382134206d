"""Outliers and their repeats, on a composed run whose one outlier was good when measured again.

And figures from elsewhere.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

from selftest.edits import edit, prints, put, remove, replaced, slower, unreported
from selftest.fault import FAIL, INCONCLUSIVE, fault
from selftest.files import Document, document, write
from selftest.paths import FIXTURES

AGAIN = "write-bandwidth/gamma/delta"
OF_AGAIN = "limit/site-peers/write-bandwidth"
OF_PLAN = f"{OF_AGAIN} retry/plan manifest/odd"
RETRY_PLAN = "plan.retry.json"
MEASURED = ("raw/gamma/retry", "raw/delta/retry")
REPEATS = [f"{AGAIN}/0/{number}" for number in (3, 4)]


def once(plan: Document) -> None:
    del plan["rounds"][1:]


def thrice(plan: Document) -> None:
    plan["rounds"] += [plan["rounds"][-1]] * 2


NOTES = "raw/import/notes.md"
LATENCY = "ib_send_lat -d rocep19s0 -x 3 192.168.251.111"
#: Test, line of its output, tool, operation, kind, size and command of what notes.md holds.
ELSEWHERE = (
    ("send-bandwidth", 42, "perftest", "send", "bandwidth", 2**20,
     "ib_send_bw -d rocep11s0 -x 3 --report_gbits -s 1048576 -n 5000 -q 4 -F 192.168.251.111"),
    ("untuned", 90, "perftest", "send", "latency", 2, LATENCY),
    ("tuned", 97, "perftest", "send", "latency", 2, LATENCY),
    ("optimized", 104, "perftest", "send", "latency", 2, LATENCY),
    ("iperf", 133, "iperf", None, "bandwidth", None, "iperf -c 192.168.251.111 -t 6"),
)  # fmt: skip


def _elsewhere() -> Iterator[Document]:
    """The flows of notes.md, as an import plans them."""
    link = {"rate_gbit_s": 10, "source": f"{NOTES}:193, in words"}
    for test, line, tool, op, kind, size, command in ELSEWHERE:
        yield {
            "test": test, "title": test, "repeat": 1,
            "tool": tool, "backend": None, "provider": None, "op": op, "kind": kind,
            "client": "unknown", "server": "unknown", "scope": "imported",
            "client_argv": command.split(), "server_argv": [],
            "expect": [{"size_bytes": size} if size else {}],
            "import": {"file": NOTES, "line": line, "link": link},
        }  # fmt: skip


def become_import(root: Path) -> None:
    """Puts outputs that were measured elsewhere in the place of the run, under its limits."""
    plan = document(root / "plan.json")
    shutil.rmtree(root / "raw")
    (root / "raw/import").mkdir(parents=True)
    shutil.copy(FIXTURES / "import/notes.md", root / NOTES)
    unknown = {
        "address": "unknown",
        "fabric": "unknown",
        "scope": "imported",
        "backends": [],
        "port": 1,
    }
    plan |= {"suite": {"name": "imported", "title": "outputs that were measured elsewhere"}}
    plan |= {"hosts": {"unknown": unknown}, "rounds": [{"flows": list(_elsewhere())}]}
    write(root / "plan.json", plan)


FAULTS = (
    fault(
        "retry-none",
        "retried",
        FAIL,
        OF_AGAIN,
        "an outlier that was never measured again",
        remove(RETRY_PLAN, *MEASURED),
    ),
    fault(
        "retry-missing",
        "retried",
        FAIL,
        f"{OF_AGAIN} flow/{AGAIN}/* coverage path/* host/*",
        "an outlier whose repeats were planned and not measured",
        remove(*MEASURED),
    ),
    fault(
        "retry-half",
        "retried",
        INCONCLUSIVE,
        f"flow/{AGAIN}/0/4 coverage path/*",
        "an outlier of whose two repeats one is missing",
        unreported(REPEATS[1], "client"),
    ),
    fault(
        "retry-outside",
        "retried",
        FAIL,
        OF_AGAIN,
        "an outlier whose repeats lie outside, too",
        *(prints(repeat, slower(0.8)) for repeat in REPEATS),
    ),
    fault(
        "retry-unlisted",
        "retried",
        FAIL,
        f"{OF_AGAIN} manifest/odd",
        "repeats whose plan is gone",
        remove(RETRY_PLAN),
    ),
    fault(
        "retry-chosen",
        "retried",
        INCONCLUSIVE,
        f"retry/{AGAIN}",
        "a pair that was repeated although it met its limits",
        prints(f"{AGAIN}/0/1", slower(1 / 0.8)),
    ),
    fault(
        "retry-of-another",
        "retried",
        FAIL,
        OF_PLAN,
        "repeats that were planned from another plan",
        edit(RETRY_PLAN, put("plan_sha256", "0" * 64)),
    ),
    fault(
        "retry-strange",
        "retried",
        INCONCLUSIVE,
        "retry/plan manifest/odd",
        "a pair within its limits, and repeats that were planned from another plan",
        edit(RETRY_PLAN, put("plan_sha256", "0" * 64)),
        prints(f"{AGAIN}/0/1", slower(1 / 0.8)),
    ),
    fault(
        "retry-more",
        "retried",
        FAIL,
        OF_PLAN,
        "an outlier that was repeated once and no more",
        edit(RETRY_PLAN, once),
    ),
    fault(
        "retry-again",
        "retried",
        FAIL,
        OF_PLAN,
        "an outlier whose good repeat is counted three times",
        edit(RETRY_PLAN, thrice),
    ),
    fault(
        "imported",
        "loopback",
        INCONCLUSIVE,
        "imported",
        "imported figures instead of a run",
        become_import,
    ),
    fault(
        "imported-drops",
        "loopback",
        INCONCLUSIVE,
        "imported switch/stated",
        "imported figures, beside which the document states that its switch dropped packets",
        become_import,
        replaced(NOTES, r"^- Drops: 0 .*$", "- Drops: 1,200"),
    ),
)
