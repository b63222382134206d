"""Where the files are that come with this version besides its modules."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

#: Holds reports/ and the engine's checker. pip puts them into the package (setup/wheel.py); in a
#: checkout and in an installed collection they lie beside it.
HOME = next((one for one in [_PACKAGE / "home"] if one.is_dir()), _PACKAGE.parent)
