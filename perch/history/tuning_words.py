"""A comparison of a tuning in words, for its template and the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import msgspec

from perch.history.tuning import Tuning, counts
from perch.history.tuning_figures import BETTER, WORSE, FlowChange, Overall
from perch.model.figures import encode
from perch.model.record import Number
from perch.model.text import plural
from perch.model.tuning import Change
from perch.views import words
from perch.views.table import Table, left, right

#: A page that can still be read; tuning.json has every figure.
TABLES_MAX = 60
SIZES_MAX = 6
CHANGES_MAX = 100
#: A page of memory: there the curves bend.
_PAGE = 4096

_VERDICTS = {
    "better": "better",
    "worse": "**worse**",
    "no_effect": "no effect seen",
    "not_compared": "not compared",
}


# ---- one change ----------------------------------------------------------------------------------


def signed(value: Number | None) -> str:
    """A percentage above 1000 is not read as a number any more."""
    if value is None:
        return "-"
    if value > 1000:
        return "> +1000 %"
    return ("+" if value > 0 else "") + words.percent(value)


def interval(change: Change) -> str:
    if change.low_percent is None:
        return "-"
    return f"{signed(change.low_percent)} to {signed(change.high_percent)}"


def smallest(change: Change) -> str:
    """A gain smaller than this could not be distinguished from chance."""
    return "-" if change.smallest_percent is None else words.percent(change.smallest_percent)


def verdict(change: Change) -> str:
    """A change that Holm's correction does not confirm may be chance."""
    if change.verdict in (BETTER, WORSE) and not change.is_sure:
        return f"{change.verdict} (may be chance)"
    return _VERDICTS[change.verdict]


def _said(change: Change) -> str:
    why = "" if change.why is None else f": {change.why}"
    return words.cell(verdict(change) + why) if why else verdict(change)


def _named(one: Overall) -> str:
    if one.kind == "bandwidth":
        return "bandwidth"
    return f"{'latency' if one.kind == 'latency' else 'transfers'}, {one.metric.title}"


# ---- tables --------------------------------------------------------------------------------------


def _overall(found: Tuning) -> Table:
    columns = [
        *left("Figure"),
        *right("Flows and sizes", "Change", "95 % interval", "Smallest visible gain"),
        *left("Verdict"),
        *right("p (Holm)"),
    ]
    rows = [
        [
            _named(one),
            words.whole(one.flows),
            signed(one.change.change_percent),
            interval(one.change),
            smallest(one.change),
            _said(one.change),
            words.figure(one.change.p_holm),
        ]
        for one in found.overall
    ]
    return Table(columns, rows)


def _figure_rows(flow: FlowChange) -> Iterable[list[str]]:
    batch = "" if flow.about.batch is None else f", batch {flow.about.batch}"
    size = words.size(flow.about.size_bytes) + batch
    if flow.why is not None:
        yield [size, *["-"] * 6, words.cell(f"not compared: {flow.why}")]
    for one in flow.figures:
        sides = [
            "-" if side is None else f"{words.figure(side)} {words.unit_sign(one.metric.unit)}"
            for side in (one.untuned, one.tuned)
        ]
        change = one.change
        shown = [signed(change.change_percent), interval(change), smallest(change), _said(change)]
        yield [size, one.metric.title, *sides, *shown]


def _chosen(flows: list[FlowChange]) -> list[FlowChange]:
    """The sizes where a test's curve starts, bends and ends; else the first ones."""
    sizes = [flow.about.size_bytes for flow in flows if flow.about.size_bytes is not None]
    picked = {min(sizes), _PAGE, max(sizes)} if sizes else set()
    return ([flow for flow in flows if flow.about.size_bytes in picked] or flows)[:SIZES_MAX]


def _flow_table(flows: list[FlowChange]) -> Table:
    chosen, one = _chosen(flows), flows[0]
    columns = [
        *right("Size"),
        *left("Figure"),
        *right("Untuned", "Tuned", "Change", "95 % interval", "Smallest visible gain"),
        *left("Verdict"),
    ]
    definition = next((flow.about.definition for flow in flows if flow.about.definition), None)
    ends = f"{words.cell(one.key.client)} to {words.cell(one.key.server)}"
    return Table(
        columns,
        [row for flow in chosen for row in _figure_rows(flow)],
        more=len(flows) - len(chosen),
        title=f"{words.cell(one.title)}, {ends}",
        note=words.definition_words(definition),
    )


def _runs(found: Tuning) -> Table:
    columns = [
        *left("Run", "Phase"), *right("Repeat"), *left("Verdict"), *right("Measured"),
        *left("Remark"),
    ]  # fmt: skip
    rows = [
        [
            run.name if run.verdict is None else f"[{run.name}]({run.name}/report.md)",
            run.phase,
            str(run.repeat),
            words.cell(run.verdict),
            "-" if run.planned is None else f"{run.measured} of {run.planned}",
            words.cell(run.why),
        ]
        for run in found.runs
    ]
    return Table(columns, rows)


