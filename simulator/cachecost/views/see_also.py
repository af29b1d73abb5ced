"""The last line of an account of a log: what the commands that look at the same log otherwise would add."""

from __future__ import annotations

from collections.abc import Mapping

ADDS = {
    "explain": "why it costs this",
    "optimize": "cheapest breakpoints",
    "whatif": "other models, TTLs, hosts",
    "lint": "static checks",
}
"""Commands that take a log, and what each of them adds."""
NOTHING_KNOWN: Mapping[str, str] = {}
LABEL = "see also"


def see_also(command: str, arguments: str, known: Mapping[str, str] = NOTHING_KNOWN, is_scenario: bool = False) -> str:
    """One line on the commands besides `command`. `known` are dollars of theirs, like {"explain": "$0.36 avoidable"}.

    `arguments` are the paths as on a command line; `lint` and `whatif` take no scenario.
    """
    others = [name for name in ADDS if name != command and not (is_scenario and name in ("whatif", "lint"))]
    parts = [f"{name} ({known[name] if name in known else ADDS[name]})" for name in others]
    return f"{LABEL}   cachecost COMMAND {arguments}: " + ", ".join(parts)
