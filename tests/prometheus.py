#!/usr/bin/env python3
"""Reads Prometheus' text by the client library's parser and its naming rules: prometheus.py FILE.

Prints the samples as JSON, a line each {name, labels, value}. Exit 1 with the rule that is broken.

The rules are those of https://prometheus.io/docs/practices/naming/ and of `promtool check metrics`.
"""

import json
import re
import sys

from prometheus_client.parser import text_string_to_metric_families

# What a name may end in: a base unit, or what is counted.
ENDS = re.compile(
    r"_(seconds|bytes_per_second|records|info|checks|verdict|scope|counter|passed|out|running"
    r"|anomalies|bytes)$"
)
OTHER_UNITS = re.compile(
    r"_(milli|micro|nano|kilo|mega|giga|us|ms|ns|bits|gbit|minutes|percent)(_|$)"
)


def faults(families):
    names, seen = set(), set()
    for family in families:
        if family.name in names:
            yield f"{family.name} stands twice"
        names.add(family.name)
        if not family.documentation or family.type not in ("gauge", "summary"):
            yield f"{family.name} has no HELP, or the type {family.type}"
        if (
            not ENDS.search(family.name)
            or OTHER_UNITS.search(family.name)
            or not family.name.startswith("perch_")
        ):
            yield f"{family.name} is no name with a base unit"
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            if key in seen:
                yield f"{key} stands twice"
            seen.add(key)
            if "quantile" in sample.labels and family.type != "summary":
                yield f"{sample.name} has a quantile and is no summary"


def main(path):
    with open(path, encoding="utf-8", newline="") as file:
        families = list(text_string_to_metric_families(file.read()))
    for family in families:
        for s in family.samples:
            print(
                json.dumps(
                    {
                        "name": s.name,
                        "labels": s.labels,
                        "value": int(s.value) if s.value == int(s.value) else s.value,
                    }
                )
            )
    wrong = list(faults(families))
    print(*wrong, sep="\n", end="", file=sys.stderr)
    return 1 if wrong or not families else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
