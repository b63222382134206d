"""Packs perch-agent as one file: `setup/zipapp.py OUT`. The same bytes from the same sources."""

import io
import sys
import zipfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]

#: All that it needs beside its own package: how a plan spells commands out, which counters there
#: are, and how a program is run with a deadline.
PARTS = (
    "perch/__init__.py",
    "perch/errors.py",
    "perch/plan/__init__.py",
    "perch/plan/counted.py",
    "perch/plan/template.py",
    "perch/programs.py",
)

#: What the file begins with; a host's own interpreter is named by who calls it.
SHEBANG = b"#!/usr/bin/env python3\n"


def packed() -> bytes:
    own = [
        str(path.relative_to(TOP))
        for path in (TOP / "perch/agent").iterdir()
        if path.suffix in (".py", ".json", ".service")
    ]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        main = (TOP / "perch/agent/__main__.py").read_text(encoding="utf-8")
        archive.writestr(zipfile.ZipInfo("__main__.py"), main, zipfile.ZIP_DEFLATED)
        for name in sorted([*PARTS, *own]):
            text = (TOP / name).read_text(encoding="utf-8")
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return SHEBANG + content.getvalue()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: setup/zipapp.py OUT")
    out = Path(sys.argv[1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(packed())
    out.chmod(0o755)
