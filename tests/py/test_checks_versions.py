"""Hosts that measure with other versions, or name none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.py.judging import Change, Document, Run, check_of, put, status

MakeRun = Callable[[str], Path]


def without(name: str) -> Change:
    def change(environment: Document) -> None:
        del environment["versions"][name]

    return change


def test_one_version_on_all_hosts_passes(run_copy: MakeRun) -> None:
    found = check_of(Run(run_copy("loopback")).judge(), "versions")
    assert found.status == "pass"
    assert found.measured == "perch 0.1.0; libfabric 1.17.0; iperf3 3.12; iperf 2.1.8"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("versions.libfabric", "2.1.0"), "libfabric: 1.17.0 on alpha, 2.1.0 on beta"),
        (put("versions.iperf", "2.2.1"), "iperf: 2.1.8 on alpha, 2.2.1 on beta"),
        (put("versions.iperf3", None), "beta names no version of iperf3"),
        (put("versions.iperf", ""), "beta names no version of iperf"),
        (without("libfabric"), "beta names no version of libfabric"),
    ],
)
def test_other_versions_on_a_server_are_a_warning(
    run_copy: MakeRun, change: Change, words: str
) -> None:
    run = Run(run_copy("loopback"))
    run.edit("raw/beta/environment.json", change)
    verdict = run.judge()
    found = check_of(verdict, "versions")
    assert (verdict.verdict, found.status) == ("PASS", "advisory")
    assert words in str(found.measured)
    assert "beta" in found.evidence


def test_a_client_whose_output_tells_no_version_may_name_none(run_copy: MakeRun) -> None:
    """Only the host's own record tells iperf's version."""
    run = Run(run_copy("loopback"))
    run.edit("raw/alpha/environment.json", put("versions.iperf", None))
    verdict = run.judge()
    found = check_of(verdict, "versions")
    assert (verdict.verdict, found.status) == ("PASS", "advisory")
    assert "alpha names no version of iperf" in str(found.measured)


def test_a_version_that_no_flow_uses_is_not_compared(run_copy: MakeRun) -> None:
    run = Run(run_copy("loopback"))
    run.edit("raw/beta/environment.json", put("versions.jq", "1.7"))
    assert status(run.judge(), "versions") == "pass"


@pytest.mark.parametrize("host", ["alpha", "beta"])
@pytest.mark.parametrize(
    "change", [put("versions.perch", "0.0.9"), put("versions.perch", None), without("perch")]
)
def test_both_hosts_have_the_engine_that_measured(
    run_copy: MakeRun, host: str, change: Change
) -> None:
    """The engine's ends refuse a peer of another version."""
    run = Run(run_copy("loopback"))
    run.edit(f"raw/{host}/environment.json", change)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    found = check_of(verdict, "flow/tcp-latency/alpha/beta/0/1")
    assert f"host {host} " in str(found.measured)


@pytest.mark.parametrize(
    ("test", "change"),
    [("tcp-latency", put("tool.version", None)), ("iperf3", put("start.version", None))],
)
def test_an_output_names_its_version(run_copy: MakeRun, test: str, change: Change) -> None:
    run = Run(run_copy("loopback"))
    run.flow(test).prints(change)
    verdict = run.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    (found,) = [one for one in verdict.checks if one.id.startswith(f"flow/{test}/alpha/beta/0/1")]
    assert "the output names no version" in str(found.measured)
