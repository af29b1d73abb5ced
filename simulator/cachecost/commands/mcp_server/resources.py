"""The resources: the rulebook, and a page for each code of a finding."""

from __future__ import annotations

from pathlib import Path

from mcp.server.mcpserver.exceptions import ResourceNotFoundError

import cachecost
from cachecost.base.errors import nearest

RULEBOOK = "rulebook.md"
PACKAGE = Path(cachecost.__file__).parent


def pages() -> Path:
    """The folder of the pages: in an installed package, or the documentation of the checkout."""
    installed = PACKAGE / "pages"
    return installed if installed.is_dir() else PACKAGE.parents[1] / "docs"


def rulebook() -> str:
    """Every rule of prompt caching by which cachecost computes, with its source."""
    return (pages() / RULEBOOK).read_text(encoding="utf-8")


def code_page(code: str) -> str:
    """What the code of a finding (CC101 …) means, why it costs, and what to do."""
    known = {path.stem: path for path in (pages() / "codes").glob("CC*.md")}
    if code.upper() not in known:
        raise ResourceNotFoundError(f"unknown code '{code}'{nearest(code, sorted(known))}")
    return known[code.upper()].read_text(encoding="utf-8")
