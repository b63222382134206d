#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `perch hist` with PyPI's hdrhistogram, which is an implementation by other people.

Both read what the other writes, merge it, and must give the same quantiles; texts that are damaged
on purpose must be refused with exit 6. Prints TAP. PERCH names another program than
engine/build/perch; SEED repeats a run.
"""

import base64
import json
import os
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

from hdrh.histogram import HdrHistogram

HIGHEST = 3600 * 10**9
QUANTILES = [0.001, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 1.0]
PERCH = os.environ.get(
    "PERCH", Path(__file__).resolve().parent.parent / "engine" / "build" / "perch"
)
SEED = int(os.environ.get("SEED", "20261121"))


def new():
    return HdrHistogram(1, HIGHEST, 3)


def recorded(values):
    histogram = new()
    for value in values:
        assert histogram.record_value(value), value
    return histogram


def hist(*texts, args=()):
    """Runs perch hist on texts; answers (exit code, standard output, standard error)."""
    quantiles = ",".join(str(q) for q in QUANTILES)
    done = subprocess.run(
        [PERCH, "hist", "--quantiles", quantiles, *args],
        input="".join(text + "\n" for text in texts),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def merged(histograms):
    total = new()
    for histogram in histograms:
        total.add(HdrHistogram.decode(histogram.encode()))
    return total


def compare(histograms):
    """Hands histograms to perch hist; answers what differs from the oracle's own merge."""
    code, out, err = hist(*(h.encode().decode() for h in histograms))
    if code != 0:
        return f"exit {code}: {err}"
    perch, oracle = json.loads(out), merged(histograms)
    wrong = []
    if perch["count"] != oracle.get_total_count():
        wrong.append(f"count {perch['count']} for {oracle.get_total_count()}")
    for q, value in perch["quantiles"].items():
        supported = float(q) == 1 or oracle.get_total_count() * (1 - float(q)) >= 10 - 1e-6
        expected = oracle.get_value_at_percentile(float(q) * 100) if supported else None
        if value != expected:
            wrong.append(f"quantile {q}: {value} for {expected}")
    if perch["max"] != oracle.get_max_value() or perch["min"] != oracle.get_min_value():
        wrong.append(f"ends {perch['min']}..{perch['max']}")
    if abs(perch["mean"] - oracle.get_mean_value()) > 1e-9 * perch["mean"]:
        wrong.append(f"mean {perch['mean']} for {oracle.get_mean_value()}")
    # ours divides by count - 1: the oracle's deviation is that of the whole population
    bessel = (perch["count"] / max(perch["count"] - 1, 1)) ** 0.5
    if abs(perch["stddev"] - oracle.get_stddev() * bessel) > 1e-6 * perch["stddev"] + 1e-6:
        wrong.append(f"stddev {perch['stddev']} for {oracle.get_stddev() * bessel}")
    back = HdrHistogram.decode(perch["histogram"]["data"])
    if list(back.counts) != list(oracle.counts):
        wrong.append("the counts that perch encodes differ")
    if back.highest_trackable_value != HIGHEST or back.significant_figures != 3:
        wrong.append("the layout that perch encodes differs")
    return "; ".join(wrong)


def log_uniform(rng, n, decades=12):
    return [int(10 ** rng.uniform(0, decades)) for _ in range(n)]


def edges():
    """Both sides of every power of two: where buckets begin."""
    return [v for k in range(42) for v in (2**k - 1, 2**k, 2**k + 1) if v <= HIGHEST] + [0, HIGHEST]


def agreements():
    rng = random.Random(SEED)
    yield "one value", lambda: compare([recorded([1234567])])
    yield "zero", lambda: compare([recorded([0, 0, 0])])
    yield "edges of all buckets", lambda: compare([recorded(edges())])
    yield "every value below 5000", lambda: compare([recorded(range(5000))])
    for n in (10, 99, 1000, 10000, 100000):
        values = log_uniform(rng, n)
        yield f"{n} log-uniform values", lambda values=values: compare([recorded(values)])
    spread = [recorded(log_uniform(rng, 3000, d)) for d in (3, 6, 9, 12)]
    yield "four merged", lambda: compare(spread)
    yield "one merged with itself", lambda: compare([spread[0]] * 3)
    many = new()
    for value in (10, 1000, 10**6, 10**12):
        many.record_value(value, 2**45 + value)
    yield "counts of 46 bits", lambda: compare([many])


