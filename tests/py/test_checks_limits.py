"""Limits over records: which limit speaks of which record, and what it says."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from typing import Any

import pytest

from perch.checks import figures, limit_values
from perch.checks.limits import status_of
from perch.judge import columns
from perch.model.baseline import (
    AcceptedFigure,
    Baseline,
    BaselineDocument,
    Fabric,
    FabricHost,
)
from perch.model.limits import Limits, Removed
from perch.model.record import Record
from perch.model.verdict import Bound, Check
from tests.py.checks_built import flow_of, found, limit, record, run_of

LATENCY: dict[str, Any] = {"kind": "latency", "latency_us": {"p50": 5, "count": 1000}}
FAST: dict[str, Any] = {"bandwidth": {"gbit_s": 10}}


def judged(*records: Record, **more: Any) -> Check:
    """What the one limit says of the records' test t."""
    return found(run_of(list(records), limit(**more)), "limit")["limit/l/t"]


def figure(metric: str, **more: Any) -> float | None:
    """A limit's figure of one record."""
    frame = columns.frame([record(**more)])
    value: float | None = frame.select(v=limit_values.figure(metric))["v"][0]
    return value


def speaks(one: Record, **more: Any) -> bool:
    """Whether a limit bounds this record."""
    expression = limit_values.speaks_of(limit(**more), {"t": flow_of(one)})
    return columns.frame([one]).filter(expression).height == 1


def test_without_a_measurement_the_limits_are_not_called_missing() -> None:
    lost: dict[str, Any] = {"status": "error", "error": {"code": 4, "message": "lost"}}
    [finding] = found(run_of([record(**lost)], limit()), "limits").values()
    assert (finding.id, finding.status) == ("limits", "inconclusive")
    assert finding.fault == "Nothing was measured, so no limit could judge"
    assert "limits.json" not in str(finding.remedy)
    [finding] = found(run_of([record(**FAST)]), "limits").values()
    assert (finding.id, finding.fault) == ("limits", "There are no limits to judge by")


# ---- scope ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "fits"),
    [
        ({}, True),
        ({"backend": "tcp"}, True),
        ({"backend": ["ofi", "tcp"]}, True),
        ({"size_bytes": {"max": 64}}, True),
        ({"size_bytes": [8, 64]}, True),
        ({"layer": "loopback", "server": "b"}, True),
        ({"tool": "perch", "op": "send", "kind": "latency", "test": "t"}, True),
        ({"size_bytes": {"min": 65}}, False),
        ({"size_bytes": {"min": 1, "max": 63}}, False),
        ({"backend": "ofi"}, False),
        ({"kind": "bandwidth"}, False),
        ({"tool": ["iperf"]}, False),
        ({"bidirectional": False}, False),  # the record does not say
        ({"queue_pairs": {"min": 1}}, False),  # nor this
        ({"hop_class": "same_switch"}, False),
    ],
)
def test_a_scope_is_a_value_a_list_of_values_or_a_range(scope: dict[str, Any], fits: bool) -> None:
    one = record(backend="tcp", link={"layer": "loopback"}, params={"size_bytes": 64}, **LATENCY)
    assert speaks(one, scope=scope, metric="latency_us.p50") is fits


def test_under_another_tools_name_it_is_perch_that_measured() -> None:
    one = record(tool={"name": "perch-personality"}, **FAST)
    flow = flow_of(record())
    mine = limit_values.speaks_of(limit(scope={"backend": "ofi", "tool": "perch"}), {"t": flow})
    assert columns.frame([one]).filter(mine).height == 1


def test_an_imported_figure_is_held_to_the_bounds_of_hardware() -> None:
    one = record(scope="imported", **FAST)
    assert speaks(one, scope={"scope": "hardware"})
    assert not speaks(one, scope={"scope": "software"})


def test_a_flow_of_transfers_has_records_of_two_kinds() -> None:
    params = {"size_bytes": 8, "batch": 2}
    one = record(kind="sum", params=params, **FAST)
    expression = limit_values.speaks_of(
        limit(scope={"kind": "sum"}), {"t": flow_of(one, kind="transfer")}
    )
    assert columns.frame([one]).filter(expression).height == 1


