"""A small agent in place of a model: some tool calls per turn, then a sentence. It drives whole agent loops."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from cachecost.live.server.answers.blocks import (
    Item,
    blocks,
    count_tool_calls_of_turn,
    items,
    mapping,
    stop_reason,
    text,
    thinking,
    tool_use,
    wanted_schema,
    wants_thinking,
)
from cachecost.live.server.answers.schema import minimal
from cachecost.live.server.answers.tools import HarmlessCall, answering_call, harmless_call, harmless_calls
from cachecost.live.server.model import ClientCall, ModelAnswer

THOUGHT = "A simulated model thinks one short thought, so that its block is sent back."


class AgentAnswerer:
    """Makes `tool_calls` calls of harmless tools per turn, one per reply; then answers with a sentence.

    The next tool is the one that the conversation has called least. Those `allowed` are called regardless of their
    names. `tool_choice` is obeyed as far as that is harmless; a JSON schema is answered with a minimal value. `notes`
    say which of the tools offered were not called.
    """

    def __init__(self, tool_calls: int = 2, allowed: Collection[str] = ()) -> None:
        self._tool_calls = tool_calls
        self._allowed = allowed
        self._tally = ToolTally(tool_calls, allowed)

    @property
    def notes(self) -> Sequence[str]:
        """Notes on the tools for the bill."""
        return self._tally.notes

    def answer(self, asked: ClientCall) -> ModelAnswer:
        """See `Answerer`."""
        body = asked.body
        made = count_tool_calls_of_turn(body)
        ready = harmless_calls(body, self._allowed)
        call = _forced_call(body, made, self._tool_calls, ready) or self._next(body, made, ready)
        self._tally.add(body, call.name if call else None)
        content: list[Item] = []
        if wants_thinking(body) and not made:
            content.append(thinking(THOUGHT))
        if call:
            content.append(tool_use(body, asked.turn, call.name, call.arguments))
        else:
            content.append(text(_words(body, made)))
        return ModelAnswer(content, stop_reason(content))

    def _next(self, body: Item, made: int, ready: Sequence[HarmlessCall]) -> HarmlessCall | None:
        """The next call of this turn; None if the turn is done, or no tool is harmless."""
        if made >= self._tool_calls or _choice(body).get("type") in ("none", "tool"):
            return None
        return _least_called(ready, body)


def _choice(body: Item) -> Item:
    return mapping(body.get("tool_choice"))


def _forced_call(body: Item, made: int, enough: int, ready: Sequence[HarmlessCall]) -> HarmlessCall | None:
    """The call that `tool_choice` forces; None if it forces none, or one that may do harm.

    With `any`, the tool for a structured answer comes after `enough` others.
    """
    choice = _choice(body)
    if choice.get("type") == "any":
        done = answering_call(body) if made >= enough else None
        return done or _least_called(ready, body) or answering_call(body) or _only_one(body)
    if choice.get("type") == "tool":
        named = [tool for tool in items(body.get("tools")) if tool.get("name") == choice.get("name")]
        return harmless_call(named[0], is_forced=True) if named else None
    return None


def _only_one(body: Item) -> HarmlessCall | None:
    offered = items(body.get("tools"))
    return harmless_call(offered[0], is_forced=True) if len(offered) == 1 else None


def _least_called(ready: Sequence[HarmlessCall], body: Item) -> HarmlessCall | None:
    """The least called tool; of several, the one that is offered first."""
    called = Counter(str(block.get("name")) for block in _tool_uses(body))
    return min(ready, key=lambda call: called[call.name], default=None)


def _tool_uses(body: Item) -> Iterator[Item]:
    for message in items(body.get("messages")):
        if message.get("role") == "assistant":
            yield from (block for block in blocks(message) if block.get("type") == "tool_use")


def _words(body: Item, made: int) -> str:
    schema = wanted_schema(body)
    if schema is not None:
        value: Any = minimal(schema)
        return json.dumps(value, ensure_ascii=False)
    if made:
        return f"Done after {made} tool {'call' if made == 1 else 'calls'}. (A simulated answer of cachecost serve.)"
    return "Done. (A simulated answer of cachecost serve.)"


MOST_NAMES = 8
BY_NAME = "they may change something, judging by their names; allow them with --answers agent:{calls}:{names}"
DEFERRED = "deferred until a tool search"
OF_THE_API = "run by the API, which is not simulated"
NO_TURN = "the limit of {calls} tool {noun} per turn was reached; raise it with --answers agent:N"


class ToolTally:
    """Why tools were not called, in the order they were first offered. `calls` is the number of calls per turn."""

    def __init__(self, calls: int, allowed: Collection[str]) -> None:
        self._calls = calls
        self._allowed = allowed
        self._reasons: dict[str, str] = {}
        self._called: set[str] = set()

    def add(self, body: Item, called: str | None) -> None:
        """Count a call that offered the tools of `body`; `called` is the one called (None: none)."""
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
        return f"Tools not called: {', '.join(names[:MOST_NAMES])}{more} ({why})"


def _reason(tool: Item, allowed: Collection[str]) -> str:
    if harmless_call(tool, allowed=allowed) is not None:
        return NO_TURN
    if tool.get("defer_loading") is True:
        return DEFERRED
    return OF_THE_API if str(tool.get("type") or "custom") != "custom" else BY_NAME
