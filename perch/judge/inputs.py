"""What a run was planned with: inputs/limits.json, and the accepted run in inputs/baseline.json."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from perch.judge.raw import UNREADABLE
from perch.model import limit_sets
from perch.model.baseline import Baseline, BaselineDocument
from perch.model.json_keys import repeated_key
from perch.model.limits import Limits
from perch.model.text import explained

#: A message names so many faults of a document.
FAULTS_MAX = 3

_baseline = msgspec.json.Decoder(BaselineDocument)


def _bytes(path: Path) -> bytes | None:
    """None where it is not a file that can be read; a link may lead out of the run."""
    try:
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None
    except OSError:
        return None


def read_limits(root: Path) -> Limits:
    """The limits of a run, or why they cannot be used."""
    return limit_sets.decoded(_bytes(root / "inputs/limits.json"))


def _baseline_faults(document: BaselineDocument) -> Iterator[str]:
    """What the types cannot say."""
    if document.schema != "perch.baseline/1":
        yield f"its schema is '{document.schema}', not perch.baseline/1"
    for key, figure in document.figures.items():
        if figure.of >= len(document.terms):
            yield f"figure '{key}' has no terms: its 'of' is {figure.of}"


def read_baseline(root: Path) -> Baseline:
    """The accepted run that a run is compared with, or why it cannot be used."""
    path = root / "inputs/baseline.json"
    name = "inputs/baseline.json"
    if not (path.exists() or path.is_symlink()):
        return Baseline(
            fault="no run of this fabric and suite had been accepted when this one was planned "
            "(make accept)"
        )
    content = _bytes(path)
    if content is None:
        return Baseline(fault=f"{name} cannot be read", given=True)
    return decoded_baseline(content, name)


def decoded_baseline(content: bytes, name: str) -> Baseline:
    """An accepted run, or why it cannot be used. `name`: the file that a fault names."""
    try:
        document = _baseline.decode(content)
    except msgspec.ValidationError as error:
        return Baseline(fault=f"{name} cannot be used: {explained(error)}", given=True)
    except UNREADABLE as error:
        return Baseline(fault=f"{name} is damaged: {explained(error)}", given=True)
    repeated = repeated_key(content)
    if repeated is not None:
        why = f"{name} has the key '{repeated}' twice in one object"
        return Baseline(fault=why, given=True)
    fault = "; ".join(islice(_baseline_faults(document), FAULTS_MAX))
    if fault:
        return Baseline(fault=f"{name} cannot be used: {fault}", given=True)
    return Baseline(document, given=True)