@pytest.mark.parametrize(
    ("metric", "more", "has"),
    [
        ("derived.stall_s", {}, False),
        ("derived.stall_s", {"stall": {"longest_s": 0, "start_s": 0}}, True),
        ("derived.packets_lost_ppm", {}, False),
        ("derived.packets_lost_ppm", {"packets": {"sent": 5}}, True),
        ("derived.loss_ppm", {}, False),
        ("derived.loss_ppm", {"loss": {"sent_messages": 5}}, True),
        ("derived.mean_per_median", {"latency_us": {"mean": 5}}, False),
        ("derived.mean_per_median", {"latency_us": {"mean": 5, "p50": 4}}, True),
        ("bandwidth.gbit_s", {"transfer": {"pair": 0}, "params": {"verify": True}}, False),
        ("bandwidth.gbit_s", {"transfer": {"pair": 0}, "params": {}}, True),
        ("bandwidth.gbit_s", {"params": {"verify": True}}, True),
    ],
)
def test_a_limit_says_nothing_of_a_record_that_cannot_have_its_figure(
    metric: str, more: dict[str, Any], has: bool
) -> None:
    assert speaks(record(**more), metric=metric) is has


@pytest.mark.parametrize(
    ("rate", "may"),
    [
        ({"asked": 0.5, "unit": "Gb/s"}, False),
        ({"asked": 1, "unit": "Gb/s"}, True),
        ({"asked": 1000, "unit": "messages/s"}, False),
        ({"asked": 2000, "unit": "messages/s"}, True),
        (None, True),
    ],
)
def test_a_flow_that_was_asked_for_less_than_a_limit_wants_is_not_held_to_it(
    rate: dict[str, Any] | None, may: bool
) -> None:
    params = {"size_bytes": 65536} | ({"rate": rate} if rate else {})
    assert speaks(record(params=params), bound={"min": 1}) is may


# ---- figures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "more", "value"),
    [
        ("latency_us.p50", LATENCY, 5),
        ("derived.p99_minus_p50_us", {"latency_us": {"p50": 5, "p99": 9.25}}, 4.25),
        ("derived.mean_per_median", {"latency_us": {"p50": 5, "mean": 15}}, 3),
        ("derived.mean_per_median", {"latency_us": {"mean": 15}}, None),
        ("derived.stddev_per_median", {"latency_us": {"p50": 5, "stddev": 35}}, 7),
        ("derived.max_per_median", {"latency_us": {"mean": 4, "max": 40}}, 10),
        ("latency_us.p99", {"latency_us": {"count": 999, "p99": 9}}, None),
        ("latency_us.p99", {"latency_us": {"count": 1000, "p99": 9}}, 9),
        ("latency_us.p99_9", {"latency_us": {"count": 1000, "p99_9": 70}}, None),
        ("latency_us.p99_9", {"latency_us": {"count": 10000, "p99_9": 70}}, 70),
        ("latency_us.p99_9", {"latency_us": {"p99_9": 70}}, 70),
        ("latency_us.mean", {"latency_us": {"count": 1, "mean": 3}}, 3),
        ("bandwidth.gbit_s", LATENCY, None),
        ("derived.retransmissions_per_gb",
         {"tcp": {"retransmissions": 9}, "bandwidth": {"bytes": 3_000_000_000}}, 3),
        ("derived.retransmissions_per_gb",
         {"tcp": {"retransmissions": 9}, "bandwidth": {"bytes": 0}}, None),
        ("derived.packets_lost_ppm", {"packets": {"sent": 2000, "lost": 30}}, 15000),
        ("derived.packets_retried_ppm", {"packets": {"sent": 2000, "retries": 7}}, 3500),
        ("derived.packets_corrupted_ppm", {"packets": {"sent": 2000}}, None),
        ("derived.stall_s", {"stall": {"longest_s": 5.2, "start_s": 0}}, 5.2),
        ("derived.loss_ppm", {"loss": {"sent_messages": 2000000, "lost_messages": 3}}, 1.5),
        ("derived.loss_ppm", {"loss": {"sent_messages": 200, "lost_messages": 0}}, 0),
        ("derived.loss_ppm", {"loss": {"sent_messages": 0, "lost_messages": 0}}, None),
    ],
)  # fmt: skip
def test_figures_are_a_records_own_or_made_of_them(
    metric: str, more: dict[str, Any], value: float | None
) -> None:
    assert figure(metric, **more) == value


# ---- judging -------------------------------------------------------------------------------------


def bandwidths(*rates: float | None, **more: Any) -> list[Record]:
    return [
        record(
            f"t/a/b/0/{n}", **({"bandwidth": {"gbit_s": rate}} if rate is not None else {}), **more
        )
        for n, rate in enumerate(rates, 1)
    ]


