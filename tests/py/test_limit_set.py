"""The limits of a run are those of the set that its plan names, or a site says what it changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from perch.model import limit_sets
from perch.model.json_keys import repeated_key
from perch.model.limit_files import SETS
from perch.model.limit_sets import LimitFile
from perch.model.verdict import Verdict
from perch.run import judging
from tests.py.conftest import Ended
from tests.py.judging import Change, Document, Run, check_of, put, status

LIMITS = "inputs/limits.json"
Perchctl = Callable[..., Ended]


@pytest.fixture
def run(run_copy: Callable[[str], Path]) -> Run:
    """The run, with the set that it names as it is now."""
    made = Run(run_copy("loopback"))
    (made.root / LIMITS).write_text(json.dumps(limit_sets.merged(shipped(), None)))
    return made


def shipped() -> LimitFile:
    text = (SETS / "local.yml").read_text()
    return LimitFile(Path("local.yml"), text, yaml.safe_load(text))


def of(name: str, *changes: Change) -> Change:
    """Changes one limit."""

    def change(document: Document) -> None:
        for limit in document["limits"]:
            if limit["id"] == name:
                for one in changes:
                    one(limit)

    return change


def without(name: str) -> Change:
    def change(document: Document) -> None:
        document["limits"] = [one for one in document["limits"] if one["id"] != name]

    return change


def test_the_verdict_names_the_set_and_the_digest_of_its_limits(run: Run) -> None:
    found = check_of(run.judge(), "limits/set")
    digest = hashlib.sha256((run.root / LIMITS).read_bytes()).hexdigest()
    assert found.status == "pass"
    assert found.measured == (
        f"set 'local' of this version; inputs/limits.json has SHA-256 {digest}"
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            of("small-message-mean", put("bound.max", 500000)),
            "less than the set 'local' of this version: small-message-mean has max 500000 in place "
            "of max 20000",
        ),
        (of("small-message-mean", put("severity", "advisory")), "is advisory, not required"),
        (of("small-message-mean", put("scope.size_bytes", 1)), "has another scope"),
        (without("small-message-mean"), "small-message-mean is missing"),
        (put("name", "roce"), "the plan names the set 'local', its limits are of 'roce'"),
        (
            of(
                "small-message-mean",
                put("bound.max", 500000),
                put("from", "site.yml"),
                put(
                    "replaces",
                    {"from": "local.yml", "severity": "required", "bound": {"max": 4000},
                     "source": "s"},
                ),
            ),
            "small-message-mean replaces required max 4000, which the set does not have",
        ),
    ],
)  # fmt: skip
def test_limits_that_ask_less_than_their_set_are_inconclusive(
    run: Run, change: Change, says: str
) -> None:
    run.edit(LIMITS, change)
    verdict = run.judge()
    found = check_of(verdict, "limits/set")
    assert (verdict.verdict, found.status) == ("INCONCLUSIVE", "inconclusive")
    assert says in str(found.measured)
    assert "plan_limits_site" in str(found.remedy)


def test_an_advisory_limit_that_is_missing_is_a_warning(run: Run) -> None:
    run.edit(LIMITS, without("small-message-tail"))
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "limits/set")) == ("PASS", "advisory")


def test_stricter_limits_of_the_same_set_still_judge(run: Run) -> None:
    run.edit(LIMITS, of("small-message-mean", put("bound.max", 19999)))
    assert status(run.judge(), "limits/set") == "pass"


def own_limit(name: str) -> Document:
    found: Document = next(one for one in shipped().document["limits"] if one["id"] == name)
    return found


def of_site(run: Run, *entries: Document) -> Verdict:
    """The verdict by the set with the entries of a site's file."""
    site = {"schema": "perch.limits/1", "name": "ours", "title": "Ours", "limits": list(entries)}
    made = limit_sets.merged(shipped(), LimitFile(Path("site.yml"), json.dumps(site), site))
    (run.root / LIMITS).write_text(json.dumps(made))
    return run.judge()


def removed(name: str) -> Document:
    return {"id": name, "severity": "removed", "source": "site policy"}


def test_a_site_that_says_what_it_changed_passes_and_is_counted(run: Run) -> None:
    own = own_limit("small-message-mean")
    verdict = of_site(
        run,
        {**own, "bound": {"max": 19999}, "source": "site policy: fast machines"},
        {"id": "small-message-tail", "severity": "removed", "source": "site policy: no tail"},
    )
    found = check_of(verdict, "limits/set")
    assert (verdict.verdict, found.status) == ("PASS", "pass")
    assert "1 limit replaced by the site, 1 limit removed by the site" in str(found.measured)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (
            {"bound": {"max": 500000}},
            "1 required limit weakened; small-message-mean has max 500000 in place of max 20000;",
        ),
        ({"severity": "advisory"}, "small-message-mean is advisory, not required;"),
        ({"scope": {"kind": "latency", "size_bytes": 1}}, "has another scope;"),
    ],
)
def test_a_required_limit_that_the_site_weakens_is_a_warning(
    run: Run, entry: Document, says: str
) -> None:
    verdict = of_site(run, {**own_limit("small-message-mean"), **entry, "source": "site policy"})
    found = check_of(verdict, "limits/set")
    assert (verdict.verdict, found.status) == ("PASS", "advisory")
    assert found.headline == "The site loosened required limits of the set"
    assert says in str(found.measured)


