"""Fills a template of reports/templates."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from perch.home import HOME

ROOM = HOME / "reports/templates"


def filled(template: str, **values: Any) -> str:
    """Markdown; every text in `values` is finished (perch.views.words)."""
    environment = Environment(
        loader=FileSystemLoader(ROOM),
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        undefined=StrictUndefined,
    )
    return environment.get_template(template).render(values)
