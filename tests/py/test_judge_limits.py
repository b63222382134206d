"""Limits of a recorded run: wrong ones, a site's own, and bounds that are relative."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml
from selftest.runs import noise

from perch.history import baseline as history
from perch.imports.run import Given, make
from perch.model import limit_files, limit_sets
from perch.model.limit_sets import LimitFile
from perch.model.verdict import Check, Verdict
from perch.run import folder
from tests.py.cards import call_cards
from tests.py.judging import Change, Document, Run, check_of, put, status
from tests.raw_lines import End

LIMITS = "inputs/limits.json"
SETS = Path(__file__).parents[2] / "reports" / "limits"
SHARE = "limit/share/verbs-write-bandwidth"
SITE = """\
schema: perch.limits/1
name: ours
title: What we expect
limits:
  - id: iperf-bandwidth
    title: TCP bandwidth of iperf reaches the limit
    scope: {tool: [iperf3, iperf]}
    metric: bandwidth.gbit_s
    bound: {min: 2}
    unit: Gb/s
    source: "site policy: what these machines have always had"
    severity: required
    remedy: Ask Ann, who knows them
  - {id: small-message-mean, severity: removed, source: "site policy: no small messages here"}
"""


def judged(run: Run, name: str) -> Check:
    return check_of(run.judge(), name)


# ---- sets ----------------------------------------------------------------------------------------


def test_the_verdict_shows_what_a_site_has_replaced_and_removed(loopback: Run) -> None:
    text = (SETS / "local.yml").read_text()
    made = limit_sets.merged(
        LimitFile(Path("local.yml"), text, yaml.safe_load(text)),
        LimitFile(Path("site.yml"), SITE, yaml.safe_load(SITE)),
    )
    (loopback.root / LIMITS).write_text(json.dumps(made))
    verdict = loopback.judge()
    assert verdict.verdict == "PASS"
    gone = check_of(verdict, "limit/small-message-mean")
    assert (gone.status, gone.measured) == (
        "not_judged", "removed by the site (site.yml): site policy: no small messages here",
    )  # fmt: skip
    assert "required, of local.yml" in str(gone.source)
    ours = check_of(verdict, "limit/iperf-bandwidth/iperf3")
    assert (ours.status, ours.limit and ours.limit.min) == ("pass", 2)
    assert str(ours.source).endswith(
        "(the site's site.yml, in place of required min 1 of local.yml)"
    )


def remove_all(document: Document) -> None:
    for limit in document["limits"]:
        limit["removed"] = {"file": "site.yml", "source": "site policy: none"}


def test_a_run_whose_limits_are_all_removed_is_inconclusive(loopback: Run) -> None:
    loopback.edit(LIMITS, remove_all)
    verdict = loopback.judge()
    assert (verdict.verdict, status(verdict, "limits")) == ("INCONCLUSIVE", "inconclusive")


def no_source(document: Document) -> None:
    del document["limits"][1]["source"]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (put("limits.0.bound.mux", 3), 'limit "small-message-mean", bound.mux: unknown'),
        (no_source, 'limit "small-message-idle", source: no source'),
        (put("limits.0.removed", {"file": "x"}), "removed: a removal names its file"),
        (put("limits.0.metric", "latency_us.p98"), "did you mean 'latency_us.p99'?"),
    ],
)
def test_limits_that_are_wrong_are_inconclusive_with_file_and_key(
    loopback: Run, fault: Change, says: str
) -> None:
    loopback.edit(LIMITS, fault)
    verdict = loopback.judge()
    finding = check_of(verdict, "limits")
    assert (verdict.verdict, finding.status) == ("INCONCLUSIVE", "inconclusive")
    assert str(finding.measured).startswith("inputs/limits.json:")
    assert says in str(finding.measured)


@pytest.mark.parametrize("text", [None, "", "{", "{}{}", "[]"])
def test_limits_that_cannot_be_read_are_inconclusive(loopback: Run, text: str | None) -> None:
    file = loopback.root / LIMITS
    file.unlink()
    if text is not None:
        file.write_text(text)
    verdict = loopback.judge()
    assert (verdict.verdict, status(verdict, "limits")) == ("INCONCLUSIVE", "inconclusive")


# ---- shares --------------------------------------------------------------------------------------


def share(run: Run, **bound: Any) -> None:
    """One limit of the recorded Soft-RoCE write, with its absolute partner."""
    unit = {"ceiling": "of the ceiling", "baseline": "of the baseline"}[bound["of"]]
    limit = {
        "title": "Writes", "scope": {"test": "verbs-write-bandwidth"}, "severity": "required",
        "metric": "bandwidth.gbit_s", "source": "site policy: a test", "remedy": "mend this test",
    }  # fmt: skip
    floor = {**limit, "id": "floor", "unit": "Gb/s", "bound": {"min": 0.0001, "max": 1000}}
    limits = [floor, {**limit, "id": "share", "unit": unit, "bound": bound}]
    document = {"schema": "perch.limits/1", "name": "t", "title": "T", "limits": limits}
    (run.root / LIMITS).write_text(json.dumps(document))


def output(run: Run) -> End:
    return run.flow("verbs-write-bandwidth")


def bandwidth(run: Run) -> float:
    rate: float = [line for line in output(run).lines() if line.get("bandwidth")][-1]["bandwidth"][
        "gbit_s"
    ]
    return rate


def link_rate(gbit_s: float) -> Change:
    return put("link.rate_gbit_s", gbit_s)


@pytest.mark.parametrize(
    ("bound", "factor", "expected"),
    [
        ({"min": 0.9}, None, "not_judged"),
        ({"min": 0.9}, 1.05, "pass"),  # at MTU 4096 98 % of the rate is payload
        ({"min": 0.9}, 1.3, "fail"),
        ({"max": 0.5}, 1.3, "fail"),
    ],
)
def test_a_share_of_the_ceiling_is_kept_or_missed_on_either_side(
    rxe: Run, bound: dict[str, float], factor: float | None, expected: str
) -> None:
    share(rxe, **bound, of="ceiling")
    if factor is not None:
        output(rxe).prints(link_rate(bandwidth(rxe) * factor))
    assert judged(rxe, SHARE).status == expected


def interface(**keys: Any) -> Change:
    def change(document: Document) -> None:
        for one in document["interfaces"]:
            if one["name"] == "eth1":
                one.update(keys)

    return change


def test_on_hardware_an_unknown_ceiling_is_inconclusive_and_both_hosts_make_it_known(
    rxe: Run,
) -> None:
    call_cards(rxe)
    for answer in rxe.root.glob("raw/*/host_check.json"):  # which says the rate, too
        answer.unlink()
    share(rxe, min=0.9, of="ceiling")
    verdict = rxe.judge()
    assert status(verdict, SHARE) == "inconclusive"
    assert status(verdict, "ceiling/unknown") == "not_judged"
    assert "rate_gbit_s" in str(check_of(verdict, SHARE).remedy)
    rate = bandwidth(rxe)
    files = {host: rxe.root / f"raw/{host}/environment.json" for host in ("alpha", "beta")}
    for file in files.values():
        rxe.edit(file, interface(rate_gbit_s=rate * 1.05))
    assert judged(rxe, SHARE).status == "pass"
    # a virtual interface has no hardware below, and the rate that it says was invented for it
    whole = files["alpha"].read_text()
    rxe.edit(files["alpha"], interface(driver=None))
    assert judged(rxe, SHARE).status == "inconclusive"
    # one host's word is not both hosts'
    files["alpha"].write_text(whole)
    rxe.edit(files["alpha"], interface(rate_gbit_s=None))
    assert judged(rxe, SHARE).status == "inconclusive"


BASELINE = "inputs/baseline.json"


def baseline(run: Run, verdict: Verdict) -> Document:
    """What accepting this run would keep of its figures."""
    plan = folder.plan_head(run.root / folder.PLAN)
    found = history.document(
        plan, folder.frame(run.root), verdict.verdict, verdict.scope,
        id=folder.fabric_id(plan), accepted="2026-01-01T00:00:00Z",
    )  # fmt: skip
    document: Document = msgspec.to_builtins(found) | {"run": "r0"}
    return document


def test_a_share_of_the_accepted_run_without_one_is_inconclusive(rxe: Run) -> None:
    share(rxe, min=0.9, of="baseline")
    finding = judged(rxe, SHARE)
    assert finding.status == "inconclusive"
    assert "had been accepted" in str(finding.measured)
    assert "make accept" in str(finding.remedy)


def faster(document: Document) -> None:
    for figure in document["figures"].values():
        figure["value"] *= 1.2


def other_device(document: Document) -> None:
    for end in document["fabric"]["hosts"]["alpha"]["ends"]:
        end["device"] = "mlx5_0"


def other_operation(document: Document) -> None:
    document["terms"] = [one.replace("op=write", "op=send") for one in document["terms"]]


@pytest.mark.parametrize(
    ("change", "expected", "says"),
    [
        (lambda _: None, "pass", ""),
        (faster, "fail", ""),
        (
            other_device,
            "inconclusive",
            "the baseline was measured on another fabric: alpha has rxe0",
        ),
        (other_operation, "inconclusive", "measured it otherwise (op: send and write)"),
    ],
)
def test_a_share_of_the_accepted_run(rxe: Run, change: Change, expected: str, says: str) -> None:
    share(rxe, min=0.9, of="baseline")
    document = baseline(rxe, rxe.judge())
    change(document)
    (rxe.root / BASELINE).write_text(json.dumps(document))
    finding = judged(rxe, SHARE)
    assert finding.status == expected, finding
    assert says in str(finding.measured)


def test_an_accepted_run_that_is_damaged_judges_nothing(rxe: Run) -> None:
    share(rxe, min=0.9, of="baseline")
    (rxe.root / BASELINE).write_text('{"schema": "perch.base')
    finding = judged(rxe, SHARE)
    assert finding.status == "inconclusive"
    assert "baseline.json is damaged" in str(finding.measured)


# ---- tails of tools that print no percentile -----------------------------------------------------


@pytest.mark.parametrize("name", ["roce-100", "ib-hdr"])
def test_a_mean_far_above_the_median_fails_a_card_whatever_else_is_printed(
    tmp_path: Path, name: str
) -> None:
    notes = Path(__file__).parents[1] / "fixtures/import/notes.md"
    limits = msgspec.json.encode(limit_files.read(SETS / f"{name}.yml").document)
    given = [Given(notes.name, notes.read_bytes())]
    make(tmp_path / "run", given, limits_name=name, limits=limits, rate_gbit_s=None)
    verdict = Run(tmp_path / "run").judge()
    found = {
        f"{figure} {stage}": status(verdict, f"limit/latency-{figure}-spread/{stage}")
        for figure in ("mean", "deviation", "longest")
        for stage in ("Initial-Test-Untuned-System", "Final-Results-Optimized")
    }
    assert verdict.verdict == "FAIL"
    assert found == {
        "mean Initial-Test-Untuned-System": "fail",
        "mean Final-Results-Optimized": "pass",
        "deviation Initial-Test-Untuned-System": "advisory",
        "deviation Final-Results-Optimized": "pass",
        "longest Initial-Test-Untuned-System": "advisory",
        "longest Final-Results-Optimized": "pass",
    }


def one_waited(line: Document) -> None:
    """One message of the last size took a quarter of a second there and back."""
    if line["params"]["size_bytes"] == 64:
        samples = np.sort(noise.samples_of(line))
        samples[-1] = 250_000_000
        line |= noise.latency(samples)


def test_one_message_that_waited_for_a_timer_is_a_warning_on_software(loopback: Run) -> None:
    shipped = yaml.safe_load((SETS / "local.yml").read_text())
    loopback.edit(LIMITS, put("limits", shipped["limits"]))
    name = "limit/longest-message/tcp-latency"
    assert status(loopback.judge(), name) == "pass"
    loopback.flow("tcp-latency").prints(one_waited)
    verdict = loopback.judge()
    found = check_of(verdict, name)
    assert (verdict.verdict, found.status, found.measured) == ("PASS", "advisory", 125_000)
    assert [one.rpartition("#")[2] for one in found.evidence] == ["64"]
