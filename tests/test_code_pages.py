"""Each code has its page, as the tables say now: `python -m cachecost.reference.codes docs/codes` writes them."""

from __future__ import annotations

from pathlib import Path

from cachecost.reference.codes import pages

FOLDER = Path(__file__).parents[1] / "docs" / "codes"


def test_every_code_has_its_page_and_no_other_is_there() -> None:
    assert {path.name: path.read_text() for path in FOLDER.glob("*.md")} == pages()
