"""The stored count of a block.

Why a file of token counts cannot be used. Apart from the file, so that SQLite is loaded only when it is opened.

Tokens of provider-defined tools, which a request only names (`provider_tools.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from cachecost.prompts.render import CannotCount
from cachecost.tokens.calibration import CLAUDE, calibration


class CountsLocked(Exception):
    """Another process held a lock for too long. The file is fine."""


class DamagedCounts(Exception):
    """The file or a row of it is damaged."""


class CountsUnusable(Exception):
    """The file cannot be opened, read or written: no rights, no space, no folder."""


class BlockCount(NamedTuple):
    """The count of a block: tokens of its texts, their content kind, and the facts of its structure."""

    prose: str
    tokens: int
    facts: Mapping[str, int]


DATA = "provider_tools.toml"
VERSION = re.compile(r"_\d{8}$")
INSTEAD = "Define it as a tool of your own, or use --tokens bytes"
GENERATIONS = ("claude-3", "claude-4.7", "claude-4.8")
"""Oldest first."""


def known_tool(type_: str) -> str | None:
    """The row that counts a tool of this type: its own, else the latest of its family that is not newer, else the
    oldest; None for an unknown family."""
    rows = _rows()
    if type_ in rows:
        return type_
    family = sorted(name for name in rows if VERSION.search(type_) and _family(name) == _family(type_))
    older = [name for name in family if name < type_]
    return older[-1] if older else next(iter(family), None)


def provider_tool_tokens(type_: str, generation: str) -> int:
    """Tokens of the definition of a listed tool; 0 for any other name.

    Raises CannotCount for another provider's generation.
    """
    row = _rows().get(type_)
    if row is None:
        return 0
    if not generation.startswith(CLAUDE):
        raise CannotCount(f"{type_}: a tool that Anthropic defines, which {generation} has no count for. {INSTEAD}")
    if generation in row:
        return int(row[generation])
    before = GENERATIONS[: GENERATIONS.index(generation)] if generation in GENERATIONS else ()
    told = [name for name in before if name in row] or [name for name in GENERATIONS if name in row][:1]
    grown = calibration(generation).ratio["tools"] / calibration(told[-1]).ratio["tools"]
    return round(int(row[told[-1]]) * grown)


def _family(type_: str) -> str:
    return VERSION.sub("", type_)


@cache
def _rows() -> Mapping[str, Any]:
    tools: Mapping[str, Any] = tomllib.loads(files("cachecost.tokens").joinpath(DATA).read_text(encoding="utf-8"))[
        "tools"
    ]
    return tools
