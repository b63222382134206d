"""The engine beside perftest and HPE's cxi tools: do two tools agree on the same question?

Only flows with the same ends, operation, size, definition and settings are compared. Whether they
agree is said by a limit whose metric begins with `agreement.`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import polars as pl

from perch.checks import RunView, check, design, first
from perch.model.figures import encode, median, ratio, rounded, supports
from perch.model.limits import FACETS, Limit, fits
from perch.model.record import ROLES
from perch.model.verdict import Bound, Check
from perch.tools import atomics

#: The largest write that goes as a high-rate put (HewlettPackard/shs-libcxi, man/cxi_write_bw.1.md,
#: --no-hrp).
HRP_BYTES = 2048

#: Of two latencies so much is the placement of processes and the clock (two readings of 20 to 40 ns
#: an iteration; a core's migration or its sibling 0.2 to 0.6 us), whatever the share is: site
#: policy, the middle of that range.
ALLOWED_US = 0.3

_ATOMICS = (*atomics.OPS, "fetch-add", "compare-swap")
_WITH_PAYLOAD = ("send", "send-imm", "write", "write-imm")

#: Settings that must be equal where both sides state them, by the column that has them.
_SETTINGS = {
    "definition": "definition", "completion_level": "completion_level",
    "client_device": "client.device", "server_device": "server.device", "mtu": "link.mtu_bytes",
} | {
    f"{side}_{name}": f"{side}.placement.{name}"
    for side in ("client", "server")
    for name in ("node", "memory_node")
} | {
    name: f"params.{name}"
    for name in (
        "completion", "queue_pairs", "outstanding", "batch", "cq_moderation", "inline_bytes",
        "gid_index", "srq", "rdma_cm", "relaxed_ordering", "sl", "traffic_class",
    )
} | {"memory": "memory"}  # fmt: skip
_CXI_SETTINGS = {
    name: f"params.{name}"
    for name in (
        "gap_us", "svc_id", "vni", "idc", "ll", "rdzv", "keys", "atomic_op", "atomic_type",
        "tx_memory", "rx_memory", "hrp", "unrestricted",
    )
}  # fmt: skip

_FIGURES = {
    "p50_us": "latency_us.p50", "p99_us": "latency_us.p99", "mean_us": "latency_us.mean",
    "gbit_s": "bandwidth.gbit_s",
}  # fmt: skip
_TITLES = {"p50_us": "median", "p99_us": "p99", "mean_us": "mean", "gbit_s": "bandwidth"}
_QUESTION = ("kind", "op", "connection", "client", "server", "bidirectional", "size_bytes")

#: What a peer's record must share with the engine's; the engine alone has no one to agree with.
_ASKED = ("kind", "client.host", "server.host", "rail")

COLUMNS = tuple(
    dict.fromkeys(
        (
            "id", "status", "kind", "op", "connection", "tool.name", "backend", "client.host",
            "server.host", "rail", "rails_at_once", "latency_us.count", "params.verify",
            *(f"{side}.placement.{name}" for side in ROLES for name in ("cpu", "unplaced")),
            "params.bidirectional", "params.size_bytes", "params.gap_us", "has.params.rate",
            *FACETS.values(),
            *_FIGURES.values(), *_SETTINGS.values(), *_CXI_SETTINGS.values(),
        )
    )
)  # fmt: skip


@dataclass
class Group:
    """Records of one side with equal settings.

    `question`: family, the keys of `_QUESTION`, rail.
    """

    side: str
    question: tuple[Any, ...]
    settings: dict[str, Any]
    rows: list[dict[str, Any]]

    def figure(self, metric: str) -> int | float | None:
        """The median over its records that report it."""
        values = [value for row in self.rows if (value := _value(row, metric)) is not None]
        middle = median(values)
        return None if middle is None else rounded(middle)

    @property
    def evidence(self) -> list[str]:
        return [row["id"] for row in self.rows[:2]]


def _value(row: dict[str, Any], metric: str) -> float | None:
    value: float | None = row[_FIGURES[metric]]
    if metric == "p99_us" and not supports(row["latency_us.count"] or 0, 0.99):
        return None
    return value


def _side(row: dict[str, Any]) -> str | None:
    if row["tool.name"] in ("perftest", "cxi"):
        return str(row["tool.name"])
    engine = row["tool.name"] == "perch" and row["backend"] in ("verbs", "cxi")
    return "engine" if engine else None


def _is_cxi(row: dict[str, Any]) -> bool:
    return "cxi" in (row["tool.name"], row["backend"])


def _plain(value: Any) -> Any:
    return rounded(value) if isinstance(value, float) else value


def _is_pinned(row: dict[str, Any], side: str) -> bool | None:
    """None where the record does not say."""
    if row[f"{side}.placement.cpu"] is not None:
        return True
    return None if row[f"{side}.placement.unplaced"] is None else False


def _settings(row: dict[str, Any]) -> dict[str, Any]:
    settings = {name: _plain(row[column]) for name, column in _SETTINGS.items()}
    settings |= {f"{side}_pinned": _is_pinned(row, side) for side in ROLES}
    for name, usual in (("srq", False), ("rdma_cm", False), ("cq_moderation", 1)):
        settings[name] = settings[name] or usual  # a record has only what differs from these
    if row["op"] not in _WITH_PAYLOAD:  # a read or an atomic sends no payload that could be inline
        settings["inline_bytes"] = None
    if not _is_cxi(row):
        return settings
    settings |= {name: _plain(row[column]) for name, column in _CXI_SETTINGS.items()}
    # the tools say whether it is on, the engine whether this size has it
    if (row["params.size_bytes"] or 0) > HRP_BYTES:
        settings["hrp"] = None
    # an atomic's packets are never restricted (docs/options.md), though the tools' line says so
    if row["op"] in _ATOMICS:
        settings["unrestricted"] = None
    return settings


def _comparable(records: pl.LazyFrame) -> pl.LazyFrame:
    """One message at a time or at full speed between known hosts: no transfers, no verified ones.

    Nor rails that worked together, which answer another question.

    A pause between messages is a setting of the cxi tools; with others it answers another question.
    """
    cxi = (pl.col("tool.name") == "cxi") | (pl.col("backend") == "cxi").fill_null(value=False)
    tools = pl.col("tool.name").is_in(["perftest", "cxi", "perch"])
    return records.filter(
        (pl.col("status") == "ok")
        & tools
        & (pl.col("client.host") != "unknown")
        & ~pl.col("kind").is_in(["transfer", "sum"])
        & ~pl.col("params.verify").fill_null(value=False)
        & ~pl.col("has.params.rate").fill_null(value=False)
        & pl.col("rails_at_once").is_null()
        & ((pl.col("params.gap_us").fill_null(0) <= 0) | cxi)
    )


def _ordered(values: Sequence[Any]) -> tuple[tuple[bool, Any], ...]:
    """A sort key: null before any value."""
    return tuple((value is not None, "" if value is None else value) for value in values)


def groups(records: pl.DataFrame) -> list[list[Group]]:
    """Groups by question, in the questions' order."""
    found: dict[tuple[Any, ...], Group] = {}
    comparable = _comparable(records.lazy().with_row_index("at"))
    asked = comparable.filter(pl.col("tool.name") != "perch").select(_ASKED).unique()
    answered = comparable.join(
        asked, on=_ASKED, how="semi", nulls_equal=True, maintain_order="left"
    ).select("at")  # all columns of all records would take a copy of them
    for row in records[answered.collect()["at"]].iter_rows(named=True):
        side = _side(row)
        if side is None:
            continue
        question = (
            "cxi" if _is_cxi(row) else "verbs", row["kind"], row["op"], row["connection"],
            row["client.host"], row["server.host"], row["params.bidirectional"] is True,
            row["params.size_bytes"], row["rail"],
        )  # fmt: skip
        settings = _settings(row)
        key = (question, side, encode(settings))
        found.setdefault(key, Group(side, question, settings, [])).rows.append(row)
    keys = sorted(found, key=lambda key: (_ordered(key[0]), key[1], key[2]))
    return [[found[key] for key in of] for _, of in groupby(keys, key=lambda key: key[0])]


