"""The linter of prose: its rules, what it reads of each language, and its exceptions."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.prose import __main__ as lint
from tests.prose import markdown, strings
from tests.prose.exceptions import Exceptions
from tests.prose.rules import Kind, Text, count, findings, sentences

RIDDLE = "the server said what is no line"


def pairs() -> list[tuple[str, str]]:
    """The rows of the table in the linter's README."""
    source = (lint.ROOT / "tests/prose/README.md").read_text()
    tokens = MarkdownIt("commonmark").enable("table").parse(source)
    cells = [tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "td_open"]
    return list(zip(cells[::2], cells[1::2], strict=True))


def broken(words: str, kind: Kind = Kind.MESSAGE) -> list[str]:
    return [finding.rule for finding in findings(Text("a.py", 1, kind, words))]


def test_the_table_of_pairs_is_read() -> None:
    assert len(pairs()) == 22


@pytest.mark.parametrize(("rejected", "accepted"), pairs())
def test_left_is_rejected_and_right_accepted(rejected: str, accepted: str) -> None:
    assert broken(rejected)
    assert broken(accepted) == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("anew", "The run is judged anew."),
        ("thereof", "The plan and the rounds thereof are kept."),
        ("none", "A file that is none is rejected."),
        ("owe", "Every host owes a result."),
        ("befall", "One fault befalls both ends."),
        ("stand", "The check stands beside the limit."),
        ("held-against", "The mean is held against the limit."),
        ("whoever", "Whoever starts the agent must end it."),
        ("say-so", "The report says so."),
        ("told", "The agent is told to stop."),
        ("nobody", "Nobody reads this counter."),
        ("nobody", "The counter has the bytes of everybody else."),
        ("free-relative", "What the counter lacks is not judged."),
        ("double-negation", "No host has nothing to do."),
        ("personified", "The agent hears from its peer."),
        ("threshold", "The threshold is 5 %."),
        ("its-like", "80 % of the median of its like"),
        ("its-like", "80 % of the median pair"),
        ("its-like", "Only like figures are compared."),
    ],
)
def test_a_rejected_form_is_found(rule: str, words: str) -> None:
    assert rule in broken(words)


@pytest.mark.parametrize(
    "words",
    [
        "What does the plan hold?",
        "The run has no device and no counter.",
        "The server cannot open the device, so there is no measurement.",
        "The judge tells lost messages from corrupted ones.",
        "A counter that is no longer read counts as missing.",
        "No p99 in any interval is not judged.",
    ],
)
def test_plain_sentences_are_accepted(words: str) -> None:
    assert broken(words, Kind.PROSE) == []


def test_a_heading_may_begin_with_what() -> None:
    assert broken("What it loads", Kind.HEADING) == []
    assert broken("What it loads is listed", Kind.PROSE) == ["free-relative"]


@pytest.mark.parametrize(("kind", "most"), [(Kind.PROSE, 25), (Kind.MESSAGE, 20)])
def test_a_sentence_has_so_many_words_at_most(kind: Kind, most: int) -> None:
    assert broken("word " * most, kind) == []
    assert broken("word " * (most + 1), kind) == ["long"]


def test_sentences_end_at_full_stops_that_are_none_of_an_abbreviation() -> None:
    assert list(sentences("One e.g. Two, ... two. Three at 5.5 GB. iperf3 is four")) == [
        "One e.g. Two, ... two.",
        "Three at 5.5 GB.",
        "iperf3 is four",
    ]
    assert list(sentences("file missing; create it", Kind.MESSAGE)) == ["file missing", "create it"]


def test_signs_are_no_words() -> None:
    assert count("a - b = 5 %") == 3


def test_markdown_has_paragraphs_items_and_cells_without_code() -> None:
    source = (
        "# Head\n\nOne `a b c`\ntwo.\n\n- item [link](x.md)\n\n| h |\n|---|\n| cell |\n\n    code\n"
    )
    found = [(t.line, t.kind, t.words) for t in markdown.texts("a.md", source)]
    assert found == [
        (1, Kind.HEADING, "Head"),
        (3, Kind.PROSE, "One «x» two."),
        (6, Kind.PROSE, "item link"),
        (8, Kind.HEADING, "h"),
        (10, Kind.PROSE, "cell"),
    ]


def test_lines_of_markdown_have_100_columns_but_for_tables_and_addresses() -> None:
    long = "word " * 30
    source = f"{long}\n| {long} |\nhttps://example.org/{'x' * 100}\n"
    assert [finding.line for finding in markdown.long_lines("a.md", source)] == [1]