@pytest.mark.parametrize(
    ("bound", "broken"),
    [({"min": 10, "max": 20}, [1, 4]), ({"min": 9}, []), ({"max": 19}, [4, 3])],
)
def test_figures_beyond_a_bound_fail_and_are_evidence_the_worst_first(
    bound: dict[str, float], broken: list[int]
) -> None:
    check = judged(*bandwidths(9, 10, 20, 21), bound=bound)
    assert check.status == ("fail" if broken else "pass")
    if broken:
        assert check.evidence == [f"t/a/b/0/{n}#65536" for n in broken]


@pytest.mark.parametrize(
    ("bound", "worst"),
    [
        ({"min": 5}, 9),
        ({"max": 30}, 21),
        ({"max": 0}, 9),  # the first beyond a bound that no factor reaches
        ({"min": 10, "max": 20}, 9),
    ],
)
def test_the_worst_is_nearest_to_a_bound_or_farthest_beyond_it(
    bound: dict[str, float], worst: float
) -> None:
    assert judged(*bandwidths(12, 9, 20, 21)[1:], bound=bound).measured == worst


def test_a_zero_is_beyond_any_lower_bound() -> None:
    assert judged(*bandwidths(0.5, 0), bound={"min": 1}).measured == 0


def test_evidence_is_cut_and_in_the_order_of_the_records() -> None:
    check = judged(*bandwidths(*[0.5] * 30))
    assert check.evidence == [f"t/a/b/0/{n}#65536" for n in range(1, 21)]


@pytest.mark.parametrize(
    ("severity", "counts", "status"),
    [
        ("required", {"judged": 3, "unknown": 1, "broken": 0}, "inconclusive"),
        ("required", {"judged": 0, "unknown": 1, "broken": 0}, "inconclusive"),
        ("advisory", {"judged": 0, "unknown": 1, "broken": 0}, "not_judged"),
        ("advisory", {"judged": 3, "unknown": 1, "broken": 0}, "pass"),
        ("advisory", {"judged": 1, "unknown": 0, "broken": 1}, "advisory"),
        ("required", {"judged": 1, "unknown": 0, "broken": 1}, "fail"),
        ("required", {"judged": 0, "unknown": 0, "broken": 0}, "not_judged"),
    ],
)
def test_a_required_limit_whose_figure_is_missing_cannot_pass(
    severity: str, counts: dict[str, int], status: str
) -> None:
    assert status_of(limit(severity=severity), **counts) == status


def test_a_missing_figure_is_counted_in_words() -> None:
    check = judged(*bandwidths(5, None))
    assert (check.status, check.measured) == (
        "inconclusive", "1 of 2 records in scope lack it")  # fmt: skip
    assert judged(*bandwidths(None)).measured == "not reported by 1 record in scope"


def test_only_records_with_status_ok_are_held_to_limits() -> None:
    slow = record("t/a/b/0/2", status="error", error={"code": 6}, bandwidth={"gbit_s": 0.1})
    assert judged(*bandwidths(5), slow).status == "pass"


def test_a_stall_is_told_with_its_time() -> None:
    stall = {"longest_s": 2, "start_s": 1, "began": "2026-01-01T00:00:00Z"}
    check = judged(record(stall=stall), metric="derived.stall_s", bound={"max": 1}, unit="s")
    assert check.evidence == ["t/a/b/0/1#65536 at 2026-01-01T00:00:00Z"]


def test_limits_stand_by_their_first_record_then_those_without_one() -> None:
    records = [*bandwidths(5), record("lat/a/b/0/1", **LATENCY), record("t2/a/b/0/1", **FAST)]
    limits = [
        limit(id="idle", scope={"backend": "verbs"}),
        limit(id="bw"),
        limit(id="lat", metric="latency_us.p50", bound={"max": 9}),
    ]
    assert list(found(run_of(records, *limits), "limit")) == [
        "limit/bw/t", "limit/lat/t", "limit/bw/lat", "limit/lat/lat", "limit/bw/t2", "limit/lat/t2",
        "limit/idle",
    ]  # fmt: skip


def test_limits_of_agreement_and_of_soaks_are_judged_elsewhere() -> None:
    limits = [limit(id="x", metric="agreement.gbit_s"), limit(id="y", metric="soak.gaps")]
    assert found(run_of(bandwidths(5), *limits), "limit") == {}


