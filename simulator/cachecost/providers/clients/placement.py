"""Where clients place their message breakpoints, by version. For recordings that lack them."""

from __future__ import annotations

import tomllib
from functools import cache

from cachecost.base.structs import value
from cachecost.providers.clients.setting_rows import FOLDER
from cachecost.providers.clients.versions import row_at


@value
class MessageBreakpoints:
    """From a version on: how many messages, from the last one back, have a breakpoint on their last block."""

    since: str
    count: int
    source: str


@cache
def message_breakpoint_rows(name: str = "claude_code") -> tuple[MessageBreakpoints, ...]:
    """The rows of a client, by the name of its file."""
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return tuple(MessageBreakpoints(**row) for row in table["message_breakpoints"])


@cache
def message_breakpoints(version: str | None, name: str = "claude_code") -> int:
    """How many messages of a request have a breakpoint; an unknown version is the newest."""
    rows = message_breakpoint_rows(name)
    return (row_at(rows, version) or rows[0]).count
