"""What is wrong with a document of limits: asked when a run is planned and when it is judged.

A key, value or metric that no record has would let a misspelt limit pass in silence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from perch.model.figures import encode, is_finite
from perch.model.limits import FACETS, METRICS
from perch.model.text import clean, did_you_mean

#: What a scope's value may be, where only these words are in records.
WORDS = {
    "tool": ["perch", "perftest", "cxi", "iperf", "iperf3", "mori"],
    "backend": ["tcp", "ofi", "verbs", "cxi", "null"],
    "op": ["send", "send-imm", "write", "write-imm", "read", "fetch-add", "compare-swap",
           "atomic-op", "fetch-atomic", "compare-atomic"],
    "kind": ["latency", "bandwidth", "transfer", "sum", "rate"],
    "definition": ["half_round_trip", "completion", "receiver_acknowledged",
                   "initiator_completion", "receiver_payload", "sender_payload",
                   "batch_completion"],
    "scope": ["hardware", "software", "simulated", "imported"],
    "completion": ["busy", "event"],
    "layer": ["roce", "ethernet", "infiniband", "slingshot", "loopback", "shm", "iwarp"],
    "hop_class": ["same_switch", "same_group", "cross_group"],
    "memory": ["host", "gpu"],
}  # fmt: skip
NAMES = ("provider", "test", "client", "server")
NUMBERS = ("size_bytes", "queue_pairs", "batch", "devices")

#: What a soak knows of a flow before any record.
SOAK_SCOPES = (
    "tool", "backend", "provider", "op", "kind", "test", "scope", "client", "server", "size_bytes",
)  # fmt: skip

#: How the unit begins of a bound that is relative to this.
RELATIVE_UNITS = {
    "ceiling": "of the ceiling", "peers": "of the median", "baseline": "of the baseline",
}  # fmt: skip
#: Changes and slopes, which may be negative; no other figure is.
SIGNED = r"soak\.([a-z0-9]+_percent|[a-z_]+_per_hour)"
OF_CEILING = ("bandwidth.gbit_s", "bandwidth.min_interval_gbit_s")

SEVERITIES = ("required", "advisory")

KEYS = ("id", "title", "scope", "metric", "bound", "unit", "source", "severity", "remedy")
#: What merging a site's own file into a set adds.
MERGED_KEYS = (*KEYS, "from", "replaces", "removed")
DOCUMENT_KEYS = ("schema", "name", "title", "limits")

#: Greater than any figure: an infinity that was written as a number.
MOST = 1e300

_UNITS = (
    (r"soak\.[a-z0-9]*_us|latency_us\.(?!count).*|derived\.p99_minus_p50_us|tcp\.initial_rtt_us",
     "us"),
    (r"(bandwidth\..*|soak\.interval_)gbit_s", "Gb/s"),
    (r"derived\.stall_s|soak\.(stall|clock)_s|cpu\.[a-z_]*_s", "s"),
    (r"tcp\.(window|initial_cwnd|mss)_bytes", "bytes"),
)  # fmt: skip


class Fault(NamedTuple):
    """`limit`: its id or number, None: of the document. `key`: where in the limit, dotted."""

    limit: str | None
    key: str | None
    says: str

    def __str__(self) -> str:
        """As people read it, without the file."""
        where = [] if self.limit is None else [f"limit {shown(self.limit)}"]
        where += [] if self.key is None else [self.key]
        return clean(": ".join([", ".join(where), self.says] if where else [self.says]))


def shown(value: Any) -> str:
    """A value as JSON; what JSON has no word for as Python has it."""
    try:
        return encode(value).decode()
    except (TypeError, ValueError):
        return repr(value)


def is_text(value: Any) -> bool:
    """Whether it is a text with something to read."""
    return isinstance(value, str) and bool(value.strip())


def _fault(key: str | None, says: str) -> Fault:
    return Fault(None, key, says)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _listed(words: Any) -> str:
    return ", ".join(words)


# ---- one limit ----------------------------------------------------------------------------------


def _range_faults(at: str, value: dict[Any, Any]) -> Iterator[Fault]:
    if not value:
        yield _fault(at, "an empty range matches nothing; give min, max or both")
    for key, bound in value.items():
        if key not in ("min", "max"):
            yield _fault(f"{at}.{key}", "unknown; a range has min, max or both")
        if not is_finite(bound):
            yield _fault(f"{at}.{key}", _no_number(bound))
    yield from _crossed(at, value, "it matches nothing")


def _no_number(value: Any) -> str:
    """YAML 1.1 reads 1e300 as text: its numbers have a point and a sign."""
    try:
        float(value if isinstance(value, str) else "")
    except ValueError:
        return "not a number"
    return f"not a number: YAML reads {shown(value)} as text; write such as 90 or 1.0e+3"


def _crossed(at: str, value: dict[Any, Any], so: str) -> Iterator[Fault]:
    least, most = value.get("min"), value.get("max")
    if is_finite(least) and is_finite(most) and least > most:
        yield _fault(at, f"min {shown(least)} is above max {shown(most)}: {so}")


def _number_faults(at: str, value: Any) -> Iterator[Fault]:
    if isinstance(value, dict):
        yield from _range_faults(at, value)
        return
    for one in _each(value):
        if not is_finite(one) or one < 0:
            yield _fault(at, f"{shown(one)} is not a number from 0: it matches nothing")


def _word_faults(at: str, value: Any, valid: list[str] | None) -> Iterator[Fault]:
    for one in _each(value):
        if valid is None and not is_text(one):
            yield _fault(at, f"{shown(one)} is not a name: it matches nothing")
        elif valid is not None and one not in valid:
            near = did_you_mean(str(one), valid)
            yield _fault(at, f"no record has {shown(one)}{near}; valid: {_listed(valid)}")


def _facet_faults(key: str, value: Any) -> Iterator[Fault]:
    at = f"scope.{key}"
    if value == []:
        yield _fault(at, "an empty list matches nothing")
    elif key == "bidirectional":
        if not isinstance(value, bool):
            yield _fault(at, "neither true nor false: it matches nothing")
    elif key in NUMBERS:
        yield from _number_faults(at, value)
    elif key in NAMES or key in WORDS:
        yield from _word_faults(at, value, WORDS.get(key))
    else:
        near = did_you_mean(str(key), FACETS)
        yield _fault(at, f"unknown{near}; a scope may have {_listed(sorted(FACETS))}")


def _kinds_with(metric: str) -> tuple[str, ...] | None:
    """The kinds of record that have this figure; None: all may."""
    room, name = metric.split(".", 1)
    if room == "bandwidth" or name == "gbit_s":
        return ("bandwidth", "transfer", "sum", "rate")
    if room == "latency_us" or name == "p99_minus_p50_us":
        return ("latency", "transfer", "sum")
    return ("latency",) if room == "agreement" else None


def _kind_faults(metric: str, scope: dict[Any, Any]) -> Iterator[Fault]:
    kinds = [kind for kind in _each(scope.get("kind")) if kind is not None]
    having = _kinds_with(metric)
    if having is not None and kinds and not any(kind in having for kind in kinds):
        named = _listed(map(str, kinds))
        yield _fault("scope.kind", f"no record of kind {named} has {metric}: it matches nothing")


def _soak_faults(limit: dict[Any, Any]) -> Iterator[Fault]:
    """A soak's limits bound its intervals, before any record."""
    scope, bound = limit.get("scope"), limit.get("bound")
    for key in scope if isinstance(scope, dict) else ():
        if key not in SOAK_SCOPES:
            yield _fault(f"scope.{key}", f"a limit of a soak may have {_listed(SOAK_SCOPES)}")
    if isinstance(bound, dict) and "of" in bound:
        yield _fault("bound.of", "a limit of a soak cannot be relative")


