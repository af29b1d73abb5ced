"""A conversation as it happened, before any strategy decides what to send, and our recording of it.

Times are seconds since the epoch (UTC). Blocks carry their role, so an event is a message to be. A recording is JSON
Lines, in which each block is written once, where it is first used; a content-free one has keyed digests in place of
everything that a person or a model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from cachecost.base.atomic_files import write_lines
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text, inert
from cachecost.base.limits import FILE, read_whole
from cachecost.base.times import iso
from cachecost.conversations.input_files import Warn, open_input, quiet
from cachecost.conversations.json_object import JsonObject, are_objects, json_lines, parse_json
from cachecost.prompts.blocks import (
    DIGEST_BYTES,
    NO_COUNTS,
    NOTHING,
    Block,
    Message,
    Part,
    Thread,
    compact,
    encode_simple,
    main_kind,
)
from cachecost.prompts.exact_json import PackedBlock, packed_content, plain_block
from cachecost.prompts.output_format import PLACES, counts_unseen, schema_text
from cachecost.prompts.request import ROLES, Request, show_found, text_block


@dataclass(frozen=True, slots=True)
class Human:
    """A person's message."""

    at: float
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """The assistant's answer to everything before it: one call of the main thread.

    `at` is when the call started, `first_token_s` how long its first token took (None: unknown),
    `output_tokens` what was billed (None: unknown, then the blocks are counted).
    """

    at: float
    blocks: tuple[Block, ...]
    first_token_s: float | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Results:
    """What the tools of the last reply returned; may hold text next to the tool results."""

    at: float
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A tool asks the assistant something while it runs: a side question between reply and results.

    `tool_use` is the id of the asking call, `batch` numbers inquiries that were asked at once:
    equal numbers could have been asked in parallel. `question` and `answer` are text blocks.
    """

    at: float
    question: Block
    answer: Block
    answer_type: str = "boolean"
    tool_use: str = ""
    batch: int = 0


@dataclass(frozen=True, slots=True)
class ThreadRewrite:
    """The thread was rewritten: its first `keep` messages stay, then come `messages`, without a call. `why` is "start"
    (said before the recording begins), "fork", "compaction", "edit" or "insertion"."""

    at: float
    keep: int
    messages: tuple[Message, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Switch:
    """From here on the main thread is sent with this model, head and these parameters. With `is_chosen` a strategy
    chose the model: it wins over one that all are to run on."""

    at: float
    model: str
    tools: Part
    system: Part
    params: Mapping[str, Any]
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """A side call that leaves nothing in the main thread. The breakpoints of `request` are as recorded."""

    at: float
    request: Request
    reply: Reply


ConversationState = Human | Reply | Results | Inquiry
"""The events of recorded conversations."""
Event = ConversationState | ThreadRewrite | Switch | Aside
"""Conversations that are built from calls also have the other events."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Events in time order, and the head (tools and system) if the recording knows it."""

    name: str
    events: tuple[Event, ...]
    model: str | None = None
    tools: Part = NOTHING
    system: Part = NOTHING
    source: str = ""
    licence: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Request parameters of the main thread (thinking, output_config …), as far as known."""
    host: str | None = None
    workspace: str = ""
    is_batch: bool = False
    is_chosen: bool = False
    """Whether a strategy chose `model`: then it wins over one that all are to run on."""
    root: Thread = field(default_factory=Thread, compare=False)
    """What threads grow from: those of a log, so that prompts planned anew share what was recorded."""
    session: str = ""
    project: str = ""
    agent: str = ""
    """These three are as those of a recorded call."""

    def __repr__(self) -> str:
        """What it is in a line: the events are thousands of blocks."""
        asked = f", {count_text(len(self.inquiries), 'side question')}" if self.inquiries else ""
        return f"<Conversation {inert(self.name)}: {count_text(len(self.replies), 'call')}{asked}>"

    @property
    def replies(self) -> list[Reply]:
        return [event for event in self.events if isinstance(event, Reply)]

    @property
    def inquiries(self) -> list[Inquiry]:
        return [event for event in self.events if isinstance(event, Inquiry)]


ANSWER_TYPES = frozenset({"boolean", "select", "text", "number", "string"})
# Parameter names and values of the Messages API; any other word may be somebody's own.
# fmt: off
KNOWN_KEYS = frozenset({
    "tool_choice", "type", "name", "disable_parallel_tool_use", "thinking", "budget_tokens", "display",
    "output_config", "effort", "format", "schema", "task_budget", "total", "remaining", "output_format", "speed",
    "container", "skills", "skill_id", "version", "inference_geo", "max_tokens", "temperature", "top_p", "top_k",
    "stream", "service_tier", "context_management", "edits", "betas", "keep", "trigger", "value", "clear_at_least",
    "clear_tool_inputs", "verbosity", "parallel_tool_calls", "prompt_cache_key", "cache_salt", "extra_key", "user_id",
    "anthropic_beta", "thread", "previous_message_id", "compaction", "instructions", "instruction_blocks",
})
KNOWN_WORDS = frozenset({
    "message", "compaction", "advisor_message", "fallback_message", "clear_thinking_20251015", "all",
    "clear_tool_uses_20250919", "compact_20260112", "thinking_turns", "tool_uses", "input_tokens",
    "auto", "any", "tool", "none", "enabled", "disabled", "adaptive", "summarized", "omitted", "low", "medium",
    "high", "xhigh", "max", "json_schema", "tokens", "fast", "standard", "priority", "standard_only", "global",
    "us", "flex", "default", "custom", "anthropic", "latest", "context-1m-2025-08-07", "context-management-2025-06-27",
    "extended-cache-ttl-2025-04-11", "interleaved-thinking-2025-05-14", "structured-outputs-2025-11-13",
    "create", "continue", "summarize",
})
# fmt: on
TOOL_REFUSED = re.compile(
    r"Tool '(.*)' cannot (have both defer_loading=true and cache_control set\. "
    r"Tools with defer_loading cannot use prompt caching\.)",
    re.DOTALL,
)
BODY_REFUSED = re.compile(
    r"(?:tools|system|messages)(?:\.(?:\d+|content|source|text|thinking|redacted_thinking|cache_control))*: "
    r"(?:Extra inputs are not permitted|cache_control cannot be set for empty text blocks)"
)
LENGTHS = re.compile(r"cl100k|ctok-.*|unseen|sealed")
"""The counts of a block that are lengths: tokens by tokenizer, and bytes that only a signature or a file holds."""


def key_of(path: Path) -> bytes:
    """The key for a source's digests: a digest of all its bytes. Raises InputError if it cannot be read."""
    with open_input(path) as stream:
        return file_digest(stream, lambda: blake2b(digest_size=32, person=b"recording key")).digest()


