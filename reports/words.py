"""Fills a template as ansible.builtin.template does: words.py TEMPLATE NAME VIEW OUT. NAME is what the template calls the JSON in VIEW.

For what needs no host and no inventory: Ansible takes ten seconds to begin.
"""

import json
import pathlib
import sys

try:
    import jinja2
except ImportError:
    sys.exit(3)

template, name, view, out = sys.argv[1:]
folder = pathlib.Path(__file__).resolve().parent / "templates"
engine = jinja2.Environment(loader=jinja2.FileSystemLoader(folder), trim_blocks=True, keep_trailing_newline=True, autoescape=False)
values = {name: json.loads(pathlib.Path(view).read_text(encoding="utf-8"))}
pathlib.Path(out).write_text(engine.get_template(template).render(values), encoding="utf-8")
