"""A run beside the accepted one: what moved, what cannot be compared, and who cannot vouch."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from perch.checks import RunView, drift
from perch.judge import inputs, planned
from perch.model.baseline import Baseline
from perch.model.limits import Limits
from perch.model.verdict import Check, Verdict
from perch.run import judging
from tests.py.conftest import FIXTURES
from tests.py.judging import Change, Document, Run, check_of, put, status

OFI = "ofi-bandwidth/alpha/beta/65536/bandwidth.gbit_s"
IPERF = "iperf/alpha/beta/131072/bandwidth.gbit_s"
IPERF3 = "iperf3/alpha/beta/131072/bandwidth.gbit_s"


def accepted(*changes: Change) -> Document:
    """An earlier run like the recorded one, which was accepted."""
    document: Document = json.loads((FIXTURES / "history/baseline.json").read_text())
    document |= {"run": "20261120T000000Z-earlier", "accepted": "2026-11-20T09:00:00Z"}
    for change in changes:
        change(document)
    return document


@pytest.fixture
def run(run_copy: Callable[[str], Path]) -> Run:
    return Run(run_copy("loopback"))


@pytest.fixture
def judged(run: Run) -> Callable[..., Verdict]:
    """`judged(change, ...)`: the verdict of the run that was planned with this accepted one."""

    def judge(*changes: Change) -> Verdict:
        path = run.root / "inputs/baseline.json"
        path.write_text(json.dumps(accepted(*changes)))
        return run.judge()

    return judge


def ids(verdict: Verdict) -> list[str]:
    return [check.id for check in verdict.checks if check.id.startswith("drift")]


def times(key: str, factor: float) -> Change:
    """Changes the accepted value of a figure."""

    def change(document: Document) -> None:
        document["figures"][key]["value"] *= factor

    return change


# ---- software ------------------------------------------------------------------------------------


def test_a_run_like_the_accepted_one_passes_and_names_it(judged: Callable[..., Verdict]) -> None:
    found = check_of(judged(), "drift")
    assert found.status == "pass"
    assert "of run 20261120T000000Z-earlier, accepted 2026-11-20T09:00:00Z as 'final'" in str(
        found.measured
    )


def test_without_an_accepted_run_that_is_shown(run: Run) -> None:
    assert status(run.judge(), "drift") == "not_judged"


def test_software_that_moved_is_shown(judged: Callable[..., Verdict]) -> None:
    verdict = judged(times(OFI, 1.3), times(IPERF3, 1 / 1.3))
    assert status(verdict, "drift/ofi-bandwidth/bandwidth.gbit_s") == "advisory"
    better = check_of(verdict, "drift/iperf3/bandwidth.gbit_s")
    assert better.status == "advisory"
    assert better.title.endswith("better than the accepted run")
    assert verdict.verdict == "PASS"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("fabric.limits", "roce"),
        ("fabric.scope", "hardware"),
        ("fabric.hosts.gamma", {"fabric": "loopback", "scope": "software", "ends": []}),
        ("fabric.hosts.alpha.ends.0.mtu_bytes", 9000),
        ("fabric.hosts.beta.ends.0.device", "mlx5_0"),
        ("fabric.hosts.beta.ends.0.rate_gbit_s", 100),
    ],
)
def test_an_accepted_run_of_another_fabric_is_named(
    judged: Callable[..., Verdict], path: str, value: object
) -> None:
    verdict = judged(put(path, value))
    assert ids(verdict) == ["drift/fabric"]
    assert status(verdict, "drift/fabric") == "inconclusive"


def test_figures_of_another_definition_are_not_compared(judged: Callable[..., Verdict]) -> None:
    def otherwise(document: Document) -> None:
        document["terms"] = [
            one.replace("definition=half_round_trip", "definition=completion")
            for one in document["terms"]
        ]

    found = check_of(judged(otherwise), "drift/unlike")
    assert found.status == "inconclusive"
    assert "definition: completion and half_round_trip" in str(found.measured)


def test_a_figure_without_a_counterpart_is_shown(judged: Callable[..., Verdict]) -> None:
    def other(document: Document) -> None:
        figures = document["figures"]
        figures["gone/alpha/beta/8/latency_us.p50"] = figures.pop(IPERF)

    found = check_of(judged(other), "drift/missing")
    assert found.status == "not_judged"
    assert found.evidence == ["gone/alpha/beta/8/latency_us.p50", IPERF]


def test_a_figure_of_a_tool_that_names_no_size_is_kept(judged: Callable[..., Verdict]) -> None:
    key = "iperf/alpha/beta/null/bandwidth.gbit_s"

    def without_size(document: Document) -> None:
        document["figures"][key] = document["figures"].pop(IPERF)

    assert key in check_of(judged(without_size), "drift/missing").evidence


@pytest.mark.parametrize(
    "change",
    [
        put("schema", "perch.baseline/2"),
        put("figures", {}),
        put("accepted", "yesterday"),
        put("fabric", {}),
        put("fabric.hosts.alpha.ends.0", {"device": "lo"}),
        put("verdict", "PERHAPS"),
        put("more", 1),
        lambda document: put("value", 0)(document["figures"][IPERF]),
        lambda document: put("of", 99)(document["figures"][IPERF]),
    ],
)
def test_a_damaged_baseline_is_inconclusive(judged: Callable[..., Verdict], change: Change) -> None:
    assert status(judged(change), "drift/baseline") == "inconclusive"


def test_a_baseline_of_the_wrong_type_is_explained() -> None:
    text = json.dumps(accepted(put("fabric", {}))).encode()
    fault = inputs.decoded_baseline(text, "baseline.json").fault
    assert fault == "baseline.json cannot be used: fabric: 'id' is missing"


def _half(path: Path) -> None:
    path.write_bytes((FIXTURES / "history/baseline.json").read_bytes()[:300])


def _twice(path: Path) -> None:
    path.write_text(2 * json.dumps(accepted()))


def _link(path: Path) -> None:
    path.with_name("elsewhere").write_text(json.dumps(accepted()))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("make", [_half, _twice, _link, Path.mkdir])
def test_a_baseline_that_is_no_document_is_inconclusive(
    run: Run, make: Callable[[Path], object]
) -> None:
    make(run.root / "inputs/baseline.json")
    assert status(run.judge(), "drift/baseline") == "inconclusive"


# ---- who cannot vouch ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([put("run", "20261121T080406Z-fixture")], "is this run itself"),
        ([put("accepted", "2026-11-22T00:00:00Z")], "after this run was planned at 2026-11-21T"),
        (
            [put("forced", "ticket 7"), put("verdict", "FAIL")],
            "was FAIL, and accepted by force: ticket 7",
        ),
        ([put("verdict", "FAIL")], "was FAIL, and accepted not by force"),
    ],
)
def test_an_accepted_run_that_cannot_vouch_gives_no_pass(
    judged: Callable[..., Verdict], changes: list[Change], says: str
) -> None:
    verdict = judged(*changes)
    found = check_of(verdict, "drift/baseline")
    assert (verdict.verdict, found.status) == ("INCONCLUSIVE", "inconclusive")
    assert says in str(found.measured)


def test_a_baseline_with_few_of_the_figures_gives_no_pass(judged: Callable[..., Verdict]) -> None:
    def cut(document: Document) -> None:
        document["figures"] = {IPERF: document["figures"][IPERF]}

    found = check_of(judged(cut), "drift/missing")
    assert found.status == "inconclusive"
    assert "has 1 of " in str(found.measured)


# ---- hardware ------------------------------------------------------------------------------------


@pytest.fixture
def hardware(run: Run) -> Callable[..., list[Check]]:
    """`hardware(figure, repeats)`: drift of one bandwidth, as if the run were of hardware.

    `figure`: what of the accepted one is otherwise, its value as a factor.
    """
    run.judge()
    plan = planned.read_plan(run.root / "plan.json")
    for flow in plan.flows():
        flow.scope = "hardware"
    for host in plan.hosts.values():
        host.scope = "hardware"
    seen, _ = judging.judged(run.root)
    assert isinstance(seen, judging.Judged)
    at = (pl.col("test") == "ofi-bandwidth") & (pl.col("params.size_bytes") == 65536)
    one = seen.records.filter(at).with_columns(scope=pl.lit("hardware"))

    def drifts(figure: dict[str, Any], *repeats: float) -> list[Check]:
        rate = "bandwidth.gbit_s"
        records = pl.concat([one.with_columns(pl.col(rate) * factor) for factor in repeats])

        def alone(document: Document) -> None:
            was = document["figures"][OFI]
            was |= figure | {"value": was["value"] * figure["value"]}
            document["figures"] = {OFI: was}
            document["fabric"]["scope"] = "hardware"
            document["terms"] = [
                term.replace("scope=software", "scope=hardware") for term in document["terms"]
            ]

        text = json.dumps(accepted(alone)).encode()
        baseline = inputs.decoded_baseline(text, "baseline.json")
        assert isinstance(baseline, Baseline)
        assert baseline.document is not None, baseline.fault
        view = RunView(
            plan=plan,
            records=records.with_columns(row=pl.int_range(pl.len())),
            hosts={},
            limits=Limits(()),
            baseline=baseline,
            root=run.root,
        )
        return list(drift.drift(view))

    return drifts


QUIET = {"n": 3, "cv_percent": 0.5}
THREE = (1, 1.004, 0.996)


def of_rate(checks: list[Check]) -> Check:
    return next(one for one in checks if one.id == "drift/ofi-bandwidth/bandwidth.gbit_s")


def test_hardware_that_is_worse_than_bound_and_noise_fails(
    hardware: Callable[..., list[Check]],
) -> None:
    found = of_rate(hardware({"value": 1.25, **QUIET}, *THREE))
    assert found.status == "fail"
    assert found.measured == pytest.approx(-20, abs=1e-4)


def test_within_the_bound_is_a_pass(hardware: Callable[..., list[Check]]) -> None:
    statuses = {check.status for check in hardware({"value": 1.04, **QUIET}, *THREE)}
    assert "pass" in statuses
    assert not statuses & {"fail", "inconclusive"}


@pytest.mark.parametrize(
    ("figure", "repeats", "says"),
    [
        ({"n": 3, "cv_percent": 20}, THREE, "the noise of the repeats can make such a change"),
        ({}, (1,), "nothing was repeated"),
    ],
)
def test_what_may_be_chance_is_to_be_measured_again(
    hardware: Callable[..., list[Check]],
    figure: dict[str, Any],
    repeats: tuple[float, ...],
    says: str,
) -> None:
    found = of_rate(hardware({"value": 1.25, **figure}, *repeats))
    assert found.status == "inconclusive"
    assert says in str(found.remedy)