def key_from(path: Path) -> bytes:
    """The key from a user's own file: a digest of its bytes, packed or not, as hard to guess as they are. It differs
    from the key that `key_of` derives from the same file. Raises InputError: unreadable, or empty."""
    data = read_whole(path, FILE.value())
    if not data:
        raise InputError([Fault(str(path), "expected a key, which may be any bytes; the file is empty")])
    return blake2b(data, digest_size=32, person=b"key of a user").digest()


@dataclass(frozen=True, slots=True)
class ContentFree:
    """Replaces words by digests under `key` (1 to 64 bytes). Equal words stay equal; nothing else is kept. Sizes and
    token counts of blocks are rounded up to multiples of `round_to`; 1 leaves them exact."""

    key: bytes
    round_to: int = 1

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= 64:
            raise ValueError(f"key of {len(self.key)} bytes: expected 1 to 64, e.g. key_of(source)")
        if self.round_to < 1:
            raise ValueError(f"round_to={self.round_to}: expected a whole number from 1")

    def size(self, number: int) -> int:
        """A length in bytes or tokens, rounded up."""
        return -(-number // self.round_to) * self.round_to

    def counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The counts of a block: lengths rounded up; how many parameters, pages … it has, and of what size, stays."""
        return {name: self.size(number) if LENGTHS.fullmatch(name) else number for name, number in counts.items()}

    def prose(self, prose: str) -> str:
        """The content kinds of a block; where lengths are rounded, the largest alone, as shares tell a text too."""
        return prose if self.round_to == 1 else main_kind(prose)

    def digest(self, digest: bytes) -> bytes:
        """A block's identity, under the key."""
        return blake2b(digest, key=self.key, digest_size=DIGEST_BYTES, person=b"block").digest()

    def word(self, text: str) -> str:
        """Stands for `text`: "~" and 16 hex digits. Empty stays empty."""
        data = text.encode("utf-8", "surrogatepass")
        return "~" + blake2b(data, key=self.key, digest_size=8, person=b"word").hexdigest() if text else ""

    def answer_type(self, inquiry: Inquiry) -> str:
        return inquiry.answer_type if inquiry.answer_type in ANSWER_TYPES else self.word(inquiry.answer_type)

    def params(self, value: Any) -> Any:
        """Request parameters: the API's own words and numbers stay, all else becomes digests."""
        if isinstance(value, dict):
            made = {}
            for key, inner in value.items():
                if key in KNOWN_KEYS and (key != "schema" or inner is None):
                    made[key] = self.params(inner)
                else:
                    hidden = self.word(compact({"": inner}).decode("utf-8", "surrogatepass"))
                    made[key if key in KNOWN_KEYS else self.word(key)] = hidden
            return made
        if isinstance(value, list):
            return [self.params(inner) for inner in value]
        if isinstance(value, str) and value not in KNOWN_WORDS:
            return self.word(value)
        return value

    def fault(self, text: str) -> str:
        """The API's error for a body: its own words stay, the name of a tool does not."""
        if named := TOOL_REFUSED.fullmatch(text):
            return f"Tool '{self.word(named[1])}' cannot {named[2]}"
        return text if BODY_REFUSED.fullmatch(text) else self.word(text)


PLAIN_FIELDS = frozenset({"block", "role", "content"})
"""Of a block that follows from its content."""
Count = Callable[[Block], tuple[Mapping[str, int], str]]
"""Counts a block's content: (tokens by tokenizer name, content kinds)."""
DEFAULT_PROSE = "text"


@dataclass(slots=True)
class BlockWriter:
    """Numbers blocks from 1. With `free` it writes no content; `count` counts the content before."""

    free: ContentFree | None = None
    count: Count | None = None
    _numbers: dict[tuple[bytes, int], int] = field(default_factory=dict)

    def add(self, blocks: Iterable[Block]) -> tuple[list[int], list[dict[str, Any]]]:
        """The numbers of `blocks`, and the lines of those that were not written before."""
        numbers: list[int] = []
        lines: list[dict[str, Any]] = []
        for block in blocks:
            key = (block.digest, block.size)
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers) + 1
                lines.append({"block": self._numbers[key], **self._fields(block)})
            numbers.append(self._numbers[key])
        return numbers, lines

    def params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Request parameters as written. The token counts of a removed schema stay."""
        if self.free is None:
            return dict(params)
        made: dict[str, Any] = self.free.params(dict(params))
        for place in PLACES:
            wanted, written = _within(params, place), _within(made, place)
            if isinstance(wanted, dict) and wanted.get("schema") is not None:
                counts = counts_unseen(wanted)
                if counts is not None:
                    written.pop(self.free.word("counts"), None)
                elif self.count:
                    counts = self.count(text_block("system", schema_text(wanted["schema"])))[0]
                if counts:
                    written["counts"] = dict(sorted(self.free.counts(counts).items()))
        return made

    def _fields(self, block: Block) -> dict[str, Any]:
        """What is written of a block besides its number: what does not follow from its content."""
        free = self.free
        if free is None and (packed := packed_content(block)):
            return {"role": block.role, "content": msgspec.Raw(packed)}
        counts, prose, content = block.counts, block.prose, None if free else block.content
        if free and self.count and block.content is not None and block.tokens is None:
            counts, prose = self.count(block)
        base = None if content is None else plain_block(block.role, content)
        digest, size, tokens = block.digest, block.size, block.tokens
        if free:
            digest, size, counts, prose = free.digest(digest), free.size(size), free.counts(counts), free.prose(prose)
            tokens = None if tokens is None else free.size(tokens)
        flags = {"image": "has_image", "citations": "has_citations", "empty": "is_empty_text"}
        is_set = {name: getattr(block, field) for name, field in flags.items()}
        follows = {name: base is not None and getattr(base, field) for name, field in flags.items()}
        fields: dict[str, Any] = {
            "kind": block.kind if base is None or base.kind != block.kind else None,
            "role": block.role,
            "digest": digest.hex() if base is None or base.digest != digest else None,
            "size": size if base is None or base.size != size else None,
            "tokens": tokens,
            "counts": dict(sorted(counts.items())) or None,
            "prose": prose if prose != DEFAULT_PROSE else None,
            **{name: flag if flag != follows[name] else None for name, flag in is_set.items()},
            "brought": list(block.brought) or None if content is not None else None,
            "content": content,
        }
        return {name: value for name, value in fields.items() if value is not None}


def _within(value: Any, names: Iterable[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


class BlockReader:
    """The blocks read so far, by number."""

    def __init__(self) -> None:
        self.blocks: dict[int, Block] = {}

    def add(self, line: JsonObject) -> None:
        """Read a block line. Errors go to its file."""
        number = line.whole("block", required=True)
        if number in self.blocks:
            line.fault("block", f"{number} is already defined")
        self.blocks[number or 0] = _parse_block(line)
        line.refuse_unknown_keys()

    def get(self, line: JsonObject, name: str, required: bool = True) -> tuple[Block, ...]:
        """The blocks that field `name` of `line` numbers; one that no earlier line defines is an error."""
        numbers = line.wholes(name, required)
        for number in numbers:
            if number not in self.blocks:
                line.fault(name, f"no line{' before this one' if required else ''} defines block {number}")
        return tuple(self.blocks[number] for number in numbers if number in self.blocks)


def _parse_block(line: JsonObject) -> Block:
    role = line.one_of("role", (*ROLES, ""))
    content = line.mapping("content", required=False) if line.has("content") else None
    base = plain_block(role, content) if content is not None else None
    if isinstance(base, PackedBlock) and PLAIN_FIELDS.issuperset(line.data):
        return base  # as most are; it keeps its content packed
    kind, digest = line.text("kind", base.kind if base else None), base.digest if base else b""
    if base is None or line.has("digest"):
        digits = 2 * DIGEST_BYTES
        text = line.get(
            "digest",
            f"{digits} hex digits",
            lambda value: isinstance(value, str) and len(value) == digits and set(value) <= set("0123456789abcdef"),
            "0" * digits,
        )
        digest = bytes.fromhex(text)
    size, tokens = line.whole("size", base.size if base else None, required=base is None) or 0, line.whole("tokens")
    counts = NO_COUNTS
    if line.has("counts"):
        values = line.within(line.mapping("counts"), "counts")
        counts = {name: values.whole(name) or 0 for name in values.data}
    return Block(
        kind,
        role,
        digest,
        size,
        base.content if base else None,
        tokens,
        counts,
        line.text("prose", DEFAULT_PROSE),
        line.flag("image", bool(base and base.has_image)),
        line.flag("citations", bool(base and base.has_citations)),
        line.flag("empty", bool(base and base.is_empty_text)),
        tuple(line.get("brought", "an array of tools", are_objects, [], required=False)),
    )


FORMAT = 1
Content = Literal["keep", "digest"]
CONTENTS = ("keep", "digest")
KINDS = ("conversation",)
EVENTS: dict[type, str] = {Human: "human", Reply: "reply", Results: "results", Inquiry: "inquiry"}


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
    free = table.free
    tools, tool_lines = table.add(conversation.tools.blocks)
    system, system_lines = table.add(conversation.system.blocks)
    yield {
        "format": FORMAT,
        "kind": "conversation",
        "content": "digest" if free else "keep",
        "name": conversation.name,
        "model": conversation.model,
        "source": conversation.source,
        "licence": conversation.licence,
        "params": table.params(conversation.params),
        "tools": tools,
        "system": system,
    }
    yield from tool_lines + system_lines
    for event in conversation.events:
        if not isinstance(event, ConversationState):
            raise ValueError(f"{conversation.name}: built from calls; write the calls (call_recording.write)")
        details: dict[str, Any] = {}
        if isinstance(event, Reply):
            stated = {"first_token_s": event.first_token_s, "output_tokens": event.output_tokens}
            details = {name: value for name, value in stated.items() if value is not None}
        elif isinstance(event, Inquiry):
            details = {
                "answer_type": free.answer_type(event) if free else event.answer_type,
                "tool_use": free.word(event.tool_use) if free else event.tool_use,
                "batch": event.batch,
            }
        blocks = (event.question, event.answer) if isinstance(event, Inquiry) else event.blocks
        numbers, lines = table.add(blocks)
        yield from lines
        yield {"event": EVENTS[type(event)], "at": iso(event.at), "blocks": numbers, **details}


def encode_record(record: dict[str, Any]) -> bytes:
    """One line of JSON. Non-ASCII stays as it is, unless it is half a surrogate pair."""
    if data := encode_simple(record):
        return data + b"\n"
    try:
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like a recording of ours; None if they do not."""
    first = parse_json(head.split(b"\n", 1)[0])
    is_ours = isinstance(first, dict) and "format" in first and "kind" in first
    return "its first line says format and kind" if is_ours else None