def _unit_faults(metric: str, bound: Any, unit: Any) -> Iterator[Fault]:
    relation = bound.get("of") if isinstance(bound, dict) else None
    if relation is not None:
        wanted = RELATIVE_UNITS.get(str(relation))
    else:
        wanted = next((unit for like, unit in _UNITS if re.fullmatch(like, metric)), None)
    if wanted is None or not is_text(unit) or unit == wanted:
        return
    # "Gb/s, both ways"; "of the median of comparable pairs"
    if unit.startswith(f"{wanted},") or (relation is not None and unit.startswith(wanted)):
        return
    yield _fault("unit", f"{shown(unit)} is not the unit of {metric}, which is {shown(wanted)}")


def _metric_faults(limit: dict[Any, Any]) -> Iterator[Fault]:
    metric = limit.get("metric")
    if not isinstance(metric, str):
        yield _fault("metric", "no metric")
    elif metric not in METRICS:
        alike = [name for name in METRICS if name.startswith(metric.split(".")[0] + ".")]
        near = did_you_mean(metric, METRICS) or f"; valid: {_listed(alike or METRICS)}"
        yield _fault("metric", f"no record has {shown(metric)}{near}")
    else:
        yield from _unit_faults(metric, limit.get("bound"), limit.get("unit"))
        if metric.startswith("soak."):
            yield from _soak_faults(limit)
        if isinstance(limit.get("scope"), dict):
            yield from _kind_faults(metric, limit["scope"])


