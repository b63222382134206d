"""Lines of the engine that are looked at together, against each looked at by itself."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from perch.model.figures import encode, rounded, rounded_all
from perch.tools import perch
from perch.tools.engine_line import decoded

RECORDED = Path(__file__).parents[1] / "fixtures"
Line = dict[str, Any]

#: What a figure becomes: others, missing, near to its bounds, of many digits, and beyond a double.
CHANGES = [
    0, -1, None, 1e20, 1e31, 2**53 + 1, 0.1234567891234, 123456789012.0, "x",
    *(("times", factor) for factor in (0.5, 0.9889, 0.9989, 1.0011, 1.0111, 1.06, 3)),
]  # fmt: skip


def recorded() -> Iterator[Line]:
    """A line of each kind and backend that is in the fixtures, as the engine wrote it."""
    kinds = set()
    for file in sorted(RECORDED.glob("*/run/raw/*/flows.jsonl")):
        for text in file.read_text().splitlines():
            for printed in json.loads(text).get("stdout", "").splitlines():
                if printed.startswith('{"schema":"perch.record/1"'):
                    line = json.loads(printed)
                    kind = line["backend"], line["kind"], line["definition"]
                    if line["status"] == "ok" and kind not in kinds:
                        kinds.add(kind)
                        yield line


def places(document: Line, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from places(value, (*path, key))
        yield (*path, key)


def changed(line: Line, path: tuple[str, ...], change: object) -> Line | None:
    found = copy.deepcopy(line)
    at = found
    for key in path[:-1]:
        at = at[key]
    if isinstance(change, tuple):
        if not isinstance(at[path[-1]], int | float):
            return None
        change = at[path[-1]] * change[1]
    at[path[-1]] = change
    return found


def variants() -> Iterator[bytes]:
    """Good lines among as many that are not."""
    for line in recorded():
        for path in places(line):
            for change in CHANGES:
                one = changed(line, path, change)
                if one is not None:
                    yield json.dumps(one).encode() + b"\n"
                    yield json.dumps(line).encode() + b"\n"


def test_many_outputs_say_what_each_of_them_says(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = list(variants())
    assert len(outputs) > 4000
    monkeypatch.setattr(perch, "_usual", set())
    perch.of_many(outputs)  # learns the usual words
    looked_at: list[object] = []
    read_line = perch._read_line

    def close(read: Any, number: int) -> Any:
        looked_at.append(read)
        return read_line(read, number)

    with monkeypatch.context() as within:
        within.setattr(perch, "_read_line", close)
        many = perch.of_many(outputs)
    alone = {output: perch.parts(output.split(b"\n")) for output in set(outputs)}
    each = [alone[output] for output in outputs]
    # as they are written: 1e20 equals an integer
    assert [at for at, parts in enumerate(each) if encode(many[at]) != encode(parts)] == []
    bad = sum(part.status != "ok" for parts in each for part in parts)
    assert bad > 500
    assert bad <= len(looked_at) < len(outputs) * 0.6


@pytest.mark.parametrize(
    "figures",
    [
        {"mean": lambda one: one["max"] * 1.1},
        {"mean": lambda one: one["min"] * 0.9, "p50": lambda _: None},
    ],
)
def test_a_mean_outside_of_min_and_max_is_looked_at_closely(
    monkeypatch: pytest.MonkeyPatch, figures: dict[str, Callable[[Line], object]]
) -> None:
    """In a time so long that no other law objects."""
    monkeypatch.setattr(perch, "_usual", set())
    good = next(line for line in recorded() if line["kind"] == "latency")
    good["elapsed_s"] = 1e6
    times = {name: found(good["latency_us"]) for name, found in figures.items()}
    outputs = [
        json.dumps(line).encode()
        for line in (good, good | {"latency_us": good["latency_us"] | times}, good)
    ]
    perch.of_many(outputs)
    assert [parts[0].status for parts in perch.of_many(outputs)] == ["ok", "error", "ok"]


def test_several_lines_of_one_output_keep_their_order_and_numbers() -> None:
    good = json.dumps(next(recorded())).encode()
    outputs = [good + b"\n{\n" + good + b"\n", b"", b'{"kind":"interval"}\n' + good, good]
    each = [perch.parts(output.split(b"\n")) for output in outputs]
    assert [len(parts) for parts in each] == [3, 0, 1, 1]
    assert perch.of_many(outputs) == each
    assert perch.of_many(outputs) == each


def test_figures_are_rounded_together_as_one_by_one() -> None:
    rng = random.Random(1)
    figures = [rng.uniform(0, 10 ** rng.randint(-12, 25)) for _ in range(20000)]
    figures += [round(one, rng.randint(0, 12)) for one in figures]
    figures += [(rng.randrange(10**8, 10**9) + 0.5) * 10.0 ** rng.randint(-9, 9) for _ in figures]
    figures += [0.0, 1.0, 1e22, 1e23, 999999999.5, 99999999.95, 5e-324, 1e-15]
    together, unsure = rounded_all(np.array(figures))
    assert [
        (one, found)
        for one, found, is_unsure in zip(figures, together.tolist(), unsure.tolist(), strict=True)
        if not is_unsure and found != rounded(one)
    ] == []
    assert not unsure[:40000].mean() > 0.01
    assert np.isnan(rounded_all(np.array([np.nan]))[0]).all()


def test_a_count_above_what_a_double_holds_stays_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perch, "_usual", set())
    line = next(line for line in recorded() if line["kind"] == "bandwidth")
    outputs = []
    for count in (2**53 - 1, 2**53 + 1, 2**62 + 1):
        line["cpu"]["client_s"] = count
        outputs.append(json.dumps(line).encode())
    perch.of_many(outputs)
    found = [parts[0].cpu for parts in perch.of_many(outputs)]
    assert [one and one.client_s for one in found] == [2**53 - 1, 2**53 + 1, 2**62 + 1]
    assert decoded(outputs[1]) is not None