def test_the_verdict_shows_what_a_site_has_replaced_and_removed() -> None:
    removed = Removed("site.yml", "site policy: no small messages here")
    was = {"from": "local.yml", "severity": "required", "bound": {"min": 1}, "source": "x"}
    checks = found(
        run_of(
            bandwidths(5),
            limit(id="gone", removed={"file": removed.file, "source": removed.source},
                  **{"from": "local.yml"}),
            limit(id="ours", replaces=was, **{"from": "site.yml"}),
        ),
        "limit",
    )  # fmt: skip
    gone, ours = checks["limit/gone"], checks["limit/ours/t"]
    assert (gone.status, gone.measured) == (
        "not_judged", "removed by the site (site.yml): site policy: no small messages here",
    )  # fmt: skip
    assert gone.source == "site policy (required, of local.yml)"
    assert ours.source == (
        "site policy (the site's site.yml, in place of required min 1 of local.yml)"
    )


@pytest.mark.parametrize(
    ("limits", "fault", "measured"),
    [
        ([], "inputs/limits.json is damaged", "inputs/limits.json is damaged"),
        ([], "", "no required limit judged any record"),
        ([limit(severity="advisory")], "", "no required limit judged any record"),
        ([limit(metric="latency_us.p50")], "", "no required limit judged any record"),
        ([limit()], "", None),
    ],
)
def test_a_run_without_a_required_limit_that_judged_a_record_is_no_pass(
    limits: list[Any], fault: str, measured: str | None
) -> None:
    run = run_of(bandwidths(5), *limits)
    checks = found(dataclasses.replace(run, limits=Limits(tuple(limits), fault)), "limits")
    assert [one.measured for one in checks.values()] == ([] if measured is None else [measured])
    assert {one.status for one in checks.values()} <= {"inconclusive"}


# ---- shares --------------------------------------------------------------------------------------

CARD: dict[str, Any] = {"scope": "hardware", "backend": "verbs", "connection": "rc"}
LINK = {"layer": "roce", "mtu_bytes": 4096, "rate_gbit_s": 100}
SHARE: dict[str, Any] = {"bound": {"min": 0.9, "of": "ceiling"}, "unit": "of the ceiling"}


def test_a_share_of_the_ceiling_is_kept_or_missed_on_either_side() -> None:
    one = record(link=LINK, bandwidth={"gbit_s": 88.2}, **CARD)
    check = judged(one, **SHARE)
    assert (check.status, round(float(check.measured or 0), 3)) == ("fail", 0.9)
    assert judged(one, **{**SHARE, "bound": {"min": 0.89, "of": "ceiling"}}).status == "pass"
    assert judged(one, **{**SHARE, "bound": {"max": 0.5, "of": "ceiling"}}).status == "fail"


def test_an_unknown_ceiling_is_inconclusive_on_hardware_and_not_judged_elsewhere() -> None:
    link = {"layer": "roce", "mtu_bytes": 4096}
    hard = judged(record(link=link, bandwidth={"gbit_s": 88.2}, **CARD), **SHARE)
    soft = judged(record(link=link, **FAST), **SHARE)
    assert (hard.status, hard.remedy and "rate_gbit_s" in hard.remedy) == ("inconclusive", True)
    assert (soft.status, str(soft.measured)[:10]) == ("not_judged", "no ceiling")


PAIRS = list(combinations("abcde", 2))
PEERS: dict[str, Any] = {"unit": "of the median"}


def among(pairs: list[tuple[str, str]], value: float, repeats: int = 1) -> list[Record]:
    """Pairs with some 10 Gb/s, the fourth with `value`."""
    return [
        record(f"t/{a}/{b}/0/{n}", bandwidth={"gbit_s": value if place == 3 else 10 + place / 100})
        for place, (a, b) in enumerate(pairs)
        for n in range(1, repeats + 1)
    ]


@pytest.mark.parametrize(
    ("value", "bound", "evidence"),
    [
        (8, {"min": 0.9}, ["t/a/e/0/1#65536"]),
        (9.5, {"min": 0.9}, []),
        (12, {"max": 1.1}, ["t/a/e/0/1#65536"]),
    ],
)
def test_one_pair_far_from_its_like_is_outside(
    value: float, bound: dict[str, float], evidence: list[str]
) -> None:
    check = judged(*among(PAIRS, value), bound={**bound, "of": "peers"}, **PEERS)
    assert check.status == ("fail" if evidence else "pass")
    if evidence:
        assert check.evidence == evidence


def test_the_median_of_comparable_pairs_is_exact() -> None:
    check = judged(*among(PAIRS, 8), bound={"min": 0.9, "of": "peers"}, **PEERS)
    assert check.measured == pytest.approx(8 / 10.045, rel=1e-8)


