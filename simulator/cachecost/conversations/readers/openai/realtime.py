"""Events of a session of OpenAI's Realtime API, one JSON object a line: each `response.done` is a call with its usage.

Source: OpenAI's API reference (realtime server and client events, November 2026). The prompt of a response is what the
session says (model, instructions, tools) and the items of the conversation so far; `response.create` may say otherwise
for its own response. Events have no times; a "timestamp" that a recorder put on them counts. Audio is a block without
content: what it costs has prices of its own, and is noted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.notes import ReaderNotes
from cachecost.conversations.readers.openai.exchange import OpenAIExchange

Item = Mapping[str, Any]
EVENT = re.compile(
    r"(session|conversation|response|input_audio_buffer|output_audio_buffer|rate_limits)\.[a-z_.]+|error"
)
FIRST = re.compile(rb'"type"\s*:\s*"(session\.(created|update|updated)|conversation\.(created|item\.[a-z]+))"')
ADDED = ("conversation.item.created", "conversation.item.added", "conversation.item.done")
SESSION = ("session.created", "session.updated")
STATED = ("model", "instructions", "tools", "tool_choice", "max_output_tokens")
AUDIO = "with audio, which has its own prices"


def is_event(row: JsonObject) -> bool:
    """Whether a row is an event of a session."""
    kind = row.data.get("type")
    return isinstance(kind, str) and EVENT.fullmatch(kind) is not None and "request" not in row.data


class RealtimeSession:
    """The sessions of a log while it is read: `session.created` begins another."""

    def __init__(self, notes: ReaderNotes) -> None:
        self._notes = notes
        self._stated: dict[str, Any] = {}
        self._own: dict[str, Any] = {}
        self._items: dict[str, Item] = {}

    def exchanges(self, row: JsonObject) -> Iterator[OpenAIExchange]:
        """Take an event; the call that it ends, if it does."""
        kind = row.data["type"]
        if kind in SESSION:
            self._state(row, begins=kind == "session.created")
        elif kind == "response.create":
            self._own = _stated_in(row.mapping("response", required=False))
        elif kind in ADDED:
            self._add(row.mapping("item"), row.data.get("previous_item_id"))
        elif kind == "conversation.item.deleted":
            self._items.pop(row.text("item_id", ""), None)
        elif kind == "response.done":
            yield self._answer(row)

    def _state(self, row: JsonObject, begins: bool) -> None:
        if begins:
            self._items, self._own = {}, {}
        self._stated = _stated_in(row.mapping("session"))

    def _add(self, item: Item, before: Any) -> None:
        """Put an item after the one `before`, in place of one with its id, or at the end."""
        name = str(item.get("id") or f"item {len(self._items)}")
        if name in self._items or before not in self._items:
            self._items[name] = item
            return
        known, self._items = self._items, {}
        for key, one in known.items():
            self._items[key] = one
            if key == before:
                self._items[name] = item

    def _answer(self, row: JsonObject) -> OpenAIExchange:
        response = row.mapping("response")
        output = [one for one in response.get("output") or [] if isinstance(one, Mapping)]
        said = {str(one.get("id")) for one in output}
        stated, self._own = {**self._stated, **self._own}, {}
        asked = [item for name, item in self._items.items() if name not in said]
        for one in output:
            self._add(one, None)
        if _has_audio(response.get("usage")):
            self._notes.add("call", AUDIO)
        return OpenAIExchange(
            entry=row,
            body={"model": response.get("model"), **stated, "input": asked},
            answer_in=row,
            answer={**response, "object": "response", "output": output},
            answer_at="response.",
            time=row.moment("timestamp"),
            session=str(response.get("conversation_id") or ""),
        )


def _stated_in(told: Item) -> dict[str, Any]:
    return {name: told[name] for name in STATED if told.get(name) is not None}


def _has_audio(usage: Any) -> bool:
    places = ("input_token_details", "output_token_details")
    details = [usage.get(place) for place in places] if isinstance(usage, Mapping) else []
    return any(isinstance(one, Mapping) and one.get("audio_tokens") for one in details)
