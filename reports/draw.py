"""Draws a report's charts: report.json and the Vega-Lite specs of reports/charts -> one SVG file for each chart.

usage: draw.py REPORT_JSON OUT_DIR

Offline and deterministic: vl-convert carries its own Vega, and nothing of the drawing depends on time or place.
"""

import json
import pathlib
import sys

import vl_convert

ROOM = pathlib.Path(__file__).resolve().parent / "charts"
# The Vega-Lite that the specs are written for; vl-convert carries several.
VEGA_LITE = "5.20"


def draw(chart, style):
    """The SVG text of one chart of report.json."""
    text = (ROOM / f"{chart['spec']}.vl.json").read_text(encoding="utf-8")
    # Colours and shapes share a legend only where both know their names beforehand.
    spec = json.loads(text.replace('"domain": "series"', f'"domain": {json.dumps(chart["series"])}'))
    # Colours are of middle lightness and the ground is transparent, so that light and dark pages both carry the picture.
    spec["config"] = style
    spec["datasets"] = {"values": chart["values"]}
    return vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)


def main(report_file, out_dir):
    """Draws every chart; a chart that cannot be drawn is named, and the others are still made."""
    report = json.loads(pathlib.Path(report_file).read_text(encoding="utf-8"))
    style = json.loads((ROOM / "style.json").read_text(encoding="utf-8"))
    out = pathlib.Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for chart in report["charts"] + (report.get("soak") or {}).get("charts", []):
        try:
            svg = draw(chart, style)
        except (OSError, ValueError) as error:
            print(f"draw: chart {chart['name']}: {error}", file=sys.stderr)
            failed += 1
            continue
        (out / f"{chart['name']}.svg").write_text(svg, encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("usage: draw.py REPORT_JSON OUT_DIR", file=sys.stderr)
        sys.exit(2)
    sys.exit(main(sys.argv[1], sys.argv[2]))
