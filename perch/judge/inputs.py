"""What a run was planned with: inputs/limits.json, and the accepted run in inputs/baseline.json."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from perch.judge.raw import UNREADABLE
from perch.model import limit_sets
from perch.model.baseline import AcceptedFigure, Baseline, BaselineDocument
from perch.model.figures import is_finite
from perch.model.json_keys import repeated_key
from perch.model.limits import Limits

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


def _is_figure(figure: AcceptedFigure, terms: list[str]) -> bool:
    return (
        is_finite(figure.value)
        and figure.value > 0
        and figure.n >= 1
        and figure.better in ("higher", "lower")
        and (figure.cv_percent is None or figure.cv_percent >= 0)
        and 0 <= figure.of < len(terms)
    )


def _has_fabric(document: BaselineDocument) -> bool:
    hosts = document.fabric.get("hosts")
    if not isinstance(hosts, dict):
        return False
    ends = [host.get("ends") if isinstance(host, dict) else None for host in hosts.values()]
    return all(isinstance(of, list) and all(isinstance(end, dict) for end in of) for of in ends)


#: A time as Perch writes it, in UTC: such texts have the order of their times.
_time = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def _baseline_faults(document: BaselineDocument) -> Iterator[str]:
    if document.schema != "perch.baseline/1":
        yield f"its schema is '{document.schema}', not perch.baseline/1"
    elif not _time.fullmatch(document.accepted):
        yield "it does not say when it was accepted"
    elif not _has_fabric(document):
        yield "it does not say of which fabric it is"
    elif not document.figures:
        yield "it holds no figures"
    else:
        for key, figure in document.figures.items():
            if not _is_figure(figure, document.terms):
                yield f"figure '{key}' is not one that an accepted run has"


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
        return Baseline(fault=f"{name} cannot be used: {error}", given=True)
    except UNREADABLE as error:
        return Baseline(fault=f"{name} is damaged: {error}", given=True)
    repeated = repeated_key(content)
    if repeated is not None:
        why = f"{name} has the key '{repeated}' twice in one object"
        return Baseline(fault=why, given=True)
    fault = "; ".join(islice(_baseline_faults(document), FAULTS_MAX))
    if fault:
        return Baseline(fault=f"{name} cannot be used: {fault}", given=True)
    return Baseline(document, given=True)
