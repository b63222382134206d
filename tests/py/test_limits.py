"""Documents of limits: what is wrong with them, where, and how two of them become one."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from perch.errors import PerchError
from perch.model import limit_faults, limit_files, limit_sets
from perch.model.limit_faults import Fault
from perch.model.limit_sets import LimitFile
from perch.model.limits import METRICS

LIMITS = Path(__file__).parents[2] / "reports" / "limits"

SOUND: dict[str, Any] = {
    "id": "a", "title": "A", "unit": "us", "remedy": "r", "scope": {"kind": "latency"},
    "metric": "latency_us.p50", "bound": {"max": 5}, "source": "site policy",
    "severity": "required",
}  # fmt: skip
FLOOR: dict[str, Any] = {
    **SOUND, "id": "floor", "unit": "Gb/s", "metric": "bandwidth.gbit_s", "bound": {"min": 5},
    "scope": {"op": ["write", "read"], "size_bytes": {"min": 4096}},
}  # fmt: skip
SHARE: dict[str, Any] = {
    **FLOOR, "id": "share", "unit": "of the median", "bound": {"min": 0.9, "of": "peers"},
    "scope": {"op": "write", "size_bytes": {"min": 65536}},
}  # fmt: skip


def edited(limit: dict[str, Any], edit: dict[str, Any]) -> dict[str, Any]:
    """Keys of objects within are edited one by one, as jq's `*` does."""
    made = deepcopy(limit)
    for key, value in edit.items():
        both = isinstance(value, dict) and isinstance(made.get(key), dict)
        made[key] = {**made[key], **value} if both else value
    return made


def document(*limits: Any, **more: Any) -> dict[str, Any]:
    return {"schema": "perch.limits/1", "name": "n", "title": "T", "limits": list(limits)} | more


def keys(*limits: Any) -> list[str | None]:
    return [fault.key for fault in limit_faults.run_faults(document(*limits))]


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ({}, []),
        ({"scope": {"sise": 8}}, ["scope.sise"]),
        ({"metric": "latency_us.p42"}, ["metric"]),
        ({"metric": None}, ["metric"]),
        ({"bound": {"maximum": 2}}, ["bound.maximum"]),
        ({"bound": {"min": 6}}, ["bound"]),
        ({"bound": {"max": "5"}}, ["bound.max", "bound"]),
        ({"bound": {"max": float("inf")}}, ["bound.max", "bound"]),
        ({"bound": {"max": float("nan")}}, ["bound.max", "bound"]),
        ({"bound": {"max": -1e300}}, ["bound.max"]),
        ({"bound": 5}, ["bound"]),
        ({"bound": {"min": 0}}, []),  # and at most 5
        ({"unit": "ms"}, ["unit"]),
        ({"unit": "us, half a round trip"}, []),
        ({"sevrity": "required"}, ["sevrity"]),
        ({"severity": "hard"}, ["severity"]),
        ({"source": ""}, ["source"]),
        ({"scope": None}, ["scope"]),
        ({"scope": {"op": []}}, ["scope.op"]),
        ({"scope": {"op": "sned"}}, ["scope.op"]),
        ({"scope": {"memory": "cuda"}}, ["scope.memory"]),
        ({"scope": {"op": ["send", ["read"]]}}, ["scope.op"]),
        ({"scope": {"size_bytes": {"min": 9, "max": 8}}}, ["scope.size_bytes"]),
        ({"scope": {"size_bytes": {"least": 9}}}, ["scope.size_bytes.least"]),
        ({"scope": {"size_bytes": {}}}, ["scope.size_bytes"]),
        ({"scope": {"size_bytes": "64K"}}, ["scope.size_bytes"]),
        ({"scope": {"size_bytes": -1}}, ["scope.size_bytes"]),
        ({"scope": {"bidirectional": "no"}}, ["scope.bidirectional"]),
        ({"scope": {"client": 7}}, ["scope.client"]),
        ({"scope": {"kind": "bandwidth"}}, ["scope.kind"]),
        ({"scope": {"hop_class": "same_rack"}}, ["scope.hop_class"]),
        ({"id": "a b"}, ["id"]),
        ({"title": " "}, ["title"]),
        ({"removed": {"file": "x"}}, ["removed"]),
        ({"removed": "x"}, ["removed"]),
        ({"metric": "soak.p99_us", "scope": {"layer": "roce"}}, ["scope.layer"]),
        ({"metric": "soak.p99_us", "bound": {"of": "peers"}, "unit": "of the median"},
         ["bound.of", "bound.of", "bound.of"]),
    ],
)  # fmt: skip
def test_each_fault_of_a_limit_is_named_by_its_key(edit: dict[str, Any], named: list[str]) -> None:
    assert keys(edited(SOUND, edit)) == named


