"""One line of a Claude Code transcript: the fields that calls are made of, and what its usage and content mean.

msgspec skips what is not needed: half of a transcript's bytes are for the client's display alone. Content stays JSON.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, NamedTuple

import msgspec

from cachecost.base.digests import blake2b
from cachecost.base.limits import MOST_TOKENS, json_value
from cachecost.conversations.input_files import SKILL
from cachecost.providers.prices import terms_of

SYNTHETIC = "<synthetic>"
"""The model of answers that the client generated."""
BOUNDARIES = {"compact_boundary": "compaction", "microcompact_boundary": "edit", "api_error": "error"}
"""The event that a system record of each subtype stands for."""
MAIN_KINDS = ("assistant", "user", "system")
"""Kinds of lines that matter for a conversation."""
MAIN, SIDE = "main", "side"
"""The chain of a session, and those of its sub-agents."""
THINKING = ("thinking", "redacted_thinking")
PRICED = ("service_tier", "speed", "inference_geo")
"""Fields of a usage that change the price."""


def kind_of(block: object) -> object:
    return block.get("type") if isinstance(block, dict) else "text"


TOKENS = tuple[int, int, int, int, int]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]
"""Tokens of one class in a foreign usage."""
COMMANDS = {b"/clear": "clear", b"/effort": "effort", b"/mcp": "tools"}
"""Commands of a person that change what is sent; what /model and /compact do is seen in what follows them."""
COMMAND = b"<command-name>"
ATTACHMENTS = {
    "deferred_tools_delta": "tools",
    "mcp_instructions_delta": "tools",
    "mcp_dropped_tools_delta": "tools",
    "agent_listing_delta": "agents",
    "skill_listing": "agents",
    "date_change": "date",
    "hook_additional_context": "hook",
    "hook_blocking_error": "hook",
    "plan_mode": "plan",
    "plan_mode_reentry": "plan",
    "plan_mode_exit": "plan",
    "task_status": "task",
}
"""Types of attachments that say what changed or came in."""
TOOL_EVENTS = {b'"ToolSearch"': "tool_search", b'"Skill"': "skill"}
"""Tools of the client whose results bring definitions or instructions into the prompt, as JSON names."""
OPENING = re.compile(
    rb'(?:"|\[\{"type": ?"text", ?"text": ?")(<task-notification>|Stop hook feedback|<command-(?:name|message)>)'
)
OPENINGS = {b"<task-notification>": "task", b"Stop hook feedback": "hook"}
"""How texts begin that no person wrote; the others are slash commands."""
PLAN_MODE = "plan"
MEDIA = (b'"image"', b'"document"')
IMAGE_BYTES = 6_000
"""Of a text with about as many tokens as an image, which is billed by its area and not by its bytes."""


class CacheCreation(msgspec.Struct, gc=False):
    ephemeral_5m_input_tokens: Count | None = None
    ephemeral_1h_input_tokens: Count | None = None


class TokenCounts(msgspec.Struct, gc=False):
    input_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    cache_creation: CacheCreation | None = None
    output_tokens: Count | None = None


class Iteration(TokenCounts, gc=False):
    type: str | None = None
    model: str | None = None


class LineUsage(TokenCounts, gc=False):
    """The usage of a line, as the API returned it."""

    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None
    iterations: list[Iteration] | None = None
    server_tool_use: dict[str, Any] | None = None


class MissReason(msgspec.Struct, gc=False):
    type: str = ""
    cache_missed_input_tokens: Count | None = None


class Diagnostics(msgspec.Struct, gc=False):
    cache_miss_reason: MissReason | str | None = None


class Piece(msgspec.Struct, gc=False):
    """The type of a content block."""

    type: str = "text"


class InputPiece(Piece, gc=False):
    """A block of what a person or a tool sent; of a tool's result, the call that it answers."""

    tool_use_id: str | None = None
    text: msgspec.Raw = msgspec.Raw(b"")
    content: msgspec.Raw = msgspec.Raw(b"")

    @property
    def has_media(self) -> bool:
        start = bytes(memoryview(self.content)[:40])
        return self.type in ("image", "document") or any(kind in start for kind in MEDIA)

    @property
    def size(self) -> int:
        """The length of its content as JSON; of an image, that of a text with as many tokens."""
        if self.type == "image":
            return IMAGE_BYTES
        content = memoryview(self.content)
        if len(content) > IMAGE_BYTES and bytes(content[:1]) == b"[":
            return sum(piece.size for piece in input_facts(self.content).pieces)
        return len(memoryview(self.text)) + len(content)


class SkillInput(msgspec.Struct, gc=False):
    """What the tool Skill is called with; older clients name it `command`."""

    skill: str = ""
    command: str = ""