def _relation_faults(bound: dict[Any, Any], metric: Any) -> Iterator[Fault]:
    relation = bound["of"]
    if relation not in tuple(RELATIVE_UNITS):
        yield _fault("bound.of", f"{shown(relation)} is not one of {_listed(RELATIVE_UNITS)}")
        return
    for one in (bound.get("min"), bound.get("max")):
        if is_finite(one) and one <= 0:
            yield _fault("bound", "a share must be above 0, such as 0.9")
    if relation == "ceiling":
        if metric not in OF_CEILING:
            yield _fault("bound.of", f"only {' and '.join(OF_CEILING)} have a ceiling")
        least = bound.get("min")
        if is_finite(least) and least > 1:
            yield _fault("bound.min", "no figure can be above its ceiling, which is 1")
    elif not (isinstance(metric, str) and metric.startswith(("latency_us.", "bandwidth."))):
        yield _fault("bound.of", "only figures of latency_us and bandwidth can have a share")


def _bound_faults(bound: Any, metric: Any) -> Iterator[Fault]:
    if not isinstance(bound, dict):
        yield _fault("bound", "no bound")
        return
    for key in bound:
        if key not in ("min", "max", "of"):
            yield _fault(f"bound.{key}", "unknown; a bound has min, max or both, and may have of")
    for key in ("min", "max"):
        end = bound.get(key)
        if key in bound and not (is_finite(end) and abs(end) < MOST):
            yield _fault(f"bound.{key}", _no_number(end))
    if not is_finite(bound.get("min")) and not is_finite(bound.get("max")):
        yield _fault("bound", "no bound: neither min nor max is a number")
    yield from _crossed("bound", bound, "nothing can meet it")
    least = bound.get("min")
    hollow = bound.keys() == {"min"} and is_finite(least) and least <= 0
    if hollow and metric in METRICS and not re.fullmatch(SIGNED, metric):
        yield _fault("bound.min", f"every figure meets it, as no {metric} is below 0")
    if "of" in bound:
        yield from _relation_faults(bound, metric)


def _text_faults(limit: dict[Any, Any]) -> Iterator[Fault]:
    name = limit.get("id")
    if isinstance(name, bool | int | float):  # `id: no` is false in YAML
        yield _fault("id", f"YAML reads it as {shown(name)}: put it in quotes")
    elif not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name):
        yield _fault("id", "an id has letters, digits, '.', '_' and '-' only")
    for key in ("title", "unit", "remedy"):
        if not is_text(limit.get(key)):
            yield _fault(key, f"no {key}")
    if not is_text(limit.get("source")):
        yield _fault("source", "no source: name a document that can be checked, or site policy")
    severity = limit.get("severity")
    if severity not in SEVERITIES:
        near = did_you_mean(str(severity), SEVERITIES)
        yield _fault("severity", f"{shown(severity)} is neither required nor advisory{near}")


