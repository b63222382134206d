#!/usr/bin/env python3
"""Holds the jq programs to the order of imports that Debian 13's jq needs; `--write` writes it, and
`--imports MODULE=ALIAS...` prints the lines for a program that is made elsewhere (tests/bats/helpers.bash).

jq 1.7.1-6+deb13u3 (its patch for CVE-2026-44777) puts a module before those that it imports itself, and dies on an assertion
where it then calls one of their functions. A program escapes that by naming all modules, those that are used after their
users: jq begins with the last one. What a program names for that alone has the alias `_`.
"""
import re
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
JQ = TOP / "reports/jq"
IMPORT = re.compile(r'^import "(?P<module>[\w/]+)" as (?P<alias>\w+)(?: \{search: "\./"\})?;[^\n]*\n', re.M)
INLINE = re.compile(r'import \\?"(\w+)\\?" as \w+;')
NOTE = "# Each before what it uses itself; `_` is there for that order alone (tests/jq_order.py).\n"


def imports(text):
    return [m["module"] for m in IMPORT.finditer(text) if m["alias"] != "_"]


def used(modules, seen=None):
    """All modules that these use, users first."""
    done = []

    def visit(name):
        if name not in done:
            for other in reversed(imports((JQ / f"{name}.jq").read_text())):
                visit(other)
            done.append(name)

    for name in reversed(modules):
        visit(name)
    return done[::-1]


def is_program(path):
    """Whether it does something: what is left without comments, imports and definitions."""
    text = "\n".join(line for line in IMPORT.sub("", path.read_text()).splitlines() if not line.startswith("#"))
    last = text.rstrip().rsplit("\n\n", 1)[-1]
    return not text.rstrip().endswith(";") or last.startswith("$")


def ordered(path):
    """The program's text with its imports in order."""
    text = path.read_text().replace(NOTE, "")
    lines = {m["module"]: m[0] for m in IMPORT.finditer(text) if m["alias"] != "_"}
    if not lines:
        return text
    if not any(imports((JQ / f"{name}.jq").read_text()) for name in lines):
        return text
    modules = used(sorted(lines))
    block = "".join(lines.get(name) or f'import "{name}" as _;\n' for name in modules)
    if len(modules) > len(lines):
        block = NOTE + block
    first = IMPORT.search(text).start()
    return text[:first] + block + IMPORT.sub("", text[first:])


def main(write):
    bad = []
    for path in sorted(JQ.glob("*.jq")):
        if is_program(path) and (text := ordered(path)) != path.read_text():
            bad.append(path.relative_to(TOP))
            if write:
                path.write_text(text)
    for path in sorted((TOP / "reports").iterdir()):
        if path.is_file() and path.suffix in ("", ".bash"):
            for program in re.findall(r"""(?s)'[^']*'|"(?:[^"\\]|\\.)*\"""", path.read_text()):
                names = INLINE.findall(program)
                if any(imports((JQ / f"{name}.jq").read_text()) for name in names) and used(sorted(names)) != names:
                    bad.append(f"{path.relative_to(TOP)}: {names} should be {used(sorted(names))}")
    for name in bad:
        print(("written: " if write and isinstance(name, Path) else "not in order: ") + str(name))
    return 1 if bad and not write else 0


def lines_of(wanted):
    """What a program that uses these modules begins with: {module: alias}."""
    return "".join(f'import "{name}" as {wanted.get(name, "_")};\n' for name in used(list(wanted)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--imports"]:
        print(lines_of(dict(word.split("=") for word in sys.argv[2:])))
        sys.exit(0)
    sys.exit(main(sys.argv[1:] == ["--write"]))