def questions(run: RunView) -> list[list[Group]]:
    return groups(run.records)


def unlike(engine: Group, peer: Group, name: str) -> list[str]:
    """Settings in which two groups differ, in words."""
    return [
        f"{key}: engine {_shown(mine)}, {name} {_shown(other)}"
        for key, mine in engine.settings.items()
        if mine is not None and (other := peer.settings.get(key)) is not None and mine != other
    ]


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _limit(limits: Sequence[Limit], engine: Group, metric: str) -> Limit | None:
    """The limit of this pair: by what the engine's record says."""
    row = engine.rows[0]
    able = (
        limit
        for limit in limits
        if limit.metric == f"agreement.{metric}"
        and limit.removed is None
        and all(fits(wanted, row[FACETS[key]]) for key, wanted in limit.scope.items())
    )
    return next(able, None)


def _is_near(mine: float | None, other: float | None, metric: str) -> bool:
    """Whether two latencies are so close that their ratio says nothing."""
    if mine is None or other is None or not metric.endswith("_us"):
        return False
    return abs(mine - other) <= ALLOWED_US


def _state(
    limit: Limit | None, value: float | None, metric: str, *, is_near: bool
) -> dict[str, Any]:
    """What may be said of one figure of a pair."""
    if metric == "p99_us":
        return {"state": "not_judged", "reason": "tails are shown, not judged"}
    if value is None:
        return {"state": "not_judged", "reason": "one of them does not report it"}
    if limit is None:
        reason = f"the run's limits have no agreement.{metric} for it"
        return {"state": "not_judged", "reason": reason}
    low, high = limit.bound.min, limit.bound.max
    far = (low is not None and value < low) or (high is not None and value > high)
    return {"state": "disagree" if far and not is_near else "agree", "reason": None}


