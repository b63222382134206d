"""Numbers and words as a reader sees them, and text from outside that does nothing."""

from __future__ import annotations

import pytest

from perch.model.verdict import Bound
from perch.views import words


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12345678, "12,345,678"), (999, "999"), (99.96, "100"), (12.345, "12.3"), (1, "1.00"),
        (0.5, "0.500"), (0.01234, "0.0123"), (0.000123, "0.00012"), (0, "0"), (-3.14159, "-3.14"),
        (-1234, "-1,234"), (0.000001, "< 0.00001"), (None, "-"), (float("nan"), "-"),
    ],
)  # fmt: skip
def test_a_figure_has_three_significant_digits(number: float | None, text: str) -> None:
    assert words.figure(number) == text


@pytest.mark.parametrize(("number", "text"), [(0.125, "0.13"), (-0.125, "-0.13"), (2.5, "2.50")])
def test_halves_are_rounded_away_from_zero(number: float, text: str) -> None:
    assert words.fixed(number, 2) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(8, "8 B"), (1024, "1 KiB"), (1536, "1536 B"), (65536, "64 KiB"), (2**20, "1 MiB"),
     (None, "-")],
)  # fmt: skip
def test_a_size_is_in_the_largest_binary_unit_that_divides_it(size: int | None, text: str) -> None:
    assert words.size(size) == text


@pytest.mark.parametrize(
    ("limit", "unit", "text"),
    [
        (Bound(1, None), "Gb/s", "at least 1 Gb/s"),
        (Bound(None, 2000), "us", "at most 2,000 µs"),
        (Bound(5, 5), "records", "5 records"),
        (Bound(0.5, 2), None, "0.500 to 2"),
        (Bound(0.000001, None), "Gb/s", "at least 1e-6 Gb/s"),
        (None, None, "-"),
    ],
)
def test_a_bound_says_on_which_side_it_is(limit: Bound | None, unit: str | None, text: str) -> None:
    assert words.bound(limit, unit) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b\n<img src=x>\tc", "a\\|b &lt;img src=x> c"),
        (
            "# a `b` *c* [d](e) #f ~g~ $h$ &amp; \\",
            "\\# a \\`b\\` \\*c\\* \\[d\\](e) \\#f \\~g\\~ \\$h\\$ &amp;amp; \\\\",
        ),
        ("_x_ tcp_latency __y__", "\\_x\\_ tcp_latency \\_\\_y\\_\\_"),
        ("- li", "\\- li"),
        ("-", "-"),
        ("-5 %", "-5 %"),
        ("12. x", "12\\. x"),
        ("1.2 x", "1.2 x"),
        ("fe80::a:100:b 08:04:48 :100:", "fe80:\\:a\\:100:b 08:04:48 \\:100:"),
        ("---", "\\---"),
        ("x#y > z", "x#y > z"),
        ("see http://a.b or www.c.d", "see http\\://a.b or www\\.c.d"),
        (None, "-"),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_no_sign_of_a_text_from_outside_does_anything(text: object, shown: str) -> None:
    assert words.cell(text) == shown


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\u202eb", "bell\x07", "c1\x9b0m"])
def test_no_control_character_reaches_a_reader(text: str) -> None:
    for shown in (words.cell(text), words.code(text), words.unmarked(words.cell(text))):
        assert all(sign.isprintable() for sign in shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("run/1", "`run/1`"), ("a_b*", "`a_b*`"), ("a|b", "a\\|b"), ("a`b", "a\\`b"),
     ("a\nb", "`a b`")],
)  # fmt: skip
def test_code_is_text_where_it_could_end_the_code(text: str, shown: str) -> None:
    assert words.code(text) == shown


def test_a_terminal_shows_what_a_cell_says() -> None:
    said = "a*b_ & <i>x | [y]"
    assert words.unmarked(words.cell(said)) == said
    assert words.unmarked(f"of 8 {words.term('records')}") == "of 8 records"
    assert words.unmarked(words.cell("[y](#terms)")) == "[y](#terms)"


def test_a_long_list_names_the_first() -> None:
    assert words.names(["a", "b"], 2) == "a, b"
    assert words.names(["a", "b", "c"], 1) == "a and 2 more"


@pytest.mark.parametrize(
    ("unit", "shown"),
    [
        ("us", "µs"),
        ("Gb/s", "Gb/s"),
        ("in a million packets", "per million packets"),
        ("packets in a million", "per million packets"),
        ("messages in a million", "per million messages"),
        ("retries in a million packets", "retries per million packets"),
    ],
)
def test_a_unit_is_read_after_its_number(unit: str, shown: str) -> None:
    assert words.value(1000000, unit) == f"1,000,000 {shown}"


def test_a_finding_shows_twelve_digits_of_a_digest() -> None:
    digest = "8618c3e35308782afec9a2ee0a10a62fbf80b738de18b5e09c549ee02c003668"
    assert words.short_digests(f"SHA-256 {digest}, {digest[:40]}") == (
        f"SHA-256 {digest[:12]}, {digest[:40]}"
    )
