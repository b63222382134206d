"""The map of pairs: every colour is seen on a light and on a dark page."""

from __future__ import annotations

import re

import pytest

from perch.views import draw
from perch.views.charts import Chart

HOSTS = [f"h{number}" for number in range(1, 9)]


@pytest.fixture(scope="module")
def drawn() -> str:
    values = [
        {
            "client": client,
            "server": server,
            "percent": 40 + 60 * (8 * row + column) / 63,
            "said": f"{client} to {server}",
        }
        for row, client in enumerate(HOSTS)
        for column, server in enumerate(HOSTS)
    ]
    return draw.svg(Chart("map", "map", "Pairs", "", "", [], values))


def luminance(colour: tuple[int, ...]) -> float:
    """As WCAG 2.1 defines it."""
    shares = [one / 255 for one in colour]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def colours(svg: str) -> set[tuple[int, ...]]:
    short = re.findall(r'(?:fill|stroke)="#([0-9a-f]{3})"', svg)
    hexes = re.findall(r'(?:fill|stroke)="#([0-9a-f]{6})"', svg)
    hexes += ["".join(2 * one for one in digits) for digits in short]
    found = {tuple(bytes.fromhex(one)) for one in hexes}
    return found | {
        tuple(map(int, one)) for one in re.findall(r'"rgb\((\d+), ?(\d+), ?(\d+)\)"', svg)
    }


# --ground of page.css
@pytest.mark.parametrize("ground", [(255, 255, 255), (13, 17, 23)])
def test_cells_and_legend_have_a_contrast_of_three(drawn: str, ground: tuple[int, ...]) -> None:
    assert len(colours(drawn)) > 20
    faint = {}
    for colour in colours(drawn):
        low, high = sorted((luminance(colour), luminance(ground)))
        if (ratio := (high + 0.05) / (low + 0.05)) < 3:
            faint[colour] = round(ratio, 2)
    assert faint == {}
