"""Which of the tools that clients offered were called, and why the others were not: the bill tells it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cachecost.live.server.answers.told import Item, items
from cachecost.live.server.answers.tools import harmless_call

MOST_NAMES = 8
BY_NAME = "their names do not say that they change nothing; --answers agent:{calls}:{names} calls them"
DEFERRED = "deferred until a tool search finds them"
OF_THE_API = "the API runs them, and the agent does not pretend to"
NO_TURN = "{calls} tool {noun} a turn came to others first; --answers agent:N makes more"


class ToolTally:
    """Tools by name, in the order in which they were first offered. `calls` is how many calls a turn has."""

    def __init__(self, calls: int, allowed: Collection[str]) -> None:
        self._calls = calls
        self._allowed = allowed
        self._reasons: dict[str, str] = {}
        self._called: set[str] = set()

    def add(self, body: Item, called: str | None) -> None:
        """A call offered the tools of `body`, and was answered with a call of one, or of none."""
        for tool in items(body.get("tools")):
            name = tool.get("name") or tool.get("type")
            if isinstance(name, str) and name not in self._reasons:
                self._reasons[name] = _reason(tool, self._allowed)
        if called is not None:
            self._called.add(called)

    @property
    def notes(self) -> Sequence[str]:
        """A sentence for each reason why tools were not called."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self._reasons.items():
            if name not in self._called:
                by_reason.setdefault(reason, []).append(name)
        return tuple(self._note(reason, names) for reason, names in by_reason.items())

    def _note(self, reason: str, names: list[str]) -> str:
        noun = "call" if self._calls == 1 else "calls"
        why = reason.format(calls=self._calls, names=",".join(names[:MOST_NAMES]), noun=noun)
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        return f"Offered and not called: {', '.join(names[:MOST_NAMES])}{more} ({why})"


def _reason(tool: Item, allowed: Collection[str]) -> str:
    if harmless_call(tool, allowed=allowed) is not None:
        return NO_TURN
    if tool.get("defer_loading") is True:
        return DEFERRED
    return OF_THE_API if str(tool.get("type") or "custom") != "custom" else BY_NAME