def test_limits_that_the_site_loosened_stand_with_the_verdict(run: Run, perchctl: Perchctl) -> None:
    verdict = of_site(
        run,
        removed("small-message-mean"),
        removed("iperf-bandwidth"),
        {**own_limit("large-message-bandwidth"), "bound": {"min": 1e-6}, "source": "site policy"},
    )
    less = "loosened by the site: 2 required limits removed, 1 weakened"
    assert verdict.verdict == "PASS"
    assert str(check_of(verdict, "limits/set").measured).startswith(f"{less}; ")
    assert judging.line(verdict).endswith(f"; limits {less}")
    perchctl("judge", run.root)
    perchctl("report", run.root)
    first = (run.root / "report.md").read_text().partition("**First findings**")[0]
    assert f"no required limit was missed; **limits {less}**." in first
    assert f"limits *local*, {less}." in first
    assert f"Limits: local, {less}\n" in perchctl("summary", run.root).stdout


def test_a_wider_stricter_or_renamed_limit_of_the_site_loosens_nothing(run: Run) -> None:
    own = own_limit("small-message-mean")
    wider = {name: wanted for name, wanted in own["scope"].items() if name != "size_bytes"}
    verdict = of_site(
        run,
        {**own, "id": "ours", "scope": wider, "bound": {"max": 19999}, "source": "site policy"},
        removed("small-message-mean"),
    )
    assert status(verdict, "limits/set") == "pass"


def test_a_set_of_the_sites_own_is_named_as_such(run: Run) -> None:
    run.edit("plan.json", put("limits", "own"))
    run.edit(LIMITS, put("name", "own"), of("small-message-mean", put("bound.max", 500000)))
    found = check_of(run.judge(), "limits/set")
    assert found.status == "not_judged"
    assert "'own' is a set of the site's own" in str(found.measured)


# ---- what JSON lets pass -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (b'{"a": 1, "b": {"a": 2}}', None),
        (b'{"a": 1, "b": {"c": 2, "c": 3}}', "c"),
        (b'[{"a": 1, "a": 1}]', "a"),
        (b'{"a": 1, "a" : 1}', "a"),
        (b'{"a": "", "a": "\\u003a"}', "a"),
        (b'{"a:b": "c:d\\u00e9"}', None),
        (b'{"a', None),
        (b"5", None),
    ],
)
def test_a_key_that_is_there_twice_is_found(text: bytes, key: str | None) -> None:
    assert repeated_key(text) == key


def repeat(path: Path, key: str, value: str) -> None:
    """Writes a key of the document twice: first with another value, which a reader sees."""
    text = path.read_text()
    assert f'"{key}":' in text
    path.write_text(text.replace(f'"{key}":', f'"{key}": {value}, "{key}":', 1))


@pytest.mark.parametrize(
    ("file", "key", "value", "check"),
    [
        ("plan.json", "limits", '"roce"', "plan"),
        (LIMITS, "bound", "null", "limits"),
        ("tcp-latency", "latency_us", "null", "coverage"),
    ],
)
def test_what_has_a_key_twice_is_not_judged_by_its_last_value(
    run: Run, file: str, key: str, value: str, check: str
) -> None:
    if file == "tcp-latency":
        end = run.flow(file)
        end.write(end.read().replace(f'"{key}":', f'"{key}": {value}, "{key}":', 1))
    else:
        repeat(run.root / file, key, value)
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, check)) == ("INCONCLUSIVE", "inconclusive")
    assert any(f"the key '{key}' twice" in str(one.measured) for one in verdict.checks)


def test_iperf3_may_write_keys_twice(run: Run) -> None:
    end = run.flow("iperf3")
    end.write(end.read().replace('"start":', '"title": "a", "title": "b", "start":', 1))
    assert run.judge().verdict == "PASS"


@pytest.mark.parametrize("text", ["NaN", "1\x00", "\x001", "1e400", "Infinity"])
def test_a_bound_that_is_no_number_is_no_bound(run: Run, text: str) -> None:
    file = run.root / LIMITS
    file.write_text(file.read_text().replace('"max": 20000', f'"max": {text}', 1))
    verdict = run.judge()
    assert (verdict.verdict, status(verdict, "limits")) == ("INCONCLUSIVE", "inconclusive")


def test_a_manifest_with_two_digests_of_a_file_is_no_manifest(run: Run, perchctl: Perchctl) -> None:
    perchctl("seal", run.root)
    manifest = run.root / "raw/manifest.sha256"
    manifest.write_text(f"{'0' * 64}  plan.json\n" + manifest.read_text())
    assert status(run.judge(), "manifest/line") == "inconclusive"
