"""Times of records as seconds since 1970."""

from __future__ import annotations

import re
from datetime import datetime

_fraction = re.compile(r"\.[0-9]+(?=Z$)")


def instant(moment: object) -> float | None:
    """Of a time such as 2026-11-21T08:04:12.350Z."""
    if not isinstance(moment, str):
        return None
    try:
        begun = datetime.strptime(_fraction.sub("", moment), "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        return None
    fraction = _fraction.search(moment)
    return begun.timestamp() + (float(fraction[0]) if fraction else 0)