def read(path: str | Path, warn: Warn = quiet) -> Conversation:
    """The conversation of a recording. Raises InputError with every fault found, each with its line. A last line that
    was cut off is left out and said to `warn`."""
    faults: list[Fault] = []
    head: JsonObject | None = None
    table, events = BlockReader(), list[ConversationState]()
    for line in json_lines(Path(path), faults, warn):
        if head is None:
            if not _is_header(line):
                break
            head = line
        elif "block" in line.data:
            table.add(line)
        elif "event" in line.data:
            event = READERS[line.one_of("event", READERS)](line, line.time("at"), table.get(line, "blocks"))
            line.refuse_unknown_keys()
            events += [] if event is None else [event]
        else:
            line.fault("line", "expected a block or an event")
    whole = None if head is None else _parse_head(head, table, tuple(events))
    if whole is None and not faults:
        faults.append(Fault(str(path), "is empty: a recording starts with a whole header line"))
    if whole is None or faults:
        raise InputError(faults)
    return whole


def _is_header(line: JsonObject) -> bool:
    """Whether a first line is a header, so that the lines after it can be understood."""
    number = line.get("format", f"the header of a recording, format {FORMAT}", lambda value: True, None)
    if number is None:
        return False
    if number != FORMAT or isinstance(number, bool):
        line.fault("format", f"expected {FORMAT}; got {show_found(number)}, which this version cannot read")
        return False
    return line.one_of("kind", KINDS) == line.data.get("kind")


