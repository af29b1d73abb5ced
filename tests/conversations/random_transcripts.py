"""Random transcripts: trees with forks and sub-agents, copies, answers on several lines, boundaries, and damage."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any

MODELS = ("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5", "nobody-1")
BLOCKS: tuple[Any, ...] = (
    {"type": "text", "text": "half a pair \ud83d of surrogates"},
    {"type": "thinking", "thinking": "hm"},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "tool_use", "id": "t", "name": "Read", "input": {"a": [1, {"b": None}]}},
    {"type": "image", "source": {}},
    {"text": "without a type"},
    {"type": None},
    "a text",
)
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
COUNTERS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
SUBTYPES = ("compact_boundary", "microcompact_boundary", "api_error", "turn_duration", "nobody knows")
OTHERS = ("progress", "attachment", "file-history-snapshot", "mood", "queue-operation")
DAMAGE = (
    b"{",
    b'{"type": "assistant", "uuid": ',
    b"5",
    b"[]",
    b"null",
    b"}{",
    b'{"type": 5, "uuid": "d"}',
    b'{"uuid": "e"}',
    b'{"type": "assistant", "uuid": "f"}',
    b'{"type": "assistant", "uuid": "g", "message": {"usage": {"input_tokens": 1}}}',
    b'{"type": "assistant", "uuid": "h", "message": {"model": "m", "usage": {"input_tokens": -1}}}',
    b'{"type": "assistant", "uuid": "i", "message": {"model": "m", "usage": {"output_tokens": 1.5}}}',
    b'{"type": "assistant", "uuid": "j", "message": {"model": "m", "usage": {"output_tokens": 9000000000000}}}',
    b'{"type": "user", "uuid": "k", "message": "words"}',
    b'{"type": "user", "uuid": "l", "timestamp": "yesterday", "message": {"content": "x"}}',
    b'{"type": "user", "uuid": "m", "timestamp": "", "message": {"content": "x"}}',
    b'{"type": "mood", "uuid": "n", "timestamp": "2026-13-01"}',
    b'{"type": "system", "uuid": "o", "isSidechain": "no"}',
)
"""Lines that no reader can take, each for a reason of its own."""


@dataclass(slots=True)
class RandomTranscript:
    """The lines of a transcript without their ends; `damaged` are the numbers of those that no reader can take."""

    random: Random
    lines: list[bytes] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    uuids: list[str] = field(default_factory=list)
    second: float = 0.0
    has_copies: bool = False
    """Whether there are answers of another file, whose usage is zero."""

    def fill(self, most: int, damage: bool) -> RandomTranscript:
        self.lines.append(b'{"type": "user", "uuid": "first", "parentUuid": null, "message": {"content": "go"}}')
        self.uuids.append("first")
        for _ in range(self.random.randint(0, most)):
            self._add_line(damage)
        return self

    def _add_line(self, damage: bool) -> None:
        chance = self.random.random()
        if damage and chance < 0.1:
            self.damaged.append(len(self.lines) + 1)
            self.lines.append(self.random.choice([one for one in DAMAGE if one not in self.lines]))
        elif chance < 0.15:
            self.lines.append(self.random.choice((b"", b"  ", b"\r", b"\t")))
        elif chance < 0.2:
            self.lines.append(self.random.choice(self.lines[: self.damaged[0] - 1 if self.damaged else None]))
        else:
            self._add_record()

    def _add_record(self) -> None:
        kind = self.random.choice(("user", "assistant", "assistant", "assistant", "system", "other"))
        record = self._place()
        if kind == "other":
            record |= {"type": self.random.choice(OTHERS), "message": "of another shape", "attachment": []}
        elif kind == "system":
            record |= {"type": kind, "subtype": self.random.choice(SUBTYPES)}
        else:
            record |= {"type": kind, **(self._user() if kind == "user" else self._answer())}
        bom = b"\xef\xbb\xbf" if self.random.random() < 0.02 else b""
        self.lines.append(bom + json.dumps(record, ensure_ascii=self._often()).encode("utf-8", "replace"))

    def _place(self) -> dict[str, Any]:
        """Where a record stands: its ids, its parent, its chain and its time."""
        random = self.random
        place: dict[str, Any] = {"isSidechain": random.random() < 0.25}
        if self._often():
            place["parentUuid"] = random.choice((self.uuids[-1], self.uuids[-1], *self.uuids[-4:], None, "unknown", ""))
        if random.random() < 0.1:
            place["logicalParentUuid"] = random.choice((*self.uuids, "unknown"))
        if self._often():
            place["uuid"] = random.choice(("", *self.uuids)) if random.random() < 0.1 else f"u{len(self.uuids)}"
            self.uuids.append(place["uuid"])
        if place["isSidechain"] and self._often():
            place["agentId"] = random.choice("ab")
        if self._often():
            self.second += random.choice((0, 0.5, 3, -2, 400, 4000))
            place["timestamp"] = f"2026-01-02T{10 + int(self.second) // 3600:02}:{int(self.second) // 60 % 60:02}:30Z"
        return place | {"sessionId": random.choice("ssst"), "version": random.choice(("2.1.0", "2.1.0", "2.1.1", ""))}

    def _user(self) -> dict[str, Any]:
        content: Any = self.random.choice(("words", "", None, [RESULT], [RESULT, RESULT], [RESULT, *BLOCKS[:1]], []))
        flags = {"isCompactSummary": True} if self.random.random() < 0.1 else {}
        return {"message": {"role": "user", "content": content}, **flags}

    def _answer(self) -> dict[str, Any]:
        random = self.random
        message: dict[str, Any] = {"model": random.choice((*MODELS[:1], *MODELS)), "content": self._blocks()}
        if random.random() < 0.9:
            message["id"] = f"msg_{random.randint(1, 6)}"
        if random.random() < 0.9:
            message["usage"] = self._usage()
        if self.has_copies and random.random() < 0.3:
            message |= {"id": f"copy_{random.randint(1, 3)}", "usage": dict.fromkeys(COUNTERS, 0)}
        if random.random() < 0.08:
            message["model"] = "<synthetic>"
        request = {"requestId": random.choice(("r", "r", "q"))} if self._often() else {}
        error = {"isApiErrorMessage": True} if random.random() < 0.05 else {}
        return {"message": message, **request, **error}

    def _blocks(self) -> Any:
        return [self.random.choice(BLOCKS) for _ in range(self.random.randint(0, 3))]

    def _usage(self) -> dict[str, Any]:
        random, count = self.random, lambda: self.random.choice((0, 1, 7, 3000, 50_000))
        usage: dict[str, Any] = {name: random.choice((count(), count(), None)) for name in COUNTERS}
        usage["input_tokens"] = usage["input_tokens"] or 1
        split = {f"ephemeral_{ttl}_input_tokens": count() for ttl in ("5m", "1h")}
        usage["cache_creation"] = random.choice((None, split, {"ephemeral_1h_input_tokens": count()}))
        usage["service_tier"] = random.choice(("standard", "batch", None))
        usage["speed"] = random.choice(("fast", "standard", None))
        usage["inference_geo"] = random.choice(("us", "global", None))
        usage["iterations"] = random.choice((None, [], [{"type": None}], [{"type": "message"}, {"input_tokens": None}]))
        usage["server_tool_use"] = random.choice((None, {}, {"web_search_requests": 0}, {"web_search_requests": 1}))
        return usage

    def _often(self) -> bool:
        return self.random.random() < 0.85