def _metrics(kind: str, family: str) -> list[str]:
    """The cxi tools report a mean always, percentiles only with --report-all."""
    if kind == "bandwidth":
        return ["gbit_s"]
    return ["p50_us", "p99_us", *(["mean_us"] if family == "cxi" else [])]


def _rows_of_pair(engine: Group, peer: Group, limits: Sequence[Limit]) -> Iterator[dict[str, Any]]:
    family = engine.question[0]
    differ = unlike(engine, peer, "cxi" if family == "cxi" else "perftest")
    foreign = any(words.startswith("definition: ") for words in differ)
    for metric in _metrics(engine.question[1], family):
        mine, other = engine.figure(metric), peer.figure(metric)
        value = None if differ else ratio(mine, other)
        # no limit applies to figures whose definitions differ: they are never compared
        limit = None if foreign else _limit(limits, engine, metric)
        row = dict(zip(_QUESTION, engine.question[1:-1], strict=True)) | {
            "metric": metric, "title": _TITLES[metric],
            "unit": "Gb/s" if metric == "gbit_s" else "us", "scope": engine.rows[0]["scope"],
            "definition": engine.settings["definition"], "engine": mine, "perftest": other,
            "ratio": value, "limit": limit.id if limit else None,
            "evidence": engine.evidence + peer.evidence,
        }  # fmt: skip
        if family == "cxi":
            row["peer"] = "the cxi tools"
        if differ:
            row |= {"state": "not_judged", "reason": f"not alike ({'; '.join(differ[:3])})"}
        else:
            row |= _state(limit, value, metric, is_near=_is_near(mine, other, metric))
        yield row


