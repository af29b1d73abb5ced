"""The file formats of `check`: a row here, and a module of that name with `render(check) -> str`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

FILE_FORMATS = {
    "markdown": "Write a pull request comment; an empty file if nothing changed.",
    "junit": "Write JUnit XML, one test case per budget.",
    "sarif": "Write SARIF 2.1.0 that points to the lines of the limits and of changed texts.",
    "gitlab": "Write GitLab code quality JSON.",
}
"""Name of the option, and its help."""
READ_SUFFIXES = {"sarif": (".json",), "gitlab": (".json",)}
"""Suffixes that such a file has in common with what commands read."""


def render_format(name: str, check: Mapping[str, Any]) -> str:
    """The file's text, from the object of `check --json`; "" where there is nothing to say."""
    text: str = import_module(f"cachecost.views.check.{name}").render(check)
    return text
