"""The generated files: reference pages, a page for each code, the page of claims, the JSON Schema of scenarios.

`make docs` writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cachecost.scenario.models import schema_text
from tools import seed_claims
from tools.reference import codes, commands, configuration, models, python, rules, scenario, strategies

REFERENCE = "docs/reference"
REFERENCE_PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands.page,
    "configuration.md": configuration.page,
    "scenario.md": scenario.page,
    "python.md": python.page,
    "rules.md": rules.page,
    "models.md": models.page,
    "strategies.md": strategies.page,
}
"""The other pages of docs/reference are written by hand."""
CODES = "docs/codes"
SEEDS = "docs/explanation/seeds.md"
ROOT = Path(__file__).parents[2]
SCHEMA = "scenarios/scenario.schema.json"


def pages() -> dict[str, str]:
    """The generated reference pages: Markdown by file name."""
    return {name: page() for name, page in REFERENCE_PAGES.items()}


def generated() -> dict[str, str]:
    """The text of every generated file, by its path from the root of the repository."""
    reference = {f"{REFERENCE}/{name}": text for name, text in pages().items()}
    code_pages = {f"{CODES}/{name}": text for name, text in codes.pages().items()}
    return {**reference, **code_pages, SEEDS: seed_claims.page(), SCHEMA: schema_text()}


def update(root: Path, only_list: bool = False) -> list[str]:
    """Write the generated files that are missing or out of date, and delete the pages of codes that no longer exist.

    Returns the paths of those files from `root`, sorted; with `only_list` nothing is changed.
    """
    wanted = {path: text.encode() for path, text in generated().items()}
    stale = sorted(path for path in wanted.keys() | _code_pages_in(root) if wanted.get(path) != _content(root / path))
    for path in () if only_list else stale:
        _put(root / path, wanted.get(path))
    return stale


def _code_pages_in(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in (root / CODES).glob("*.md")}


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _put(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
