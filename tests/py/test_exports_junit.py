"""junit.xml: what a check becomes, and text from outside."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from perch.exports import junit
from perch.model.verdict import Bound, Check, CheckStatus
from tests.py.shown import check, fabric


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a<b>&\"c\"'d'", "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;"),
        ("tab\tline\n", "tab\\tline\\n"),
        ("\x01\x1f\ufffe\uffff\x85\u202e", "\\x01\\x1f\\ufffe\\uffff\\x85\\u202e"),
        ("]]>", "]]&gt;"),
        (5, "5"),
    ],
)
def test_text_is_what_xml_can_hold(value: object, text: str) -> None:
    assert junit.text(value) == text


def one(name: str, status: CheckStatus, measured: float | str) -> Check:
    return Check(
        id=name, title="T", status=status, measured=measured, limit=Bound(None, 3), unit="us",
        source="s", evidence=["e"], remedy="r",
    )  # fmt: skip


def test_only_the_check_of_a_tests_flows_has_its_time() -> None:
    seconds = {"t": 1.23456}
    assert junit.testcase(one("flows/t", "pass", 1), seconds) == (
        '    <testcase classname="perch.flows" name="flows/t" time="1.235"/>'
    )
    assert 'time="' not in junit.testcase(one("limit/x/t", "pass", 1), seconds)


@pytest.mark.parametrize(
    ("status", "element"),
    [
        ("pass", "/>"),
        ("not_judged", '><skipped message="T: 7 µs (limit: at most 3 µs)"/></testcase>'),
        ("fail", '><failure type="fail" message="T: 7 µs (limit: at most 3 µs)">'),
        ("inconclusive", '><error type="inconclusive" message="T: 7 µs'),
        (
            "advisory",
            "><system-out>T: 7 µs (limit: at most 3 µs)\nsource: s\nevidence: e\nto do: r",
        ),
    ],
)
def test_a_status_becomes_an_element(status: CheckStatus, element: str) -> None:
    assert element in junit.testcase(one("limit/x/t", status, 7), {})


@pytest.mark.parametrize(
    ("word", "element"), [("PASS", None), ("FAIL", "failure"), ("INCONCLUSIVE", "error")]
)
def test_a_run_without_pass_is_never_green(tmp_path: Path, word: str, element: str | None) -> None:
    made = fabric()
    made.verdict.update(verdict=word, checks=[check("a/b", "pass", "x\x1b[31m<b>")])
    root = ElementTree.fromstring(junit.document(made.write(tmp_path), {}))
    (suite,) = root
    first, second = suite.findall("testcase")
    assert [child.tag for child in first] == ([] if element is None else [element])
    assert len(second) == 0
    failed = word != "PASS"
    assert int(suite.get("failures", 0)) + int(suite.get("errors", 0)) == failed
    assert suite.get("tests") == "2"
    assert suite.get("timestamp") == "2026-01-01T00:00:00Z"
