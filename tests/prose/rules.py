"""The rules of plain English: words and forms that are rejected, and the length of a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

#: Stands for a code span, a variable or a format directive: one word that no rule matches.
CODE = (
    "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}x\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}"
)


class Kind(Enum):
    """Where a text stands; its value is the greatest number of words of a sentence."""

    PROSE = 25
    HEADING = 24  # also the head of a table: "What it loads" is a name there, not a riddle
    MESSAGE = 20


@dataclass(frozen=True)
class Text:
    """A text that a user reads, with its place."""

    file: str
    line: int
    kind: Kind
    words: str


@dataclass(frozen=True)
class Finding:
    """A rule that a text breaks."""

    file: str
    line: int
    rule: str
    excerpt: str
    advice: str
    sentence: str = ""

    def __str__(self) -> str:
        """One line for a terminal, in the form that editors can jump to."""
        return f"{self.file}:{self.line}: {self.rule}: '{self.excerpt}'; {self.advice}"


@dataclass(frozen=True)
class Rule:
    """A form that is rejected wherever its pattern matches, and a better way to write it."""

    name: str
    pattern: re.Pattern[str]
    advice: str
    headings: bool = True  # whether headings and heads of tables must keep it, too


def _rule(name: str, pattern: str, advice: str, *, headings: bool = True) -> Rule:
    return Rule(name, re.compile(pattern, re.IGNORECASE), advice, headings)


_NEGATION = r"(?:no|not|cannot|never|none|nobody|nothing)"
#: Words of the same clause, shortest first.
_WITHIN = r"(?:(?! (?:but|and|or|nor) )[^,;:.()])*?"

RULES = (
    _rule("anew", r"\banew\b", "write 'again'"),
    _rule("thereof", r"\bthere(?:of|in|by|upon)\b", "name the thing"),
    _rule(
        "none",
        r"\bnone (?:is|are|was|were|begun)\b|\b(?:is|are|was|were|as|of|and|that) none\b",
        "say which thing is missing or invalid",
    ),
    _rule("is-no", r"\b(?:it|that|this|what|which|and|'s) is no\b(?! longer)", "write 'is not a'"),
    _rule("owe", r"\bow(?:e|es|ed|ing)\b(?! to\b)", "write 'must provide' or 'is expected to'"),
    _rule("befall", r"\bbefall(?:s|en|ing)?\b|\bbefell\b", "write 'happens to'"),
    _rule(
        "stand",
        r"\b(?:stands?|stood|standing) (?:beside|behind|before|yet|there)\b|\bverdict stands\b",
        "write 'is', or name what is compared or missing",
    ),
    _rule(
        "held-against",
        r"\b(?:held|holds?|holding)\b(?: \S+){0,4}? against\b",
        "write 'is compared with'",
    ),
    _rule("whoever", r"\bwho(?:so|m)?ever\b", "name who acts, or write 'any'"),
    _rule("say-so", r"\b(?:said|says?|saying) so\b", "say what is reported"),
    _rule("told", r"\btold\b", "write 'reported', 'set' or 'distinguished'"),
    _rule("nobody", r"\b(?:no|every)body(?:'s)?\b|\bnothing (?:says|tells|may)\b", "name who acts"),
    _rule(
        "personified",
        r"\b(?:hears?|heard|speaks?|spoke|likes|knows)\b",
        "programs and files do not hear, speak, like or know; name what they do",
    ),
    _rule(
        "took",
        r"\b(?:bytes|packets|program)\b[^.;:]*\btook\b",
        "name the counter or the path",
    ),
    _rule("under-way", r"\bunder way\b", "write 'outstanding' or 'running'"),
    _rule("is-of", r"\b(?:is|are|was|were) of (?:a|an|another|no)\b", "write 'belongs to'"),
    _rule("in-the-median", r"\bin the median\b", "write 'median 6.11 us'"),
    _rule("times-its", r"\b[\d.]+ times its\b", "write the difference in per cent"),
    _rule("beyond-what", r"\bbeyond what\b", "name the limit"),
    _rule("as-when", r"\bas when\b", "name what is compared"),
    _rule("over-before", r"\bover before\b", "write 'finished earlier'"),
    _rule(
        "its-like",
        r"\b(?:its|their) like\b|\blike (?:figures|flows|hosts|latency|pairs)\b|\bmedian pair\b",
        "write 'comparable pairs'",
    ),
    _rule("not-met", r"\badvisory, not met\b", "write 'Warning'"),
    _rule("threshold", r"\bthresholds?\b", "write 'limit'"),
    _rule(
        "free-relative",
        r"^(?:what|who|how (?:long|much|many|far))\b(?![^?]*\?$)",
        "begin with the subject: name the thing",
        headings=False,
    ),
    _rule(
        "what-no",
        r"\b(?:what|who|whom) (?:no|no one|nothing)\b",
        "name the thing that is missing",
    ),
    _rule(
        "double-negation",
        rf"\b{_NEGATION}\b{_WITHIN} (?:none|nobody|nothing)\b"
        rf"|\b(?:no|none|nobody|nothing)\b{_WITHIN} (?:not(?! judged)|cannot)\b",
        "say it without one of the negations",
    ),
)

#: Ends of a word with a full stop that end no sentence.
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx|[A-Z])\.$")
_END = re.compile(r"(?<!\.)[.!?][\"')\]]*\s+(?=\S)")  # names of tools begin sentences, too
_PART = re.compile(r";\s+")


def sentences(words: str, kind: Kind = Kind.PROSE) -> Iterator[str]:
    """The sentences of a text; a message's remedy, behind a semicolon, is one of its own."""
    start = 0
    for end in _END.finditer(words):
        if not _ABBREVIATION.search(words[start : end.start() + 1]):
            yield from _parts(words[start : end.end()], kind)
            start = end.end()
    yield from _parts(words[start:], kind)


def _parts(sentence: str, kind: Kind) -> Iterator[str]:
    parts = _PART.split(sentence) if kind is Kind.MESSAGE else [sentence]
    yield from (part.strip() for part in parts if part.strip())


def count(sentence: str) -> int:
    """How many words a sentence has; signs alone are none."""
    return sum(any(sign.isalnum() for sign in word) for word in sentence.split())


def findings(text: Text) -> Iterator[Finding]:
    """Each rule that a text breaks, sentence by sentence."""
    for sentence in sentences(text.words, text.kind):
        for rule in RULES:
            if text.kind is Kind.HEADING and not rule.headings:
                continue
            if found := rule.pattern.search(sentence):
                around = _around(sentence, found)
                yield Finding(text.file, text.line, rule.name, around, rule.advice, sentence)
        if (words := count(sentence)) > text.kind.value:
            advice = f"{words} words, at most {text.kind.value}; write two sentences"
            yield Finding(text.file, text.line, "long", _short(sentence), advice, sentence)


def _around(sentence: str, found: re.Match[str]) -> str:
    """The match with a few words around it, since the line may be that of a whole paragraph."""
    before, after = sentence[: found.start()].split(" "), sentence[found.end() :].split(" ")
    return " ".join(before[-4:]) + found.group() + " ".join(after[:4])


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= 60 else sentence[:57] + "..."
