"""The texts that programs show: strings of Python, Jinja, YAML, C, jq and make."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import jinja2
import yaml

from tests.prose import markdown
from tests.prose.rules import CODE, Kind, Text

#: Three words side by side are a phrase; names, formats and expressions are none.
_PHRASE = re.compile(r"(?:^|[\s(\"'])[A-Za-z][a-z'-]*,? [a-z][a-z'-]*,? [a-z][a-z'-]*")
_PATTERN = re.compile(r"\\[dswbB.(\[]|\(\?|\[\^|\^\(")
#: Keywords and calls whose strings are messages; all others are prose of the report.
_MESSAGES = {"PerchError", "help", "title", "remedy", "what", "description", "epilog"}


def is_phrase(words: str) -> bool:
    return bool(_PHRASE.search(words)) and not _PATTERN.search(words)


def _text(file: str, line: int, kind: Kind, words: str) -> Iterator[Text]:
    if is_phrase(words):
        yield Text(file, line, kind, " ".join(words.split()))


# Python ------------------------------------------------------------------------------------------


#: Ansible's documentation of a plugin: YAML in a string of this name.
_YAML = {"DOCUMENTATION", "RETURN"}


def python(file: str, source: str) -> Iterator[Text]:
    """Every string of a module that is a phrase, but for docstrings."""
    yield from _python(file, ast.parse(source), Kind.PROSE)


def _python(file: str, node: ast.AST, kind: Kind) -> Iterator[Text]:
    if _is_silent(node):
        return
    if isinstance(node, ast.Constant | ast.JoinedStr):
        yield from _text(file, node.lineno, kind, _written(node))
        values = node.values if isinstance(node, ast.JoinedStr) else []
        # an f-string's expressions have strings of their own
        inner: Iterable[ast.AST] = [v.value for v in values if isinstance(v, ast.FormattedValue)]
    elif isinstance(node, ast.Assign) and (name := _documents(node)):
        inner = ()
        if name in _YAML:
            for text in yaml_strings(file, ast.literal_eval(node.value)):
                yield replace(text, line=text.line + node.lineno - 1)
    else:
        inner = ast.iter_child_nodes(node)
    for child in inner:
        yield from _python(file, child, Kind.MESSAGE if _is_message(node) else kind)


def _is_silent(node: ast.AST) -> bool:
    """A docstring, or a list of names that is split at its blanks."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Attribute) and node.attr == "split"


def _documents(node: ast.Assign) -> str:
    """DOCUMENTATION, EXAMPLES or RETURN of an Ansible plugin, else an empty string."""
    name = getattr(node.targets[0], "id", "")
    return name if name in _YAML | {"EXAMPLES"} else ""


