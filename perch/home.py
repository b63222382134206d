"""Which version this is, and where the files are that come with it besides its modules."""

from __future__ import annotations

import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

#: Holds reports/, and of the engine its checker and version.h. pip puts them into the package
#: (setup/wheel.py); in a checkout and in an installed collection they lie beside it.
HOME = next((one for one in [_PACKAGE / "home"] if one.is_dir()), _PACKAGE.parent)


def version() -> str:
    """Of Perch; the engine's header is the only file that states it."""
    header = (HOME / "engine/src/version.h").read_text(encoding="utf-8")
    (found,) = re.findall(r'^#define PERCH_VERSION "(.+)"$', header, re.MULTILINE)
    return str(found)