def rows(questions: list[list[Group]], limits: Sequence[Limit]) -> list[dict[str, Any]]:
    """Of every question that both answered: the pairs that are alike, else the least unlike one."""
    found: list[dict[str, Any]] = []
    for of in questions:
        engines = [group for group in of if group.side == "engine"]
        peers = [group for group in of if group.side != "engine"]
        pairs = [(one, other) for one in engines for other in peers]
        if not pairs:
            continue
        alike = [pair for pair in pairs if not unlike(pair[0], pair[1], "")]
        nearest = min(pairs, key=lambda pair: len(unlike(pair[0], pair[1], "")))
        for engine, peer in alike or [nearest]:
            found += _rows_of_pair(engine, peer, limits)
    return found


def _what(row: dict[str, Any]) -> str:
    both = ", both ways" if row["bidirectional"] else ""
    return f"{row['op']} {row['kind']}{both}, {row['connection'] or '-'}"


def _left_open(found: list[dict[str, Any]], limits: dict[str, Limit]) -> list[dict[str, Any]]:
    """Both answered, and a required limit could not be judged: unlike settings, or no figure."""
    return [
        row
        for row in found
        if row["state"] == "not_judged"
        and row["metric"] != "p99_us"
        and row["limit"] is not None
        and limits[row["limit"]].is_required
    ]


def _pair_check(found: list[dict[str, Any]], limits: dict[str, Limit]) -> Check:
    """Of one operation and kind: the pair that is furthest apart, as a factor."""
    one = found[0]
    both = "-both" if one["bidirectional"] else ""
    result = Check(
        id=f"agreement/{one['kind']}-{one['op'] or '-'}-{one['connection'] or '-'}{both}",
        title=f"The engine and {one.get('peer', 'perftest')} agree: {_what(one)}",
        status="not_judged",
    )
    judged = [row for row in found if row["state"] != "not_judged"]
    far = [row for row in judged if row["state"] == "disagree"]
    left = _left_open(found, limits)
    if left and not far:
        result.status, result.measured = "inconclusive", left[0]["reason"]
        result.source = design("a required limit that was not judged cannot pass")
        result.evidence = first(name for row in left for name in row["evidence"])
        result.remedy = (
            "give both tests the same settings (the reason names them) and measure again"
        )
        return result
    if not judged:
        result.measured, result.evidence = one["reason"], one["evidence"]
        result.source = design("only equal definitions and settings are compared")
        return result
    worst = max(far or judged, key=lambda row: max(row["ratio"], 1 / row["ratio"]))
    limit = limits[worst["limit"]]
    result.measured, result.unit, result.source = worst["ratio"], limit.unit, limit.source
    result.limit = Bound(limit.bound.min, limit.bound.max)
    result.status, result.evidence = "pass", worst["evidence"]
    if far:
        result.fault = f"The engine and {one.get('peer', 'perftest')} differ: {_what(one)}"
        result.status = "fail" if limit.is_required else "advisory"
        result.evidence = first(name for row in far for name in row["evidence"])
        result.remedy = limit.remedy
    return result


def _order(row: dict[str, Any]) -> tuple[tuple[bool, Any], ...]:
    return _ordered([row[key] for key in ("kind", "op", "connection", "bidirectional")])


@check(family="agreement", order=160, columns=COLUMNS)
def agreement(run: RunView) -> Iterator[Check]:
    limits = {limit.id: limit for limit in run.limits.limits}
    asked = run.once(questions)
    found = sorted(rows(asked, run.limits.limits), key=_order)
    for _, alike in groupby(found, key=_order):
        yield _pair_check(list(alike), limits)
    alone: dict[tuple[Any, Any], set[str]] = {}
    for of in asked:
        (side, *others), (_, kind, op, *_) = {group.side for group in of}, of[0].question
        if side != "engine" and not others:
            alone.setdefault((kind, op), set()).add("the cxi tools" if side == "cxi" else side)
    for (kind, op), peers in sorted(alone.items(), key=lambda item: _ordered(item[0])):
        *before, last = ["The engine", *sorted(peers)]
        yield Check(
            id=f"agreement/{kind}-{op}-alone",
            title=f"{', '.join(before)} and {last} agree: {op} {kind}",
            status="not_judged",
            measured="the engine measured none between the same hosts with the same connection "
            "and size",
            source=design("cross-checks"),
        )
