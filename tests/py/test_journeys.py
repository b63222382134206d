"""The new tool of CONTRIBUTING.md, tests/journeys/netperf.patch: what it printed is read."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
JOURNEYS = TOP / "tests/journeys"
PATCHED = ("perch", "playbooks/suites", "roles/inventory_check")
READ = """
import pathlib, sys
from perch.model.plan import Flow
from perch.tools import ToolOutput, read

flow = Flow(id="t/a/b/0/1", test="t", tool="netperf", kind="bandwidth", client="a", server="b",
            scope="software")
(part,) = read(ToolOutput(flow, pathlib.Path(sys.argv[1]).read_bytes()))
print(part.status, part.bandwidth and part.bandwidth.gbit_s, part.tcp and part.tcp.retransmissions)
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in PATCHED:
        shutil.copytree(TOP / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    patch = (JOURNEYS / "netperf.patch").read_bytes()
    subprocess.run(["patch", "-s", "-p1"], cwd=root, input=patch, check=True, timeout=60)
    return root


@pytest.mark.parametrize(("share", "said"), [(1, "ok 24.79555 28"), (0.75, "error None None")])
def test_what_netperf_printed_is_read_and_a_part_of_it_is_an_error(
    tree: Path, tmp_path: Path, share: float, said: str
) -> None:
    printed = (JOURNEYS / "netperf-2.7.1.txt").read_bytes()
    output = tmp_path / "output"
    output.write_bytes(printed[: int(share * len(printed))])
    argv = [sys.executable, "-P", "-c", READ, str(output)]
    done = subprocess.run(
        argv, env={"PYTHONPATH": str(tree)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stderr, done.stdout.strip()) == ("", said)
