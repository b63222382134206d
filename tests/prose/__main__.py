"""`python -m tests.prose [FILE...]`: the tree's words against the rules of plain English."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.prose import markdown, strings
from tests.prose.exceptions import Exceptions
from tests.prose.rules import Finding, Text, findings

ROOT = Path(__file__).parents[2]
EXCEPTIONS = Path(__file__).parent / "exceptions.yml"

Reader = Callable[[str, str], Iterator[Text]]

#: What is read, and how: files of the tree by git's patterns.
SOURCES: tuple[tuple[str, Reader], ...] = (
    ("*.md", markdown.texts),
    ("perch/*.py", strings.python),
    ("plugins/*.py", strings.python),
    ("reports/templates/*.j2", strings.jinja),
    ("roles/*.yml", strings.yaml_strings),
    ("playbooks/*.yml", strings.yaml_strings),
    ("reports/limits/*.yml", strings.yaml_strings),
    ("reports/jq/*.jq", strings.jq),
    ("engine/src/*.[ch]", strings.c),
    ("Makefile", strings.make),
)


def tree(pattern: str) -> list[str]:
    """Files of the tree, new ones too."""
    command = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", pattern)
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted({name for name in listed.stdout.splitlines() if (ROOT / name).is_file()})


def lint(file: str, read: Reader) -> Iterator[Finding]:
    source = (ROOT / file).read_text()
    for text in read(file, source):
        yield from findings(text)
    if file.endswith(".md"):
        yield from markdown.long_lines(file, source)


def main(wanted: list[str]) -> int:
    """Prints what is wrong, a line each; 1 where something is."""
    exceptions = Exceptions(EXCEPTIONS)
    wrong = list(exceptions.faults())
    if not wrong:
        files = [(file, read) for pattern, read in SOURCES for file in tree(pattern)]
        chosen = [(file, read) for file, read in files if not wanted or file in wanted]
        found = [finding for file, read in chosen for finding in lint(file, read)]
        wrong = [str(finding) for finding in found if wanted or not exceptions.cover(finding)]
        if not wanted:
            wrong += exceptions.unused(file for file, _ in files)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