def _parse_head(head: JsonObject, table: BlockReader, events: tuple[ConversationState, ...]) -> Conversation:
    """The conversation. The faults of the header, whose blocks follow it, are found here."""
    head.one_of("content", CONTENTS)
    name, model = head.text("name"), head.text("model", "") or None
    tools, system = (table.get(head, part, required=False) for part in ("tools", "system"))
    whole = Conversation(
        name,
        events,
        model,
        Part(tools) if tools else NOTHING,
        Part(system) if system else NOTHING,
        head.text("source", ""),
        head.text("licence", ""),
        head.mapping("params", required=False),
    )
    head.refuse_unknown_keys()
    return whole


def _parse_inquiry(line: JsonObject, at: float, blocks: tuple[Block, ...]) -> Inquiry | None:
    answer_type = line.text("answer_type", "boolean")
    tool_use = line.text("tool_use", "")
    batch = line.whole("batch", 0) or 0
    if len(line.data.get("blocks") or ()) != 2:
        line.fault("blocks", "expected two blocks, question and answer")
    return Inquiry(at, *blocks, answer_type, tool_use, batch) if len(blocks) == 2 else None


READERS: dict[str, Callable[[JsonObject, float, tuple[Block, ...]], ConversationState | None]] = {
    "human": lambda line, at, blocks: Human(at, blocks),
    "reply": lambda line, at, blocks: Reply(at, blocks, line.number("first_token_s"), line.whole("output_tokens")),
    "results": lambda line, at, blocks: Results(at, blocks),
    "inquiry": _parse_inquiry,
}