@pytest.mark.parametrize(
    ("end", "says"),
    [
        ("1e300", 'not a number: YAML reads "1e300" as text; write such as 90 or 1.0e+3'),
        ("ten", "not a number"),
        (None, "not a number"),
    ],
)
def test_a_number_that_yaml_reads_as_text_is_named(end: object, says: str) -> None:
    limit = edited(SOUND, {"bound": {"max": end}})
    found = [one.says for one in limit_faults.run_faults(document(limit))]
    assert says in found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("least", [0, -5, 1e-9])
def test_a_bound_that_every_figure_meets_is_a_fault(metric: str, least: float) -> None:
    limit = {"id": "a", "metric": metric, "bound": {"min": least}}
    found = [one.says for one in limit_faults.run_faults(document(limit)) if one.key == "bound.min"]
    changes = metric.startswith("soak.") and metric.endswith(("_percent", "_per_hour"))
    hollow = least <= 0 and not changes
    assert found == [f"every figure meets it, as no {metric} is below 0"] * hollow


def test_an_unknown_metric_names_the_nearest_valid_one() -> None:
    [fault] = limit_faults.run_faults(document({**SOUND, "metric": "latency_us.p98"}))
    assert str(fault) == (
        'limit "a", metric: no record has "latency_us.p98", did you mean \'latency_us.p99\'?'
    )


def test_a_message_shows_no_control_character() -> None:
    [fault] = limit_faults.run_faults(document({**SOUND, "metric": "x\x1b[2J"}))
    assert "\x1b" not in str(fault)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_known_to_the_checker(metric: str) -> None:
    assert "metric" not in keys({**SOUND, "metric": metric, "scope": {}, "unit": "x"})


def test_what_is_wrong_with_a_document_is_said_once() -> None:
    assert [str(one) for one in limit_faults.run_faults([])] == ["not a perch.limits/1 document"]
    old = document(SOUND, schema="perch.limits/2")
    assert [str(one) for one in limit_faults.run_faults(old)] == [
        'schema: "perch.limits/2" is not perch.limits/1'
    ]
    assert [one.key for one in limit_faults.run_faults(document())] == ["limits"]
    assert {one.limit for one in limit_faults.run_faults(document(3, {}))} == {
        "number 1", "number 2"}  # fmt: skip
    assert [one.key for one in limit_faults.run_faults(document(SOUND, more=1))] == ["more"]


def test_two_limits_with_one_id_are_named() -> None:
    faults = list(limit_faults.run_faults(document(SOUND, SOUND)))
    assert [str(one) for one in faults] == ['limit "a", id: 2 limits have this id']


# ---- relative bounds and their partners ----------------------------------------------------------