@pytest.mark.parametrize(
    ("read", "source", "line"),
    [
        (strings.python, f'"""A docstring."""\n\nraise E("{RIDDLE}")\n', 3),
        (strings.python, f'x = f"{{n}} lines: {RIDDLE}"\n', 1),
        (
            strings.python,
            'parser.add_argument("--x", help="the server said "\n "what is no line")',
            1,
        ),
        (strings.python, f'DOCUMENTATION = """\nshort_description: {RIDDLE}\n"""\n', 2),
        (strings.jinja, f"{{# {RIDDLE} #}}\n{{% if a %}}\n\n{RIDDLE}\n{{% endif %}}\n", 4),
        (strings.jinja, f"{{{{ a or '{RIDDLE}' }}}}\n", 1),
        (strings.yaml_strings, f"- name: Check\n  assert:\n    fail_msg: >-\n      {RIDDLE}\n", 3),
        (strings.c, f'/* {RIDDLE} */\n\nfailure(-EINVAL,\n\t"{RIDDLE}", x);\n', 4),
        (strings.c, 'say("the server said "\n"what is no line");\n', 1),
        (strings.jq, f'# {RIDDLE}\n\n{{why: ("{RIDDLE}")}}\n', 3),
        (strings.jq, f'("a" | if . then "#\\(map(")"))" else\n"{RIDDLE}" end)\n', 2),
        (strings.jq, f'"\\(if . then "{RIDDLE}" else ")" end) # 1 and (2)"\n', 1),
    ],
)
def test_strings_are_found_with_their_line(read: lint.Reader, source: str, line: int) -> None:
    found = [(f.line, f.rule) for text in read("a", source) for f in findings(text)]
    assert found == [(line, "is-no")]


def test_a_manual_page_in_c_has_paragraphs() -> None:
    page = (
        r'p(".SH NAME\nperch measures a fabric\n.TP\n.B lat\nmeasures the latency of\n.I HOST\n");'
    )
    found = [(text.kind, text.words) for text in strings.c("a.c", page)]
    assert found == [
        (Kind.PROSE, "perch measures a fabric"),
        (Kind.PROSE, "«x» measures the latency of «x»"),
    ]


def test_names_patterns_and_docstrings_are_no_phrases() -> None:
    source = (
        '"""said what is no line"""\na = "one two three".split()\nb = r"said what is no (?:line)"\n'
    )
    assert list(strings.python("a.py", source)) == []


def test_the_help_of_a_target_of_make_is_a_message() -> None:
    source = f"# {RIDDLE}\n.PHONY: judge\njudge: setup ## {RIDDLE}\n\t@echo {RIDDLE}\n"
    assert list(strings.make("Makefile", source)) == [Text("Makefile", 3, Kind.MESSAGE, RIDDLE)]
    assert ("Makefile", strings.make) in lint.SOURCES


def test_comments_of_a_roles_defaults_are_its_manual() -> None:
    source = f"---\n# Port of the server:\n# {RIDDLE}\n#   port: {{one two three}}\n# port: 1\n"
    found = list(strings.yaml_strings("roles/x/defaults/main.yml", source))
    assert [(t.line, t.words) for t in found] == [(2, f"Port of the server: {RIDDLE}")]
    assert list(strings.yaml_strings("roles/x/tasks/main.yml", source)) == []


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with one document that breaks one rule."""
    (tmp_path / "a.md").write_text("The agent is told to stop.\n")
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    monkeypatch.setattr(lint, "EXCEPTIONS", tmp_path / "exceptions.yml")
    monkeypatch.setattr(lint, "tree", lambda pattern: ["a.md"] if pattern == "*.md" else [])
    (tmp_path / "exceptions.yml").write_text("[]\n")
    return tmp_path


def test_a_finding_names_file_line_rule_and_remedy(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lint.main([]) == 1
    assert capsys.readouterr().out == (
        "a.md:1: told: 'The agent is told to stop.'; write 'reported', 'set' or 'distinguished'\n"
    )


@pytest.mark.parametrize("narrowed", ["", ", rule: told", ", text: is told"])
def test_an_exception_with_a_reason_holds(tree: Path, narrowed: str) -> None:
    (tree / "exceptions.yml").write_text(f"- {{files: [a.md], reason: a quotation{narrowed}}}\n")
    assert lint.main([]) == 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{files: [a.md]}", "exceptions.yml, entry 1: no 'reason'; say why"),
        ("{files: [a.md], reason: ' '}", "exceptions.yml, entry 1: no 'reason'; say why"),
        ("{reason: x}", "exceptions.yml, entry 1: no 'files'"),
        ("{files: [a.md], reason: x, why: y}", "exceptions.yml, entry 1: unknown key 'why'"),
        ("{files: [a.md], rule: anew, reason: x}", "'a.md': nothing in it needs an exception"),
        ("{files: [b.md], reason: x}", "'b.md': no such file"),
        ("a.md", "exceptions.yml, entry 1: it is not a mapping; write files and reason"),
        ("{files: a.md, reason: x}", "exceptions.yml, entry 1: 'files' is not a list of patterns"),
        ("{files: [5], reason: x}", "exceptions.yml, entry 1: 'files' is not a list of patterns"),
        ("{files: [a.md], text: 5, reason: x}", "exceptions.yml, entry 1: 'text' is not a text"),
        ("{files: [a.md]", "exceptions.yml: it is not YAML"),
    ],
)
def test_a_wrong_exception_is_an_error(
    tree: Path, capsys: pytest.CaptureFixture[str], entry: str, message: str
) -> None:
    (tree / "exceptions.yml").write_text(f"- {entry}\n")
    assert lint.main([]) == 1
    assert message in capsys.readouterr().out


def test_exceptions_that_are_no_list_are_an_error(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tree / "exceptions.yml").write_text("files: [a.md]\n")
    assert lint.main([]) == 1
    assert "exceptions.yml: it is not a list of entries" in capsys.readouterr().out


def test_every_exception_of_the_tree_has_files_and_a_reason() -> None:
    assert list(Exceptions(lint.EXCEPTIONS).faults()) == []
