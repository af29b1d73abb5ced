"""The reference pages of the documentation, made from the code: `python -m cachecost.reference docs/reference`."""

from __future__ import annotations

from pathlib import Path

from cachecost.reference import commands, models, python, rules, scenario, strategies
from cachecost.reference.markdown import write_pages

INTRODUCTION = """# Reference

These pages are made from the code by `python -m cachecost.reference docs/reference`; a test holds them to it.

- [Commands](commands.md): every command with every option.
- [Scenario files](scenario.md): every key of the YAML, with its default.
- [Python](python.md): what `import cachecost` gives.
- [Rules](rules.md): what the simulated cache does, row by row, with dates and sources; and the switches.
- [Models and prices](models.md): what each model costs and which limits it has.
- [Strategies](strategies.md): every preset, every primitive of a placement, every change.
- [Codes](../codes/index.md): every code of `explain` and `lint`.
"""


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {
        "index.md": INTRODUCTION,
        "commands.md": commands.page(),
        "scenario.md": scenario.page(),
        "python.md": python.page(),
        "rules.md": rules.page(),
        "models.md": models.page(),
        "strategies.md": strategies.page(),
    }


def write(folder: Path) -> None:
    """Write all pages into a folder; one that is none of them any more is removed."""
    write_pages(folder, pages())