def _written(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = (v.value if isinstance(v, ast.Constant) else CODE for v in node.values)
    return "".join(str(part) for part in parts)


def _is_message(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in _MESSAGES
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        return name in _MESSAGES or name.endswith("Error")
    return False


# Jinja -------------------------------------------------------------------------------------------


def jinja(file: str, source: str) -> Iterator[Text]:
    """A template's own words as Markdown, and the phrases in its expressions."""
    words, inside = [], False
    for line, token, value in jinja2.Environment(autoescape=False).lex(source):
        if token == "data":
            words.append(value)
        elif token == "string":
            yield from _text(file, line, Kind.PROSE, value.strip("\"'"))
        elif token == "variable_begin":
            inside = True
        elif token == "variable_end" and inside:
            words.append(CODE)
            inside = False
        if token not in {"data", "string"}:
            words.append("\n" * value.count("\n"))  # so that lines keep their numbers
    yield from markdown.texts(file, "".join(words))


# YAML --------------------------------------------------------------------------------------------

#: What is shown of a task, an option or a limit, and how long its sentences may be.
_SHOWN = dict.fromkeys(("description", "source"), Kind.PROSE) | dict.fromkeys(
    ("name", "msg", "fail_msg", "success_msg", "title", "short_description", "remedy"),
    Kind.MESSAGE,
)
_EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def yaml_strings(file: str, source: str) -> Iterator[Text]:
    """What tasks, options, suites and limits show; of a role's defaults its comments, too."""
    for document in yaml.compose_all(source, Loader=yaml.SafeLoader):
        yield from _yaml(file, document, None)
    if file.endswith("/defaults/main.yml"):
        yield from _comments(file, source)


def _yaml(file: str, node: yaml.Node | None, kind: Kind | None) -> Iterator[Text]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _yaml(file, value, _SHOWN.get(key.value))
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _yaml(file, value, kind)
    elif isinstance(node, yaml.ScalarNode) and kind is not None:
        line = node.start_mark.line + 1
        yield from _text(file, line, kind, _EXPRESSION.sub(CODE, node.value))


#: A comment's prose: an example is indented or a variable with its value.
_COMMENT = re.compile(r"# (?!\s|[a-z0-9_]+:(?: |$))")


def _comments(file: str, source: str) -> Iterator[Text]:
    paragraph: list[str] = []
    for number, line in enumerate([*source.splitlines(), ""], 1):
        if _COMMENT.match(line):
            paragraph.append(line[2:])
        elif paragraph:
            yield from _text(file, number - len(paragraph), Kind.PROSE, " ".join(paragraph))
            paragraph = []


# C -----------------------------------------------------------------------------------------------

_C = re.compile(
    r"//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])+'|(?P<string>\"(?:\\.|[^\"\\\n])*\")|(?P<space>\s+)"
    r"|(?P<format>\bPRI\w+\b)|(?P<other>.)",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh?|ll?|j|z|t)?[diouxXeEfgGcsmp]|%$")


def c(file: str, source: str) -> Iterator[Text]:
    """Every string of a C file that is a phrase; strings side by side are one, as in C."""
    parts: list[str] = []
    line = first = 1
    for token in _C.finditer(source):
        if token["string"] is not None:
            first = first if parts else line
            parts.append(token["string"][1:-1])
        elif token["format"] is not None and parts:
            parts.append("s")  # the rest of a directive that the % before it began
        elif token["other"] is not None and parts:
            for kind, words in _paragraphs(_c_words("".join(parts))):
                yield from _text(file, first, kind, words)
            parts = []
        line += token.group().count("\n")


def _c_words(written: str) -> str:
    words = written.replace("\\n", "\n").replace("\\t", " ").replace('\\"', '"')
    return _DIRECTIVE.sub(CODE, words).replace("%%", "%")


#: A line of man(7): a word in another font, or the beginning of a paragraph.
_MACRO = re.compile(r"^\.(?:(?P<font>[BI][RIB]?)\b.*|[A-Z]+.*)$", re.MULTILINE)


def _paragraphs(words: str) -> Iterator[tuple[Kind, str]]:
    """A message as it is; of a manual page its paragraphs, with one word for each in a font."""
    if not _MACRO.search(words):
        yield Kind.MESSAGE, words
        return
    plain = _MACRO.sub(lambda macro: CODE if macro["font"] else "\n\n", words)
    yield from ((Kind.PROSE, paragraph) for paragraph in plain.split("\n\n"))


# make --------------------------------------------------------------------------------------------


def make(file: str, source: str) -> Iterator[Text]:
    """The help of each target: what `make help` prints of it."""
    for number, line in enumerate(source.splitlines(), 1):
        if found := re.match(r"[a-z][a-z-]*:.*?## (.*)", line):
            yield from _text(file, number, Kind.MESSAGE, found[1])


# jq ----------------------------------------------------------------------------------------------

_JQ = re.compile(r'#[^\n]*|(?P<open>\\?\()|(?P<close>\))|(?P<quote>")|\\.|[^\\"#()]+|.', re.DOTALL)


def jq(file: str, source: str) -> Iterator[Text]:
    """Every string of a jq module that is a phrase; each of its interpolations is one word."""
    #: One entry for each open string or parenthesis: a string's line and parts, else None.
    open_: list[tuple[int, list[str]] | None] = []
    position, line = 0, 1
    while (token := _JQ.match(source, position)) is not None:
        words = token.group()
        inside = open_[-1] if open_ else None
        if inside is not None and words.startswith("#"):
            words = "#"  # no comment within a string
        position += len(words)
        if inside is None and token["quote"]:
            open_.append((line, []))
        elif inside is not None and token["quote"]:
            open_.pop()
            yield from _text(file, inside[0], Kind.MESSAGE, "".join(inside[1]))
        elif inside is not None and words == r"\(":
            inside[1].append(CODE)
            open_.append(None)
        elif inside is not None:
            inside[1].append(words)
        elif token["open"]:
            open_.append(None)
        elif token["close"] and open_:
            open_.pop()
        line += words.count("\n")
