"""JSON with a key twice in one object: a decoder takes the last, and a reader sees the first."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from perch.model.json_keys import repeated_key
from tests.py.judging import Run, check_of
from tests.py.soak_built import composed

HOST_CHECK = Path(__file__).parents[2] / "roles/host_check/files/host-check"


def twice(path: Path, key: str, value: object) -> None:
    """Puts another value before an object's first one of this key: it changes no decoded value."""
    text = path.read_text()
    name = json.dumps(key) + ":"
    assert text.count(name) > 0
    path.write_text(text.replace(name, f"{name} {json.dumps(value)}, {name}", 1))


@pytest.mark.parametrize(
    ("file", "key", "check", "said"),
    [
        ("raw/alpha/flows.jsonl", "run", "host/alpha",
         "raw/alpha/flows.jsonl has the key 'run' twice in one object"),
        ("raw/beta/environment.json", "hostname", "host/beta",
         "its environment.json has the key 'hostname' twice in one object"),
        ("raw/beta/host_check.json", "hostname", "host_check/skipped",
         "no host_check.json of this run, of 1 host: beta: raw/beta/host_check.json has the key "
         "'hostname' twice in one object"),
        ("inputs/hosts/beta.json", "wanted", "host_check/skipped",
         "no host_check.json of this run, of 1 host: beta: inputs/hosts/beta.json has the key "
         "'wanted' twice in one object"),
    ],
)  # fmt: skip
def test_a_hosts_document_with_a_key_twice_is_not_judged(
    cards: Run, file: str, key: str, check: str, said: str
) -> None:
    assert cards.judge().verdict == "PASS"
    twice(cards.root / file, key, "another")
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    found = check_of(verdict, check)
    assert (found.status, found.measured) == ("inconclusive", said)


def test_an_end_of_a_flow_with_a_key_twice_is_damaged(cards: Run) -> None:
    assert cards.judge().verdict == "PASS"
    twice(cards.root / "raw/alpha/flows.jsonl", "exit", 1)
    verdict = cards.judge()
    assert verdict.verdict == "INCONCLUSIVE"
    assert any("left no line of this flow" in str(one.measured) for one in verdict.checks)


@pytest.mark.parametrize(
    ("file", "key"),
    [("flows/load/node1/node2/0/1/client.soak", "end_s"), ("samples.jsonl", "uptime_s")],
)
def test_a_soaks_line_with_a_key_twice_is_damaged(tmp_path: Path, file: str, key: str) -> None:
    soak = composed(tmp_path / "run", "--duration 600")
    assert soak.judge() == "PASS"
    path = soak.root / "raw/node1" / file
    first, *lines = path.read_text().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if f'"{key}":' in line)
    lines[place] = lines[place].replace(f'"{key}":', f'"{key}":0,"{key}":', 1)
    path.write_text(first + "".join(lines))
    assert soak.judge() == "INCONCLUSIVE"
    assert f"it has the key '{key}' twice in one object" in "\n".join(soak.texts("damaged"))


def test_the_hosts_checks_print_no_key_twice() -> None:
    said = subprocess.run([HOST_CHECK], check=True, capture_output=True, timeout=60).stdout
    assert json.loads(said)["files"]["/proc/uptime"]
    assert repeated_key(said) is None


def test_a_document_like_a_good_one_is_looked_at_for_keys_that_differ_in_digits() -> None:
    def document(first: str, second: str, figure: int) -> bytes:
        return b'{"us":{"%s":%d,"%s":2},"data":"QUJD"}' % (first.encode(), figure, second.encode())

    assert [repeated_key(document("p50", "p99", n)) for n in (1, 20, 300)] == [None] * 3
    assert repeated_key(document("p50", "p50", 1)) == "p50"
    assert repeated_key(document("p99", "p99", 1)) == "p99"
    assert repeated_key(b'{"us":{"p50":1,"p99":2},"data":"QUJD","data":"QUJD"}') == "data"


@pytest.mark.parametrize(
    ("good", "bad", "key"),
    [
        ('{"p50" :1,"p99" :2}', '{"p50" :1,"p50" :2}', "p50"),
        ('{"a-b":1,"ab":2}', '{"ab":1,"ab":2}', "ab"),
        ('{"a.b":1,"ab":2}', '{"a.b":1,"a.b":2}', "a.b"),
        ('[{"p50":1},{"p50":2,"p99":3}]', '[{"p99":1},{"p50":2,"p50":3}]', "p50"),
    ],
)
def test_documents_of_one_outline_are_told_apart(good: str, bad: str, key: str) -> None:
    assert repeated_key(good.encode()) is None
    assert repeated_key(bad.encode()) == key


def test_a_key_that_begins_with_a_colon_is_seen_twice() -> None:
    assert repeated_key(b'{"colons":"b",":1":5,":2":5}') is None
    assert repeated_key(b'{"colons":"b",":1":5,":1":5}') == ":1"
