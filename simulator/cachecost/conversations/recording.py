"""Our recording of a conversation: JSON Lines, with content or content-free.

Line 1 is the header: {"format": 1, "kind": "conversation", "content": "keep"|"digest", "name", "model",
"source", "licence", "params", "tools": [block numbers], "system": [block numbers]}. Then blocks
(see block_table.py), each before the first event that uses it, and events in time order:

    {"event": "human"|"results", "at": ISO 8601, "blocks": […]}
    {"event": "reply", "at": …, "blocks": […], "first_token_s": seconds?, "output_tokens": n?}
    {"event": "inquiry", "at": …, "blocks": [question, answer], "answer_type", "tool_use", "batch"}

Content-free means: keyed digests, sizes, token counts, times, the API's own words. Name, source and
licence are written as given.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

from cachecost.base.atomic_files import write_lines
from cachecost.base.errors import Fault, InputError
from cachecost.base.times import iso
from cachecost.conversations.block_table import BlockReader, BlockWriter
from cachecost.conversations.content_free import ContentFree
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject, json_lines, parse_json
from cachecost.conversations.model import Conversation, ConversationState, Human, Inquiry, Reply, Results
from cachecost.prompts.blocks import NOTHING, Block, Part, encode_simple
from cachecost.prompts.wire import show_found

FORMAT = 1
Content = Literal["keep", "digest"]
CONTENTS = ("keep", "digest")
KINDS = ("conversation",)
EVENTS: dict[type, str] = {Human: "human", Reply: "reply", Results: "results", Inquiry: "inquiry"}


# ---------------------------------------------------------------------------------------- writing


def write(
    conversation: Conversation,
    target: str | Path | BinaryIO,
    blocks: BlockWriter | None = None,
    overwrite: bool = True,
    mode: int | None = None,
) -> None:
    """Write a recording to a path (whole or not at all) or to an open binary stream.

    `blocks` decides what is written of the content: by default all of it. Raises CannotWrite; without `overwrite`,
    InputError where other content is there.
    """
    write_lines(map(encode_record, records(conversation, blocks or BlockWriter())), target, overwrite, mode)


def records(conversation: Conversation, table: BlockWriter) -> Iterator[dict[str, Any]]:
    """The lines of a recording as objects, in order."""
    tools, tool_lines = table.add(conversation.tools.blocks)
    system, system_lines = table.add(conversation.system.blocks)
    yield _header(conversation, table, tools, system)
    yield from tool_lines + system_lines
    for event in conversation.events:
        if not isinstance(event, ConversationState):
            raise ValueError(f"{conversation.name}: built from calls; write the calls (call_recording.write)")
        numbers, lines = table.add(_blocks(event))
        yield from lines
        yield {"event": EVENTS[type(event)], "at": iso(event.at), "blocks": numbers, **_details(event, table.free)}


def _header(conversation: Conversation, table: BlockWriter, tools: list[int], system: list[int]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "kind": "conversation",
        "content": "digest" if table.free else "keep",
        "name": conversation.name,
        "model": conversation.model,
        "source": conversation.source,
        "licence": conversation.licence,
        "params": table.params(conversation.params),
        "tools": tools,
        "system": system,
    }


def _blocks(event: ConversationState) -> tuple[Block, ...]:
    return (event.question, event.answer) if isinstance(event, Inquiry) else event.blocks


def _details(event: ConversationState, free: ContentFree | None) -> dict[str, Any]:
    if isinstance(event, Reply):
        details = {"first_token_s": event.first_token_s, "output_tokens": event.output_tokens}
        return {name: value for name, value in details.items() if value is not None}
    if isinstance(event, Inquiry):
        return {
            "answer_type": free.answer_type(event) if free else event.answer_type,
            "tool_use": free.word(event.tool_use) if free else event.tool_use,
            "batch": event.batch,
        }
    return {}


def encode_record(record: dict[str, Any]) -> bytes:
    """One line of JSON. Non-ASCII stays as it is, unless it is half a surrogate pair."""
    if data := encode_simple(record):
        return data + b"\n"
    try:
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


# ---------------------------------------------------------------------------------------- reading


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like a recording of ours; None if they do not."""
    first = parse_json(head.split(b"\n", 1)[0])
    if isinstance(first, dict) and "format" in first and "kind" in first:
        return "its first line says format and kind"
    return None