def distribution_agrees():
    histogram = recorded(log_uniform(random.Random(SEED), 50000, 9))
    code, out, err = hist(histogram.encode().decode(), args=["--distribution"])
    if code != 0:
        return err
    points = json.loads(out)["distribution"]
    if not 50 <= len(points) <= 200 or points[-1][1] != 50000:
        return f"{len(points)} points up to {points[-1]}"
    cumulative = {}
    seen = 0
    for i in range(histogram.counts_len):
        if histogram.counts[i]:
            seen += histogram.counts[i]
            cumulative[
                histogram.get_highest_equivalent_value(histogram.get_value_from_index(i))
            ] = seen
    wrong = [p for p in points if cumulative.get(p[0]) != p[1]]
    return f"points that the oracle has not: {wrong}" if wrong or points != sorted(points) else ""


def sealed(
    counts, cookie=0x1C849313, length=None, offset=0, digits=3, low=1, high=HIGHEST, ratio=1.0
):
    length = len(counts) if length is None else length
    head = struct.pack(">IIIIQQd", cookie, length, offset, digits, low, high, ratio)
    return packed(zlib.compress(head + counts))


def packed(deflated, cookie=0x1C849314, length=None):
    length = len(deflated) if length is None else length
    return base64.b64encode(struct.pack(">II", cookie, length) + deflated).decode()


def damages():
    good = b"\x02" * 8
    whole = zlib.compress(struct.pack(">IIIIQQd", 0x1C849313, 8, 0, 3, 1, HIGHEST, 1.0) + good)
    text = packed(whole)
    yield "the pattern of the others is itself read", None, text
    yield "cut in the middle", 6, text[: len(text) // 2]
    yield "cut by one", 6, text[:-1]
    yield "not base64", 6, "HISTFAAA!!!!"
    yield "other outer cookie", 6, packed(whole, cookie=0x1C849304)
    yield "outer length too long", 6, packed(whole, length=len(whole) + 1)
    yield "outer length too short", 6, packed(whole, length=len(whole) - 1)
    yield "bytes behind the deflated ones", 6, packed(whole + b"xxxx")
    yield "not deflated", 6, packed(b"x" * 40)
    yield "a bomb of 100 MB", 6, packed(zlib.compress(bytes(100_000_000)))
    yield "no counts' header", 6, packed(zlib.compress(b"\x1c\x84\x93\x13"))
    yield "other inner cookie", 6, sealed(good, cookie=0x1C849301)
    yield "inner length too long", 6, sealed(good, length=9)
    yield "shifted", 6, sealed(good, offset=1)
    yield "two digits", 6, sealed(good, digits=2)
    yield "another lowest value", 6, sealed(good, low=1000)
    yield "a wider range", 6, sealed(good, high=HIGHEST * 2)
    yield "scaled", 6, sealed(good, ratio=2.0)
    yield "ends within a number", 6, sealed(b"\x80")
    yield "zeros beyond the end", 6, sealed(b"\x81\x90\x04" + b"\x02")
    yield "a count beyond the end", 6, sealed(b"\xff\x8f\x04" + b"\x02\x02")
    yield "the lowest integer as a run of zeros", 6, sealed(b"\xff" * 9)
    yield "a count of 2^62", 6, sealed(b"\x80" * 8 + b"\x80")
    yield "counts that add up too high", 6, sealed(b"\x80\x80\x80\x80\x80\x80\x80\x10" * 3)


def refusal(code, text):
    got, out, err = hist(text)
    if code is None:
        return "" if got == 0 and json.loads(out)["count"] == 8 else f"exit {got}: {err}"
    if got != code or out or "line 1" not in err:
        return f"exit {got}, output {out!r}, error {err!r}"
    return ""


def main():
    cases = list(agreements())
    cases.append(("distribution", distribution_agrees))
    cases += [
        (f"damaged: {name}", lambda c=code, t=text: refusal(c, t)) for name, code, text in damages()
    ]
    print(f"1..{len(cases)}")
    failed = 0
    for number, (name, check) in enumerate(cases, 1):
        wrong = check()
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        if wrong:
            failed += 1
            print(f"# {wrong} (SEED={SEED})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
