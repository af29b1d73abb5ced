"""The page of strategies: presets, primitives and changes, as the registry lists them."""

from __future__ import annotations

from collections.abc import Iterable

from cachecost.strategies.registry import list_strategies, names
from cachecost.strategies.spec import BREAKPOINTS, CHANGES_TABLE
from tools.reference.markdown import code, prose, table

HEAD = """# Strategies

This page is a list; [what agents do](agents.md) says which agent or document each of them models.
`NAME@1h` and `NAME@5m` are a preset with that TTL on every breakpoint that names none.
"""
PRIMITIVES = (
    "A placement is a list of these, by priority; each says which blocks get a breakpoint. `ttl` is `5m` or `1h`."
)
CHANGES = (
    "What an agent does to the conversation, or to its calls, besides placing breakpoints: `changes:` of a strategy."
)


def page() -> str:
    """The page; strategies of other packages are left out, so that it is the same everywhere."""
    own = set(names())
    presets = (
        (code(row.name), prose(row.what), prose(row.source), row.date) for row in list_strategies() if row.name in own
    )
    return "\n".join(
        [
            HEAD,
            f"## Presets\n\n{table(('name', 'what it does', 'source', 'read on'), presets)}",
            f"## Primitives\n\n{PRIMITIVES}\n\n{_parts(BREAKPOINTS.list_options())}",
            f"## Changes\n\n{CHANGES}\n\n{_parts(CHANGES_TABLE.list_options())}",
        ]
    )


def _parts(rows: Iterable[tuple[str, str, str]]) -> str:
    made = ((code(name), prose(what), prose(options)) for name, what, options in rows)
    return table(("name", "what it does", "options with their defaults"), made)