def read(path: str | Path, warn: Warn = quiet) -> Conversation:
    """The conversation of a recording. Raises InputError with every fault found, each with its line.

    A last line that was cut off is left out and said to `warn`.
    """
    faults: list[Fault] = []
    parser = _RecordingParser(faults)
    for line in json_lines(Path(path), faults, warn):
        if not parser.parse_line(line):
            break
    whole = parser.conversation()
    if whole is None and not faults:
        faults.append(Fault(str(path), "is empty: a recording starts with a whole header line"))
    if whole is None or faults:
        raise InputError(faults)
    return whole


class _RecordingParser:
    """A recording while it is read, line by line."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.header: JsonObject | None = None
        self.table = BlockReader()
        self.events: list[ConversationState] = []

    def parse_line(self, line: JsonObject) -> bool:
        """Read a line; False if nothing after it can be understood."""
        if self.header is None:
            return self._head(line)
        if "block" in line.data:
            self.table.add(line)
        elif "event" in line.data:
            self._event(line)
        else:
            line.fault("line", "expected a block or an event")
        return True

    def _head(self, line: JsonObject) -> bool:
        number = line.get("format", f"the header of a recording, format {FORMAT}", lambda value: True, None)
        if number is None:
            return False
        if number != FORMAT or isinstance(number, bool):
            line.fault("format", f"expected {FORMAT}; got {show_found(number)}, which this version cannot read")
            return False
        self.header = line if line.one_of("kind", KINDS) == line.data.get("kind") else None
        return self.header is not None

    def _event(self, line: JsonObject) -> None:
        event = READERS[line.one_of("event", READERS)](line, line.time("at"), self.table.get(line, "blocks"))
        line.refuse_unknown_keys()
        if event is not None:
            self.events.append(event)

    def conversation(self) -> Conversation | None:
        """The whole; None if no header was understood. The header's own faults are found here."""
        head = self.header
        if head is None:
            return None
        head.one_of("content", CONTENTS)
        whole = Conversation(
            head.text("name"),
            tuple(self.events),
            head.text("model", "") or None,
            self._part(head, "tools"),
            self._part(head, "system"),
            head.text("source", ""),
            head.text("licence", ""),
            head.mapping("params", required=False),
        )
        head.refuse_unknown_keys()
        return whole

    def _part(self, head: JsonObject, name: str) -> Part:
        blocks = self.table.get(head, name, required=False)
        return Part(blocks) if blocks else NOTHING


def _reply(line: JsonObject, at: float, blocks: tuple[Block, ...]) -> Reply:
    return Reply(at, blocks, line.number("first_token_s"), line.whole("output_tokens"))


def _inquiry(line: JsonObject, at: float, blocks: tuple[Block, ...]) -> Inquiry | None:
    answer_type = line.text("answer_type", "boolean")
    tool_use = line.text("tool_use", "")
    batch = line.whole("batch", 0) or 0
    if len(line.data.get("blocks") or ()) != 2:
        line.fault("blocks", "expected two blocks, question and answer")
    return Inquiry(at, *blocks, answer_type, tool_use, batch) if len(blocks) == 2 else None


READERS: dict[str, Callable[[JsonObject, float, tuple[Block, ...]], ConversationState | None]] = {
    "human": lambda line, at, blocks: Human(at, blocks),
    "reply": _reply,
    "results": lambda line, at, blocks: Results(at, blocks),
    "inquiry": _inquiry,
}