@pytest.mark.parametrize(
    ("partner", "faults"),
    [
        ({}, 0),
        ({"severity": "advisory"}, 1),
        ({"scope": {"op": "read"}}, 1),
        ({"scope": {"kind": "bandwidth"}}, 1),
        ({"scope": {"size_bytes": {"max": 1048576}}}, 1),
        ({"bound": {"max": 9}}, 1),
        ({"metric": "bandwidth.messages_per_s"}, 1),
        ({"removed": {"file": "f", "source": "s"}}, 1),
        ({"bound": {"min": 0.5, "of": "peers"}, "unit": "of the median"}, 2),
        # a share of what was bought is no relation to a fabric that may be bad everywhere
        ({"bound": {"min": 0.5, "of": "ceiling"}, "unit": "of the ceiling"}, 0),
    ],
)
def test_a_relative_bound_needs_an_absolute_one_that_covers_its_scope(
    partner: dict[str, Any], faults: int
) -> None:
    scope = {**FLOOR["scope"], **partner.get("scope", {})}
    found = keys(SHARE, {**FLOOR, **partner, "scope": scope})
    assert found == ["bound.of"] * faults


def test_a_scope_of_texts_where_numbers_belong_is_a_fault_and_no_crash() -> None:
    assert "scope.size_bytes" in keys(SHARE, {**FLOOR, "scope": {"size_bytes": "64K"}})
    assert "scope.size_bytes" in keys({**SHARE, "scope": {"size_bytes": [None]}}, FLOOR)


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        ({}, []),
        ({"bound": {"min": 1.2}}, ["bound.min", "bound"]),
        ({"metric": "latency_us.p50"}, ["bound.of"]),
        ({"bound": {"of": "sky"}}, ["bound.of", "bound.of"]),
        ({"unit": "of the median"}, ["unit"]),
        ({"bound": {"max": 0}}, ["bound"]),
        ({"metric": "derived.loss_ppm", "bound": {"of": "baseline"}, "unit": "of the baseline"},
         ["bound.of", "bound.of"]),
    ],
)  # fmt: skip
def test_a_share_has_a_figure_that_can_have_one(edit: dict[str, Any], named: list[str]) -> None:
    of_ceiling = {"max": 1, "of": "ceiling"}
    share = {**SHARE, "scope": {}, "bound": of_ceiling, "unit": "of the ceiling"}
    assert sorted(map(str, keys(SOUND, edited(share, edit)))) == sorted(named)


# ---- where it stands -----------------------------------------------------------------------------

TEXT = (
    "schema: perch.limits/1\nname: x\nlimits:\n  - id: a\n    remedy: r\n"
    "  - id: b\n    bound: {maximum: 3}\n"
)


def test_an_id_that_yaml_reads_as_another_type_is_shown_as_that() -> None:
    document = yaml.safe_load("{schema: perch.limits/1, limits: [{id: no}, {id: 12}]}")
    found = [one.says for one in limit_faults.run_faults(document) if one.key == "id"]
    assert found == [f"YAML reads it as {word}: put it in quotes" for word in ("false", "12")]


@pytest.mark.parametrize(
    ("limit", "key", "line"),
    [
        ("b", "bound.maximum", 7),
        ("b", "remedy", 6),
        ("a", "id", 4),
        ("c", "id", None),
        (None, "name", 2),
        ("number 2", "id", 6),
        ("number 2", "bound.maximum", 7),
        ("number 3", "id", None),
    ],
)
def test_the_line_is_that_of_the_key_else_that_of_the_limit(
    limit: str | None, key: str, line: int | None
) -> None:
    assert limit_faults.line_of(Fault(limit, key, ""), TEXT) == line


def test_a_limit_without_an_id_has_no_line_where_another_set_comes_first() -> None:
    fault = Fault("number 2", "id", "")
    assert limit_faults.line_of(fault, f"extends: other.yml\n{TEXT}") is None


def test_a_fault_is_shown_with_the_folder_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    path.write_text(TEXT)
    with pytest.raises(PerchError) as error:
        limit_sets.merged(limit_files.read(path), None)
    assert f'{path}:4: limit "a", title: no title' in str(error.value)


# ---- two files -----------------------------------------------------------------------------------


def file(name: str, *limits: Any) -> LimitFile:
    made = document(*limits)
    return LimitFile(Path(name), yaml.safe_dump(made, sort_keys=False), made)


def built_in(name: str) -> LimitFile:
    return limit_files.read(LIMITS / f"{name}.yml")


