"""Lines and files above the limits of CONTRIBUTING.md: `python -m tests.sizes` names each."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: ending of a file's name: (columns, lines); a tab goes to the next multiple of 8 (.editorconfig)
LIMITS = {".c": (120, 700), ".h": (120, 700), ".py": (100, 500)}
TAB = 8


def tree() -> list[str]:
    """Files of the tree, new ones too."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return names.splitlines()


def above(name: str, text: str) -> Iterator[str]:
    """What is too long in the file of this name."""
    columns, most = LIMITS[Path(name).suffix]
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        width = len(line.expandtabs(TAB))
        if width > columns:
            yield f"{name}:{number}: {width} columns; limit {columns}"
    if len(lines) > most:
        yield f"{name}: {len(lines)} lines; limit {most}"


def main() -> int:
    """1 where a file of the tree is above a limit."""
    names = [n for n in tree() if Path(n).suffix in LIMITS and (ROOT / n).is_file()]
    found = [line for name in names for line in above(name, (ROOT / name).read_text("utf-8"))]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