def _removal_faults(removed: Any) -> Iterator[Fault]:
    given = removed if isinstance(removed, dict) else {}
    if removed is not None and not (is_text(given.get("source")) and is_text(given.get("file"))):
        yield _fault("removed", "a removal names its file and its reason (source)")


def _limit_faults(limit: Any, keys: tuple[str, ...]) -> Iterator[Fault]:
    if not isinstance(limit, dict):
        yield _fault(None, "a limit is an object with keys")
        return
    for key in limit:
        if key not in keys:
            near = did_you_mean(str(key), KEYS)
            yield _fault(str(key), f"unknown{near}; a limit has {_listed(KEYS)}")
    yield from _text_faults(limit)
    if isinstance(limit.get("scope"), dict):
        for key, value in limit["scope"].items():
            yield from _facet_faults(key, value)
    else:
        yield _fault("scope", "no scope; {} is every record")
    yield from _metric_faults(limit)
    yield from _bound_faults(limit.get("bound"), limit.get("metric"))
    yield from _removal_faults(limit.get("removed"))


# ---- relative limits and their partners ---------------------------------------------------------


def _span(value: Any) -> tuple[float, float] | None:
    """The least and the greatest number of a scope's value; None where it has others."""
    if isinstance(value, dict):
        ends = [value.get("min", -MOST), value.get("max", MOST)]
    else:
        ends = _each(value)
    numbers = [end for end in ends if is_finite(end)]
    return (min(numbers), max(numbers)) if ends and len(numbers) == len(ends) else None


def _takes_in(wide: Any, narrow: Any) -> bool:
    """Whether a scope's value takes in all of another's."""
    if narrow is None:
        return False
    if isinstance(wide, dict):
        outer, inner = _span(wide), _span(narrow)
        return bool(outer and inner and inner[0] >= outer[0] and inner[1] <= outer[1])
    if isinstance(narrow, dict):
        return False
    return all(one in _each(wide) for one in _each(narrow))


def _is_partner(other: dict[Any, Any], limit: dict[Any, Any], side: str) -> bool:
    bound, scope = other.get("bound"), other.get("scope")
    return (
        other.get("removed") is None
        and isinstance(bound, dict)
        and bound.get("of") in (None, "ceiling")
        and bound.get(side) is not None
        and other.get("metric") == limit.get("metric")
        and (other.get("severity") == "required" or limit.get("severity") == "advisory")
        and isinstance(scope, dict)
        and all(_takes_in(wide, limit["scope"].get(key)) for key, wide in scope.items())
    )


def _partner_faults(limit: dict[Any, Any], limits: list[dict[Any, Any]]) -> Iterator[Fault]:
    """A fabric that is bad everywhere is like its peers and like its past.

    So such a bound speaks only beside one that is absolute, or a share of what was bought.
    """
    bound = limit.get("bound")
    if not isinstance(bound, dict) or limit.get("removed") is not None:
        return
    relation = bound.get("of")
    if relation in (None, "ceiling"):
        return
    for side in ("min", "max"):
        if bound.get(side) is None:
            continue
        if not any(_is_partner(other, limit, side) for other in limits):
            severity = "required " if limit.get("severity") == "required" else ""
            yield _fault(
                "bound.of",
                f"relative, and no {severity}absolute limit of {limit.get('metric')} with a {side} "
                "(or share of the ceiling) covers its scope; a bad fabric is like itself",
            )


# ---- a whole document ---------------------------------------------------------------------------


def _document_faults(document: Any, keys: tuple[str, ...]) -> Iterator[Fault]:
    if not isinstance(document, dict):
        yield _fault(None, "not a perch.limits/1 document")
    elif document.get("schema") != "perch.limits/1":
        said = shown(document.get("schema"))
        yield _fault("schema", f"{said} is not perch.limits/1")
    elif not isinstance(document.get("limits"), list) or not document["limits"]:
        yield _fault("limits", "no list of limits")
    else:
        for key in document:
            if key not in keys:
                yield _fault(str(key), f"unknown; a set has {_listed(DOCUMENT_KEYS)}")