@pytest.mark.parametrize("records", [among(PAIRS[:6], 8), among(PAIRS[:5], 8, repeats=2)])
def test_too_few_pairs_have_no_median_and_repeats_are_no_peers(records: list[Record]) -> None:
    check = judged(*records, bound={"min": 0.9, "of": "peers"}, **PEERS)
    assert check.status == "not_judged"
    assert str(check.measured).endswith(", and a median needs 10")


def test_both_directions_of_a_pair_are_one_pair() -> None:
    records = [*among(PAIRS[:5], 8), *among([(b, a) for a, b in PAIRS[:5]], 8)]
    check = judged(*records, bound={"min": 0.9, "of": "peers"}, **PEERS)
    assert str(check.measured).startswith("comparable pairs of hosts: 5,")


def test_only_like_records_are_peers() -> None:
    sizes = [{"params": {"size_bytes": size}} for size in (8, 65536)]
    records = [
        record(f"t/{a}/{b}/0/1", bandwidth={"gbit_s": rate}, **size)
        for a, b in PAIRS
        for size, rate in zip(sizes, (1, 10), strict=True)
    ]
    assert judged(*records, bound={"min": 0.9, "of": "peers"}, **PEERS).status == "pass"


def accepted(one: Record, value: float, **terms: str) -> Baseline:
    """A baseline whose one figure is of this record; `terms` are replaced in its text."""
    text = figures.terms(columns.frame([one]))[0]
    for old, new in terms.items():
        text = text.replace(f"{old}=", f"{old}={new}")
    key = f"{one.test}/{one.client.host}/{one.server.host}/{one.place}/bandwidth.gbit_s"
    hosts = {name: FabricHost("roce", "hardware", []) for name in "ab"}
    figure = AcceptedFigure(value, n=1, better="higher", of=0, unit="Gb/s", cv_percent=None)
    return Baseline(
        BaselineDocument(
            schema="perch.baseline/1", run="r0", created="2026-01-01T00:00:00Z",
            accepted="2026-01-01T00:00:00Z", label=None, forced=None, verdict="PASS",
            fabric=Fabric("0123456789ab", "S", "local", "software", hosts),
            terms=[text], figures={key: figure},
        )
    )  # fmt: skip


def of_baseline(one: Record, baseline: Baseline) -> Check:
    share = limit(bound={"min": 0.9, "of": "baseline"}, unit="of the baseline")
    return found(run_of([one], share, baseline=baseline), "limit")["limit/l/t"]


@pytest.mark.parametrize(("value", "status", "share"), [(10, "pass", 1), (12.5, "fail", 0.8)])
def test_a_share_of_the_accepted_runs_figure(value: float, status: str, share: float) -> None:
    one = record(**FAST)
    check = of_baseline(one, accepted(one, value))
    assert (check.status, check.measured) == (status, share)


def test_an_accepted_figure_that_is_missing_or_was_measured_otherwise_is_inconclusive() -> None:
    one = record(**FAST)
    other = of_baseline(one, accepted(one, 10, op="x"))
    assert other.status == "inconclusive"
    assert other.measured == "the accepted run r0 measured it otherwise (op: xsend and send)"
    none = of_baseline(one, accepted(record("u/a/b/0/1"), 10))
    assert none.measured == "the accepted run r0 has no such figure"
    fault = of_baseline(one, Baseline(fault="inputs/baseline.json is damaged"))
    assert (fault.status, fault.measured) == ("inconclusive", "inputs/baseline.json is damaged")
    assert fault.remedy and "make accept" in fault.remedy


def test_a_baseline_of_another_fabric_judges_nothing() -> None:
    one = record(**FAST)
    baseline = accepted(one, 100)
    assert baseline.document
    baseline.document.fabric.limits = "roce"
    check = of_baseline(one, baseline)
    assert (check.status, check.measured) == (
        "inconclusive",
        "the baseline was measured on another fabric: the limits were roce and are local",
    )


def test_a_bound_that_is_relative_shows_in_what_a_site_replaced() -> None:
    was = {"from": "roce.yml", "severity": "advisory", "source": "x",
           "bound": {"min": 0.9, "max": 2, "of": "peers"}}  # fmt: skip
    check = judged(*bandwidths(5), replaces=was, **{"from": "site.yml"})
    assert str(check.source).endswith("advisory min 0.9, max 2 of the peers of roce.yml)")
    assert check.limit == Bound(1, None)
