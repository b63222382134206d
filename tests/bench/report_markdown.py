"""Fills the report's template as the role does, without Ansible's start: report_markdown.py REPORT_JSON OUT."""

import json
import pathlib
import sys

import jinja2

TEMPLATES = pathlib.Path(__file__).resolve().parent.parent.parent / "reports/templates"

# as ansible.builtin.template does
engine = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), trim_blocks=True, keep_trailing_newline=True, autoescape=False)
view = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
text = engine.get_template("report.md.j2").render(report_view=view, report_judged_dir="runs/bench")
pathlib.Path(sys.argv[2]).write_text(text, encoding="utf-8")