def name_of(limit: Any) -> str | None:
    """Its id, where it has one."""
    name = limit.get("id") if isinstance(limit, dict) else None
    return name if isinstance(name, str) else None


def _faults(
    document: Any, document_keys: tuple[str, ...], keys: tuple[str, ...], *, partners: bool
) -> Iterator[Fault]:
    of_document = list(_document_faults(document, document_keys))
    yield from of_document
    if any(fault.key in (None, "schema", "limits") for fault in of_document):
        return
    limits = document["limits"]
    counts = Counter(name for limit in limits if (name := name_of(limit)) is not None)
    for name in sorted(counts):
        if counts[name] > 1:
            yield Fault(name, "id", f"{counts[name]} limits have this id")
    objects = [limit for limit in limits if isinstance(limit, dict)]
    for number, limit in enumerate(limits, 1):
        name = name_of(limit) or f"number {number}"
        found = list(_limit_faults(limit, keys))
        # a scope that is wrong cannot be compared with others
        if partners and isinstance(limit, dict) and isinstance(limit.get("scope"), dict):
            found += _partner_faults(limit, objects)
        yield from (fault._replace(limit=name) for fault in found)


def file_faults(document: Any) -> Iterator[Fault]:
    """Of a set as people write it, whole in itself."""
    return _faults(document, DOCUMENT_KEYS, KEYS, partners=True)


def site_faults(document: Any) -> Iterator[Fault]:
    """Of a site's own file: the partners of its relative limits may stand in the set."""
    return _faults(document, DOCUMENT_KEYS, KEYS, partners=False)


def run_faults(document: Any) -> Iterator[Fault]:
    """Of inputs/limits.json: a set, or what merging a site's file into it made."""
    return _faults(document, (*DOCUMENT_KEYS, "files"), MERGED_KEYS, partners=True)


# ---- where it stands ----------------------------------------------------------------------------


def _first_match(lines: list[str], start: int, pattern: str) -> int | None:
    like = re.compile(pattern)
    return next((n for n in range(start, len(lines)) if like.search(lines[n])), None)


def _numbered(lines: list[str], number: int) -> int | None:
    """Where a limit without an id begins; None where others are read before it."""
    if _first_match(lines, 0, r"^extends\s*:") is not None:
        return None
    start = _first_match(lines, 0, r"^limits\s*:") or 0
    begins = [n for n in range(start, len(lines)) if re.match(r"\s*-\s", lines[n])]
    dashes = [lines[n].index("-") for n in begins]
    own = [n for n, dash in zip(begins, dashes, strict=True) if dash == dashes[0]]
    return own[number - 1] if number <= len(own) else None


def line_of(fault: Fault, text: str) -> int | None:
    """The line of the fault in YAML or JSON, from 1; None where it is not known.

    A limit begins with its id or within a few lines of it; the key's last part is the first of its
    name from there on.
    """
    lines = text.split("\n")
    start: int | None = 0
    if fault.limit is not None and (unnamed := re.fullmatch("number ([0-9]+)", fault.limit)):
        start = _numbered(lines, int(unnamed[1]))
    elif fault.limit is not None:
        name = re.escape(fault.limit)
        start = _first_match(
            lines, 0, rf"(^|[\s{{,\"-])id\"?\s*:\s*[\"']?{name}[\"']?\s*(,|}}|#|$)"
        )
    if start is None or (fault.limit is None and fault.key is None):
        return None
    if fault.key in (None, "id"):
        return start + 1
    word = re.escape(str(fault.key).rsplit(".", 1)[-1])
    at = _first_match(lines, start, rf"(^|[\s{{,\"'-]){word}[\"']?\s*:")
    if fault.limit is None:
        return None if at is None else at + 1
    following = _first_match(lines, start + 1, r"^\s*-?\s*(\{\s*)?\"?id\"?\s*:")
    inside = at is not None and (following is None or at < following)
    return (at if inside and at is not None else start) + 1


def at(fault: Fault, file: str, text: str) -> str:
    """`site.yml:9: limit "a", bound.max: not a number`."""
    line = line_of(fault, text)
    return f"{clean(file)}{'' if line is None else f':{line}'}: {fault}"
