"""The registry of checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import perch.checks as registry
from perch.checks import RunView, check, families, first, names, plural
from perch.errors import PerchError
from perch.model.figures import encode
from perch.model.verdict import Check
from perch.views import readiness
from tests.py.checks_built import record, run_of


@pytest.fixture(autouse=True)
def no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    families()
    monkeypatch.setattr(registry, "_families", dict(registry._families))


def judge(run: RunView) -> Iterator[Check]:
    yield Check(id="x", title=",".join(run.records.columns), status="pass")


def test_a_family_that_another_file_has_refuses_to_load_and_both_are_named() -> None:
    with pytest.raises(PerchError) as error:
        check(family="ceiling", order=1)(judge)
    assert "'ceiling' is defined twice" in str(error.value)
    assert "perch/checks/ceiling.py" in str(error.value)
    assert __file__ in str(error.value)


def test_a_finding_that_another_check_gives_is_refused_and_both_files_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drops(run: RunView) -> Iterator[Check]:
        yield Check(id="clock/ends", title="x", status="pass")

    check(family="new", order=1, columns=("row",))(drops)
    new, clock = (registry._families[name] for name in ("new", "clock"))
    monkeypatch.setattr(registry, "families", lambda: (new, clock))
    with pytest.raises(PerchError) as error:
        registry.all_findings(run_of([record()]))
    assert "finding 'clock/ends' is given twice" in str(error.value)
    assert "perch/checks/clock.py" in str(error.value)
    assert __file__ in str(error.value)


def test_two_findings_of_one_check_with_one_id_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drops(run: RunView) -> Iterator[Check]:
        for _ in range(2):
            yield Check(id="new/drops", title="x", status="pass")

    check(family="new", order=1, columns=("row",))(drops)
    new = registry._families["new"]
    monkeypatch.setattr(registry, "families", lambda: (new,))
    with pytest.raises(PerchError) as error:
        registry.all_findings(run_of([record()]))
    assert str(error.value) == (
        f"{__file__}: finding 'new/drops' is given twice; the other is in {__file__}; "
        "rename one of them"
    )


def test_an_unknown_column_refuses_to_load_and_is_named() -> None:
    with pytest.raises(PerchError, match=r"unknown column 'latency_us\.p42'"):
        check(family="new", order=1, columns=("latency_us.p42",))(judge)


def test_a_file_of_a_check_that_is_no_python_is_named_with_its_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "half_written.py").write_text("LIMIT = 3\ndef half(:\n")
    monkeypatch.setattr(registry, "__path__", [str(tmp_path)])
    families.cache_clear()
    try:
        with pytest.raises(PerchError) as error:
            families()
    finally:
        families.cache_clear()
    place = f"{tmp_path}/half_written.py, line 2: it is not valid Python: invalid syntax"
    assert str(error.value) == f"{place}; correct the file"


def test_an_unknown_criterion_refuses_to_load_and_the_nearest_is_named() -> None:
    words = r"unknown criterion 'latencies', did you mean 'latency'\?"
    with pytest.raises(PerchError, match=words):
        check(family="new", order=1, criterion="latencies")(judge)


def test_the_criteria_of_checks_are_those_of_readiness() -> None:
    assert [one.id for one in readiness.CRITERIA] == list(registry.CRITERIA)


@pytest.mark.parametrize("name", ["mine", "newer/x"])
def test_a_finding_that_its_criterion_would_not_show_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def stray(run: RunView) -> Iterator[Check]:
        yield Check(id=name, title="x", status="pass")

    check(family="new", order=1, columns=("row",), criterion="latency")(stray)
    new = registry._families["new"]
    monkeypatch.setattr(registry, "families", lambda: (new,))
    with pytest.raises(PerchError) as error:
        registry.all_findings(run_of([record()]))
    assert str(error.value) == (
        f"{__file__}: finding '{name}' is of family 'new', whose criterion 'latency' would not "
        "show it; name it 'new', or 'new/...'"
    )


def test_a_check_sees_only_the_columns_that_it_asks_for_and_its_findings_have_its_source() -> None:
    check(family="new", order=1, columns=("row", "id"), source="a book")(judge)
    [finding] = registry._families["new"].findings(run_of([record()]))
    assert finding.title == "row,id"
    assert finding.source == "a book"


@pytest.mark.parametrize(("measured", "rounded"), [(1 / 3, 0.333333333), (79429632.0, 79429632)])
def test_a_figure_that_was_measured_is_rounded_as_every_figure_is(
    measured: float, rounded: float
) -> None:
    def figure(run: RunView) -> Iterator[Check]:
        yield Check(id="x", title="x", status="pass", measured=measured)

    check(family="new", order=1, columns=("row",))(figure)
    [finding] = registry._families["new"].findings(run_of([record()]))
    assert encode(finding.measured) == encode(rounded)


def test_families_are_in_the_order_of_a_verdict() -> None:
    known = families()
    assert [family.order for family in known] == sorted(family.order for family in known)
    assert {"limit", "ceiling", "repeatability", "counters", "clock", "shape", "retry"} <= {
        family.name for family in known
    }


def test_what_several_checks_need_is_made_once() -> None:
    run = run_of([record()])
    made = []

    def prepare(run: RunView) -> pl.DataFrame:
        made.append(run)
        return run.records

    assert run.once(prepare) is run.once(prepare)
    assert len(made) == 1


def test_lists_and_plurals_read_well() -> None:
    assert first(str(n) for n in range(30)) == [str(n) for n in range(20)]
    assert names(["a", "b", "c"], 2) == "a, b and 1 more"
    assert (plural(1, "flow"), plural(2, "flow")) == ("1 flow", "2 flows")