# ---- sentences -----------------------------------------------------------------------------------


def _headline(found: Tuning) -> str:
    sure = [
        f"{_named(one)} {signed(one.change.change_percent)} ({interval(one.change)})"
        for one in found.overall
        if one.change.is_sure and one.change.verdict in (BETTER, WORSE)
    ]
    changed = words.some(sure, 6)
    if found.result == "incomplete":
        return (
            "⚠️ **Incomplete**: measurements are missing, so the tuning cannot be judged: "
            f"{words.cell(found.gaps[0])}."
        )
    signs = {"better": "✅ **Better**", "worse": "❌ **Worse**", "mixed": "⚠️ **Mixed**"}
    if found.result in signs:
        return f"{signs[found.result]} over all flows: {changed}."
    return (
        f"➖ **No effect seen** over all flows: {plural(len(found.pairs), 'repeat')} cannot "
        "distinguish the changes from chance."
    )


def _scope(found: Tuning) -> str:
    if found.scope == "hardware":
        return "Scope: hardware. The comparison applies to these network cards and this network."
    scope = words.cell(found.scope or "unknown")
    return (
        f"**Scope: {scope}. This comparison says nothing about the speed of a network card "
        "or a network.**"
    )


def _counts(found: Tuning) -> str:
    said = {
        name: words.whole(value) if float(value).is_integer() else words.fixed(value, 1)
        for name, value in msgspec.structs.asdict(counts(found)).items()
    }
    return (
        "{compared} figures of single flows were compared: {better} better, {worse} worse, "
        "{no_effect} without an effect. {not_compared} could not be compared. Chance alone shows "
        "a change in one of twenty figures, here in about {by_chance}. Holm's correction for this "
        "leaves {sure_better} better and {sure_worse} worse."
    ).format(**said)


def _what(found: Tuning) -> str:
    title = words.cell(found.first("title") or next(iter(found.suites), "unknown"))
    hosts = words.some(found.hosts, 8)
    return (
        f"Suite *{title}*, comparison {words.code(found.name)}: {hosts}; "
        f"{plural(found.repeats, 'repeat')}, each measured untuned and tuned."
    )


def _by_text(said: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """(host, text) -> each text with the hosts that have it."""
    ordered = sorted(said, key=lambda one: (one[1], one[0]))
    return [
        (text, words.cell(words.some(sorted({host for host, _ in of}), 8)))
        for text, of in groupby(ordered, key=lambda one: one[1])
    ]


def _settings(found: Tuning) -> list[str]:
    settings = (found.asked.settings if found.asked else {}).items()
    said = [
        (host, f"{name}: {encode(value).decode()}")
        for host, of in settings
        for name, value in of.items()
    ]
    return [f"{words.code(text)} on {hosts}" for text, hosts in _by_text(said)]


def _changes(found: Tuning) -> list[str]:
    """The changes that the role reported when it tuned last."""
    changes = (found.outcome.changes if found.outcome else None) or {}
    said = [(host, text) for host, of in changes.items() for text in of]
    return [f"{words.cell(text)} ({hosts})" for text, hosts in _by_text(said)][:CHANGES_MAX]


def summary(found: Tuning) -> list[str]:
    """Lines for the terminal."""
    lines = [_headline(found), ""]
    for one in found.overall:
        why = "" if one.change.why is None else f": {one.change.why}"
        lines.append(
            f"{_named(one)}: {signed(one.change.change_percent)}, 95 % interval "
            f"{interval(one.change)}: {verdict(one.change)}{why}"
        )
    if found.gaps:
        lines += ["", *(f"missing: {gap}" for gap in found.gaps)]
    return [line.replace("**", "") for line in lines]


def view(found: Tuning) -> dict[str, Any]:
    """The texts that tuning.md.j2 places."""
    grouped = [list(of) for _, of in groupby(found.flows, key=lambda flow: flow.key[:3])]
    title = found.first("title") or next(iter(found.suites), found.name)
    document = {
        "title": f"Tuning report: {words.cell(title)}",
        "headline": _headline(found),
        "scope_line": _scope(found),
        "what_line": _what(found),
        "counts_line": _counts(found),
        "gaps": [words.cell(gap) for gap in found.gaps],
        "role": words.code((found.asked and found.asked.role) or "the tuning"),
        "settings": _settings(found),
        "changes": _changes(found),
        "overall": _overall(found),
        "runs": _runs(found),
        "flows": [_flow_table(flows) for flows in grouped[:TABLES_MAX]],
        "flows_more": max(len(grouped) - TABLES_MAX, 0),
        "pairs": len(found.pairs),
        "summary": summary(found),
    }
    built: dict[str, Any] = msgspec.to_builtins(document)
    return built