@pytest.mark.parametrize("name", sorted(path.stem for path in LIMITS.glob("*.yml")))
def test_every_built_in_set_is_sound_alone(name: str) -> None:
    made = limit_sets.merged(built_in(name), None)
    assert {limit["from"] for limit in made["limits"]} == {f"{name}.yml"}


@pytest.mark.parametrize("name", sorted(path.stem for path in LIMITS.glob("*.yml")))
def test_a_title_is_a_claim_that_a_figure_can_meet(name: str) -> None:
    verb = re.compile(r"\b(stays?|reaches|is|takes|agree|varies|retransmit|are lost|arrive)\b")
    titles = [limit["title"] for limit in built_in(name).document["limits"]]
    assert titles and [title for title in titles if not verb.search(title)] == []


def test_a_set_that_extends_another_changes_the_keys_of_its_entries() -> None:
    wide, own = built_in("roce").document, built_in("roce-800").document
    assert (own["name"], sorted(own)) == ("roce-800", ["limits", "name", "schema", "title"])
    assert [one["id"] for one in own["limits"]] == [one["id"] for one in wide["limits"]]
    changed = {
        one["id"]: sorted(key for key in one if one[key] != was[key])
        for one, was in zip(own["limits"], wide["limits"], strict=True)
        if one != was
    }
    assert changed["small-message-median-same-group"] == ["bound", "source"]
    assert len(changed) == 4


def test_levels_that_would_end_the_process_are_refused_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "deep.yml"
    for levels, says in (
        (limit_files.DEEPEST - 1, None),
        (limit_files.DEEPEST, "deep.yml, line 2: it has more than 64 levels of lists and objects"),
        (50_000, "deep.yml, line 2: it has more than 64 levels of lists and objects"),
    ):
        file.write_text(f"schema: perch.limits/1\nlimits: {'[' * levels}{']' * levels}\n")
        if says is None:
            assert limit_files.read(file).document["schema"] == "perch.limits/1"
            continue
        with pytest.raises(PerchError) as error:
            limit_files.read(file)
        assert says in str(error.value)


@pytest.mark.parametrize("lines", ["limits: &a\n  - *a", "a: &a [1, 2]\nlimits: [*a, *a]"])
def test_an_alias_is_refused_with_its_line(tmp_path: Path, lines: str) -> None:
    file = tmp_path / "alias.yml"
    file.write_text(f"{lines}\n")
    with pytest.raises(PerchError, match=r"alias\.yml, line 2: an alias \(\*a\); write its value"):
        limit_files.read(file)


def test_a_set_that_extends_itself_or_nothing_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yml"
    for base, says in (("mine.yml", "it extends itself"), ("no.yml", "no.yml: it cannot be read")):
        mine.write_text(f"extends: {base}\n")
        with pytest.raises(PerchError, match=says):
            limit_files.read(mine)
    (tmp_path / "no.yml").write_text("[3]")
    assert limit_files.read(mine).document == {"limits": []}


@pytest.mark.parametrize(
    ("fabric", "gbit_s", "name"),
    [
        ("roce", 25, "roce-100"), ("roce", 100, "roce-100"), ("roce", 200, "roce-200"),
        ("roce", 400, "roce-400"), ("roce", 800, "roce-800"), ("infiniband", 200, "ib-hdr"),
        ("infiniband", 400, "ib-ndr"), ("infiniband", 800, "ib-xdr"),
        ("slingshot", 200, "slingshot-200"), ("slingshot", 400, "slingshot-400"),
        ("roce", 1600, None), ("ethernet", 100, None),
    ],
)  # fmt: skip
def test_each_rate_of_a_fabric_has_one_set(fabric: str, gbit_s: float, name: str | None) -> None:
    sets = limit_files.rate_sets(LIMITS)
    assert [one.name for one in sets if one.takes(fabric, gbit_s)] == ([name] if name else [])