class AnswerPiece(Piece, gc=False):
    """A block of an answer: what the model wrote in it; of a tool call its id, and its name and input as JSON."""

    text: str = ""
    thinking: str = ""
    id: str = ""
    name: msgspec.Raw = msgspec.Raw(b"")
    input: msgspec.Raw = msgspec.Raw(b"")

    @property
    def bytes(self) -> int:
        """The length of what the model wrote, in UTF-8; 0 where only its size was kept."""
        written = len(memoryview(self.input))
        written += len(memoryview(self.name)) if written else 0
        for text in (self.text, self.thinking):
            written += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        return written

    @property
    def tool(self) -> str:
        """The tool that is called, or the skill behind `SKILL`."""
        name = str(msgspec.json.decode(self.name))
        if name != "Skill":
            return name
        try:
            named = _decode_skill(self.input)
        except msgspec.DecodeError:
            return name
        return SKILL + (named.skill or named.command)


class LineMessage(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    usage: LineUsage | None = None
    content: msgspec.Raw = msgspec.Raw(b"[]")
    diagnostics: Diagnostics | None = None
    stop_reason: str | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def is_partial(self) -> bool:
        """Whether the line was written while the answer was streaming: then its output tokens are those so far.
        Versions 2.0 and 2.1 of early 2026 never wrote the rest (anthropics/claude-code#22686, #27361)."""
        return self.stop_reason is None


class Attachment(msgspec.Struct, gc=False):
    type: str = ""
    hookEvent: str | None = None  # noqa: N815 - the transcript's name
    hookName: str | None = None  # noqa: N815
    commandMode: str | None = None  # noqa: N815


class ThinkingMetadata(msgspec.Struct, gc=False, frozen=True):
    level: str | None = None
    disabled: bool | None = None
    maxThinkingTokens: int | None = None  # noqa: N815 - the transcript's name

    @property
    def is_on(self) -> bool:
        return not self.disabled and self.level != "none" and self.maxThinkingTokens != 0


class RequestParams(msgspec.Struct, gc=False):
    """The parameters of a request that are part of its cache key."""

    thinking: msgspec.Raw = msgspec.Raw(b"")
    output_config: msgspec.Raw = msgspec.Raw(b"")


class RequestShape(msgspec.Struct, gc=False):
    system: msgspec.Raw = msgspec.Raw(b"")
    tools: msgspec.Raw = msgspec.Raw(b"")


class RequestFacts(NamedTuple):
    """What a transcript says of a request (client 2.1.282 and later), as digests where only equality matters."""

    tools: bytes
    system: bytes
    thinking: bytes
    effort: bytes
    base: str
    """The request whose first `keep` of its messages this one begins with."""
    keep: int
    messages: int


class ModelSum(msgspec.Struct, gc=False):
    """What the client counted for one model (type cost-state, client 2.1.282 and later)."""

    inputTokens: Count = 0  # noqa: N815
    cacheReadInputTokens: Count = 0  # noqa: N815
    cacheCreationInputTokens: Count = 0  # noqa: N815
    cacheCreationEphemeral1hInputTokens: Count = 0  # noqa: N815
    outputTokens: Count = 0  # noqa: N815

    @property
    def tokens(self) -> TOKENS:
        hour = self.cacheCreationEphemeral1hInputTokens
        five = max(0, self.cacheCreationInputTokens - hour)
        return (self.inputTokens, self.cacheReadInputTokens, five, hour, self.outputTokens)


class RecordLine(msgspec.Struct, gc=False):
    """What a line of any type says of its place in the tree of records; what it lacks is None."""

    type: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None  # noqa: N815 - the transcript's name
    logicalParentUuid: str | None = None  # noqa: N815
    sessionId: str | None = None  # noqa: N815
    agentId: str | None = None  # noqa: N815
    timestamp: str | None = None
    cwd: str | None = None
    isSidechain: bool | None = None  # noqa: N815


class TranscriptLine(RecordLine, gc=False):
    """A line of any type with what its bill needs; what a type lacks is None."""

    subtype: str | None = None
    requestId: str | None = None  # noqa: N815
    version: str | None = None
    isCompactSummary: bool | None = None  # noqa: N815
    isMeta: bool | None = None  # noqa: N815
    permissionMode: str | None = None  # noqa: N815
    isApiErrorMessage: bool | None = None  # noqa: N815
    thinkingMetadata: ThinkingMetadata | None = None  # noqa: N815
    message: LineMessage | None = None
    attachment: Attachment | None = None
    attributionAgent: str | None = None  # noqa: N815
    requestRef: str | None = None  # noqa: N815
    effort: str | None = None
    id: str | None = None
    cacheControl: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815
    shapeHash: str | None = None  # noqa: N815
    shape: RequestShape | None = None
    params: RequestParams | None = None
    base: str | None = None
    keep: Count = 0
    tail: list[str] = []
    modelUsage: dict[str, ModelSum] | None = None  # noqa: N815
    gitBranch: str | None = None  # noqa: N815
    sourceToolUseID: str | None = None  # noqa: N815
    customTitle: str | None = None  # noqa: N815
    aiTitle: str | None = None  # noqa: N815
    prNumber: int | None = None  # noqa: N815
    prRepository: str | None = None  # noqa: N815

    @property
    def is_whole(self) -> bool:
        """Whether it has all that a line of its type must have."""
        message = self.message
        if message is None:
            return self.type not in ("assistant", "user")
        return message.model is not None or message.usage is None or self.type != "assistant"


class NotJson(ValueError):
    """A line that does not parse: the last one of a file may still be being written."""


_decode_line = msgspec.json.Decoder(TranscriptLine).decode
_decode_record = msgspec.json.Decoder(RecordLine).decode
_decode_pieces = msgspec.json.Decoder(list[InputPiece | str]).decode
_decode_skill = msgspec.json.Decoder(SkillInput).decode
_decode_answer = msgspec.json.Decoder(list[AnswerPiece]).decode


def decode_line(line: bytes) -> TranscriptLine | None:
    """A line of a transcript; None for one that has no place in it. Raises NotJson, and ValueError where a line that
    matters has a field of another type."""
    try:
        found = _decode_line(line)
    except msgspec.ValidationError as error:
        value = _object_or_error(json_value(line))
        if not isinstance(value.get("type"), str) or value["type"] in MAIN_KINDS:
            expected, _, place = str(error).partition(" - at `$.")
            raise ValueError(f"{place.removesuffix('`') or 'line'}: {expected[:1].lower()}{expected[1:]}") from None
        try:  # it is of no call: only its place matters
            return TranscriptLine(**msgspec.structs.asdict(_decode_record(line)))
        except msgspec.ValidationError:
            return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return decode_line(_repair_line(line))
    if found.type is None:
        raise ValueError("type: expected a text; got nothing")
    return found


def _repair_line(line: bytes) -> bytes:
    """A line with half a surrogate pair, as a text that was cut off has one, or a byte order mark; without these.
    Raises NotJson, and ValueError for another value than an object."""
    from cachecost.conversations.json_object import parse_json, reason

    value = parse_json(line)
    if isinstance(value, ValueError):
        raise NotJson(reason(value))
    try:
        return json.dumps(_object_or_error(value), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    except ValueError as error:
        if isinstance(value, dict):
            raise NotJson(f"damaged JSON: {error}") from None
        raise


def _object_or_error(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        from cachecost.prompts.request import show_found

        raise ValueError(f"expected an object; got {show_found(value)}")
    return value


def billed_tokens(usage: TokenCounts) -> TOKENS:
    """Input, read, 5m write, 1h write, output. What of a write has no TTL counts as 5m."""
    parts = usage.cache_creation
    hour = (parts.ephemeral_1h_input_tokens or 0) if parts else 0
    five = (parts.ephemeral_5m_input_tokens or 0) if parts else 0
    five += max(0, (usage.cache_creation_input_tokens or 0) - five - hour)
    return (usage.input_tokens or 0, usage.cache_read_input_tokens or 0, five, hour, usage.output_tokens or 0)


def counts_nothing(usage: LineUsage) -> bool:
    """Whether a usage counts no token: that of a copy (its 5m and 1h part may stay). A call has input."""
    counters = (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
    return not any((*counters, usage.output_tokens)) and None not in (*counters, usage.output_tokens)


def modes_in(usage: LineUsage) -> tuple[str, ...]:
    """What changes the price of the call."""
    if usage.service_tier in (None, "standard") and usage.speed is None and usage.inference_geo is None:
        return ()
    return terms_of({name: getattr(usage, name) for name in PRICED}, False).modes


def is_client_generated(line: TranscriptLine, message: LineMessage) -> bool:
    """Whether the client made the message itself: it costs nothing."""
    return message.model == SYNTHETIC or bool(line.isApiErrorMessage)


class InputFacts(NamedTuple):
    """What a user message holds: its blocks, the event that its opening shows ("": none), the command of a person in it
    (b"": none), and whether it brings an image or a PDF."""

    pieces: list[InputPiece]
    opening: str = ""
    command: bytes = b""
    has_media: bool = False

    @property
    def types(self) -> list[str]:
        return [piece.type for piece in self.pieces]


def input_facts(content: msgspec.Raw) -> InputFacts:
    """What the content of a user message says."""
    start = bytes(memoryview(content)[:80])
    opened = OPENING.match(start)
    opening = OPENINGS.get(opened[1], "command") if opened else ""
    if start[:1] == b'"':
        before, found, rest = start.partition(COMMAND)  # as in `<command-name>/compact</command-name>`
        command = rest.partition(b"<")[0].strip() if found and len(before) < 60 else b""
        return InputFacts([InputPiece(text=content)], opening, command)
    if start[:1] != b"[":
        return InputFacts([])
    try:
        pieces = [piece if isinstance(piece, InputPiece) else InputPiece() for piece in _decode_pieces(content)]
    except msgspec.ValidationError:
        return InputFacts([InputPiece(str(kind_of(block))) for block in json_value(bytes(content))])
    return InputFacts(pieces, opening, b"", any(piece.has_media for piece in pieces))


def answer_pieces(content: msgspec.Raw) -> list[AnswerPiece]:
    """The blocks of an answer; of an unexpected form only their types."""
    try:
        return _decode_answer(content)
    except msgspec.DecodeError:
        return [AnswerPiece(type=kind) for kind in input_facts(content).types]


def digest(raw: msgspec.Raw) -> bytes:
    """Equal for equal JSON texts."""
    return blake2b(memoryview(raw), digest_size=8).digest()