def test_a_sites_entry_replaces_adds_or_removes_and_the_run_says_where_each_came_from() -> None:
    ours = {**SOUND, "bound": {"max": 3}, "source": "site policy: ours"}
    removal = {"id": "floor", "severity": "removed", "source": "site policy: why"}
    made = limit_sets.merged(
        file("set.yml", SOUND, FLOOR), file("site.yml", ours, {**SOUND, "id": "new"}, removal)
    )
    a, floor, new = made["limits"]
    assert made["files"] == ["set.yml", "site.yml"]
    assert (a["from"], a["bound"], a["replaces"]["from"]) == ("site.yml", {"max": 3}, "set.yml")
    assert a["replaces"]["bound"] == {"max": 5}
    assert floor["removed"] == {"file": "site.yml", "source": "site policy: why"}
    assert (floor["from"], floor["severity"]) == ("set.yml", "required")
    assert (new["id"], new["from"]) == ("new", "site.yml")
    limits = limit_sets.decoded(msgspec.json.encode(made))
    assert limits.fault == ""
    assert [limit.file for limit in limits.limits] == ["site.yml", "set.yml", "site.yml"]


REMOVED = {"id": "a", "severity": "removed", "source": "s"}


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([{**REMOVED, "id": "b"}], "removes nothing: set.yml has no limit with this id"),
        ([{**REMOVED, "source": " "}], 'limit "a", source: no source'),
        ([{**REMOVED, "unit": "us"}], "a removal has id, severity and source only"),
        ([REMOVED, REMOVED], "2 entries remove it"),
        ([REMOVED, SOUND], "it is both removed and given"),
        ([{**REMOVED, "id": ["a"]}], "removes nothing"),
        ([{**SOUND, "unit": "ms"}], 'site.yml:7: limit "a", unit: "ms" is not the unit'),
        ([{**FLOOR, "bound": {"min": 2, "maxi": 3}}], 'limit "floor", bound.maxi: unknown'),
    ],
)
def test_a_sites_file_that_is_wrong_is_refused_with_file_and_key(
    entries: list[Any], says: str
) -> None:
    with pytest.raises(PerchError) as error:
        limit_sets.merged(file("set.yml", SOUND), file("site.yml", *entries))
    assert says in str(error.value)
    assert "site.yml" in str(error.value)


def test_a_site_cannot_remove_what_a_relative_limit_leans_on() -> None:
    removal = {"id": "floor", "severity": "removed", "source": "s"}
    with pytest.raises(PerchError, match="no required absolute limit of"):
        limit_sets.merged(file("set.yml", FLOOR, SHARE), file("site.yml", removal))


# ---- inputs/limits.json --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "inputs/limits.json is missing or cannot be read"),
        (b"", "inputs/limits.json is damaged: "),
        (b'{"limits":', "inputs/limits.json is damaged: "),
        (b"{}{}", "inputs/limits.json is damaged: "),
        (b"\xff", "inputs/limits.json is damaged: "),
        (b"[1e999]", "inputs/limits.json is damaged: "),
        (b"[]", "inputs/limits.json: not a perch.limits/1 document"),
        (b'{"schema": "perch.limits/1", "limits": [3]}',
         'inputs/limits.json: limit "number 1": a limit is an object with keys'),
    ],
)  # fmt: skip
def test_limits_of_a_run_that_cannot_be_used_say_why(content: bytes | None, says: str) -> None:
    limits = limit_sets.decoded(content)
    assert limits.fault.startswith(says)
    assert limits.limits == ()


def test_limits_of_a_run_that_are_wrong_name_line_and_key() -> None:
    made = msgspec.json.format(msgspec.json.encode(document(edited(SOUND, {"bound": {"mux": 3}}))))
    assert 'inputs/limits.json:17: limit "a", bound.mux: unknown' in limit_sets.decoded(made).fault


def test_what_merging_adds_is_decoded_or_refused_and_no_crash() -> None:
    wrong = {**SOUND, "replaces": {"from": 3}}
    assert "limits.json" in limit_sets.decoded(msgspec.json.encode(document(wrong))).fault
