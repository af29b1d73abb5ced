r"""Turns logged request bodies into `Request`s that share what they repeat.

Every message, tool list and system prompt is parsed once, however many bodies repeat it: the digest of the bytes as
sent is the key, so the bytes need not be kept. A body that continues an earlier one of its conversation is compared
with that one, so a growing log costs a byte comparison and a parse of what is new. A message of text blocks whose
bytes already are the compact JSON of rule 19 needs no parse.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cachecost.prompts.blocks import (
    NO_COUNTS,
    Block,
    Layer,
    Message,
    Part,
    Thread,
    digest_of,
    digesting,
    message_digest,
)
from cachecost.prompts.compare import first_difference
from cachecost.prompts.exact_json import decode, has_content, load, load_with_writer
from cachecost.prompts.output_format import CACHE_KEYS
from cachecost.prompts.request import (
    BREAKPOINT,
    PROVIDER_TOOLS,
    TTL,
    BareWord,
    Breakpoint,
    NotAMessage,
    ParsedMessage,
    Request,
    Write,
    block_of,
    collect_breakpoints,
    content_blocks,
    parse_message,
    ttl_of,
)
from cachecost.providers.hosts import model_at

TEXT = b'{"type":"text","text":"'
OPENINGS = [(b'{"role":"%b","content":[%b' % (role.encode(), TEXT), role) for role in ("user", "assistant")]
BETWEEN, QUOTES_BETWEEN = b'"},' + TEXT, 8
CLOSING = b'"}'
TEXT_AND_CLOSING = len(TEXT + CLOSING)
BEGUN = {role: digesting(role, "text", TEXT) for _, role in OPENINGS}
"""The digests of text blocks as far as all those of a role are alike."""
ENDS: tuple[tuple[bytes, TTL | None], ...] = (
    (b'"}]}', None),
    (b'","cache_control":{"type":"ephemeral"}}]}', "5m"),
    (b'","cache_control":{"type":"ephemeral","ttl":"1h"}}]}', "1h"),
    (b'","cache_control":{"type":"ephemeral","ttl":"5m"}}]}', "5m"),
)
"""How a message may end, with the breakpoint on its last block."""
BACKSLASH, NEWLINE, QUOTE = b"\\", rb"\n", rb"\""
ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
SAME = frozenset(b'nrtbf"\\'[index : index + 1] for index in range(7))
"""What may follow a backslash where Python's encoder writes it the same way."""


def plain_message(data: bytes) -> ParsedMessage | None:
    """The message of these bytes, without its content; None where it has to be parsed."""
    for opening, role in OPENINGS:
        if data.startswith(opening):
            for end, ttl in ENDS:
                if data.endswith(end) and len(data) >= len(opening) + len(end):
                    return _message_of_texts(role, data[len(opening) : -len(end)], ttl)
    return None


def _message_of_texts(role: str, inner: bytes, ttl: TTL | None) -> ParsedMessage | None:
    """The message of the texts in `inner` and what stands between them."""
    escaped = _escaped_quotes(inner) if BACKSLASH in inner else 0
    if escaped is None:
        return None
    quotes = inner.count(b'"') - escaped
    texts = inner.split(BETWEEN) if quotes else [inner]
    if quotes != QUOTES_BETWEEN * (len(texts) - 1) or (ttl and not texts[-1]):
        return None
    blocks = tuple([_text_block(role, text) for text in texts]) if len(texts) > 1 else (_text_block(role, texts[0]),)
    message = Message(role, blocks, message_digest(role, blocks), role == "user")
    return ParsedMessage(message, ((len(blocks) - 1, ttl),)) if ttl else ParsedMessage(message)


def _escaped_quotes(data: bytes) -> int | None:
    """The number of escaped quotes; None if an escape is not written as Python's encoder writes it."""
    others = data.count(BACKSLASH) - data.count(NEWLINE)
    if not others or data.count(QUOTE) == others:  # each backslash begins one of these, as in most texts
        return others
    escapes = ESCAPE.findall(data)
    return escapes.count(b'"') if SAME.issuperset(escapes) else None


def _text_block(role: str, text: bytes) -> Block:
    hashed = BEGUN[role].copy()
    hashed.update(text + CLOSING)
    size = TEXT_AND_CLOSING + len(text)
    return Block("text", role, hashed.digest(), size, None, None, NO_COUNTS, is_empty_text=not text)


MOST_RECENT = 64
"""Conversations whose last body is kept to compare with; the least recent goes first."""
REFERENCE = b'"tool_reference"'
ABSENT = msgspec.Raw(b"null")


class RawBody(msgspec.Struct):
    """A Messages API body whose parts are still bytes, without fields that do not affect the prompt."""

    messages: list[msgspec.Raw]
    model: msgspec.Raw = ABSENT
    tools: msgspec.Raw = ABSENT
    system: msgspec.Raw = ABSENT
    cache_control: msgspec.Raw = ABSENT
    tool_choice: msgspec.Raw = ABSENT
    thinking: msgspec.Raw = ABSENT
    output_config: msgspec.Raw = ABSENT
    output_format: msgspec.Raw = ABSENT
    context_management: msgspec.Raw = ABSENT
    speed: msgspec.Raw = ABSENT
    container: msgspec.Raw = ABSENT
    inference_geo: msgspec.Raw = ABSENT
    max_tokens: msgspec.Raw = ABSENT
    stream: msgspec.Raw = ABSENT
    service_tier: msgspec.Raw = ABSENT
    betas: msgspec.Raw = ABSENT
    anthropic_beta: msgspec.Raw = ABSENT
    thread: msgspec.Raw = ABSENT
    compaction: msgspec.Raw = ABSENT
    verbosity: msgspec.Raw = ABSENT
    parallel_tool_calls: msgspec.Raw = ABSENT
    prompt_cache_key: msgspec.Raw = ABSENT
    cache_salt: msgspec.Raw = ABSENT
    extra_key: msgspec.Raw = ABSENT
    user_id: msgspec.Raw = ABSENT
    instruction_blocks: msgspec.Raw = ABSENT


RAW_BODY = msgspec.json.Decoder(RawBody)
OBJECTS = ("tool_choice", "thinking", "output_config", "output_format", "context_management")
PARAMETERS = (
    *(*OBJECTS, "speed", "container", "inference_geo", "max_tokens", "service_tier", "betas", "anthropic_beta"),
    *("thread", "compaction"),
    *("verbosity", "parallel_tool_calls", "instruction_blocks", *CACHE_KEYS),  # of other providers
)


class CannotContinue(Exception):
    """A body that cannot continue another: its messages refer to tools that the other did not have."""


class BodyHead(msgspec.Struct):
    """Tools and system of a body as parts, with their breakpoints and errors."""

    tools: Part
    system: Part
    breakpoints: tuple[Breakpoint, ...]
    faults: tuple[str, ...]
    deferred: dict[str, Block]


class MessageTrail(msgspec.Struct):
    """The messages of a body as nodes, with their breakpoints and errors."""

    deferred: dict[str, Block]
    nodes: list[Thread]
    breakpoints: list[Breakpoint]
    faults: list[tuple[int, str]]
    has_content: bool = False

    def cut(self, messages: int) -> MessageTrail:
        """The trail before the message of that index."""
        return MessageTrail(
            self.deferred,
            self.nodes[:messages],
            [breakpoint for breakpoint in self.breakpoints if breakpoint.node and breakpoint.node.length <= messages],
            [fault for fault in self.faults if fault[0] < messages],
            self.has_content,
        )


class Intake:
    """Turns bodies into requests; use one instance for all bodies that may share content.

    With `keep_content`, blocks hold what was sent (needed to count tokens or to send it again); a reader may set it
    anew for each body.
    """

    def __init__(self, keep_content: bool = False) -> None:
        self.keep_content = keep_content
        self.root = Thread()
        self._messages: dict[bytes, ParsedMessage] = {}
        self._recent: dict[tuple[bytes, bool], tuple[list[msgspec.Raw], MessageTrail]] = {}
        self._heads: dict[tuple[bytes, bytes, bool], BodyHead] = {}
        self._values: dict[bytes, Any] = {}

    def body(self, body: Mapping[str, Any]) -> Request:
        """The request of a parsed body. Raises NotAMessage."""
        try:
            return self.request(decode(RAW_BODY.decode, json.dumps(body).encode())[1])
        except msgspec.ValidationError as error:
            raise not_a_message(error) from None
        except msgspec.DecodeError:
            raise NotAMessage("body", "JSON without NaN and Infinity", BareWord("one of them")) from None

    def request(self, raw: RawBody, before: MessageTrail | None = None) -> Request:
        """The request of a raw body. Raises NotAMessage with the path of what is wrong.

        The body's messages are appended to `before`. Raises NotTheSame where that cannot be
        continued.
        """
        model = self._value(raw.model, "model")
        if not isinstance(model, str) or not model:
            raise NotAMessage("model", "a model id", model)
        heads = self.heads(raw)
        trail = self._trail(raw.messages, heads.deferred) if before is None else before
        if before is not None:
            self.add(before, raw.messages, heads)
        params = {name: self._value(getattr(raw, name), name) for name in PARAMETERS}
        for name in OBJECTS:
            if params[name] is not None and not isinstance(params[name], Mapping):
                raise NotAMessage(name, "an object", params[name])
        if params["max_tokens"] == 0:  # the only requests that may not be streamed
            params["stream"] = self._value(raw.stream, "stream") or None
        breakpoints = (*heads.breakpoints, *trail.breakpoints)
        automatic = ttl_of(self._value(raw.cache_control, BREAKPOINT), "body")
        return Request(
            model_at(model, "") if breakpoints or automatic else model,
            trail.nodes[-1] if trail.nodes else self.root,
            heads.tools,
            heads.system,
            breakpoints,
            automatic,
            {name: value for name, value in params.items() if value is not None},
            next(iter((*heads.faults, *(fault for _, fault in trail.faults))), None),
            heads.deferred,
        )

    def again(self, known: Request, heads: BodyHead, trail: MessageTrail) -> Request:
        """The request that differs from a `known` one only in its messages. Raises CannotContinue where but one of them
        has breakpoints."""
        breakpoints = (*heads.breakpoints, *trail.breakpoints)
        if bool(breakpoints) != bool(known.breakpoints):  # which may be another way of caching
            raise CannotContinue
        return Request(
            known.model,
            trail.nodes[-1] if trail.nodes else self.root,
            known.tools,
            known.system,
            breakpoints,
            known.automatic,
            known.params,
            next(iter((*heads.faults, *(fault for _, fault in trail.faults))), None),
            heads.deferred,
        )

    def add(self, trail: MessageTrail, raws: Sequence[msgspec.Raw], heads: BodyHead) -> None:
        """Continue a conversation under `heads`. Raises NotAMessage and NotTheSame."""
        if not trail.nodes:
            trail.deferred, trail.has_content = heads.deferred, self.keep_content
        if trail.deferred != heads.deferred or trail.has_content != self.keep_content:
            raise CannotContinue
        for raw in raws:
            self._add(trail, bytes(raw), len(trail.nodes))

    def _trail(self, raws: list[msgspec.Raw], deferred: dict[str, Block]) -> MessageTrail:
        """The messages as nodes; messages of the conversation's last body are not parsed again."""
        key = bytes(raws[0]) if raws else b"", self.keep_content
        known, before = self._recent.pop(key, ((), None))
        if before is not None and before.deferred == deferred:
            trail = before.cut(first_difference(known, raws))
        else:
            trail = MessageTrail(deferred, [], [], [], self.keep_content)
        for number in range(len(trail.nodes), len(raws)):
            self._add(trail, bytes(raws[number]), number)
        self._recent[key] = raws, trail
        if len(self._recent) > MOST_RECENT:
            del self._recent[next(iter(self._recent))]
        return trail

    def _add(self, trail: MessageTrail, data: bytes, number: int) -> None:
        parsed = None if self.keep_content else plain_message(data)
        if parsed is None:
            refers = bool(trail.deferred) and REFERENCE in data
            key = digest_of("", "content" if self.keep_content else "bytes", data)
            parsed = None if refers else self._messages.get(key)
            if parsed is None:
                value, write = load_with_writer(data, f"messages.{number}")
                parsed = parse_message(value, self.keep_content, number, trail.deferred, write)
            if not refers:
                self._messages[key] = parsed
        node = (trail.nodes[-1] if trail.nodes else self.root).then(parsed.message)
        if self.keep_content and node.message is not parsed.message and not all(map(has_content, node.message_blocks)):
            node.message = parsed.message  # a call whose content is not needed sent it before
        trail.nodes.append(node)
        if parsed.breakpoints:
            trail.breakpoints += [Breakpoint(Layer.MESSAGES, index, ttl, node) for index, ttl in parsed.breakpoints]
        if parsed.faults:
            trail.faults += [(number, fault.replace("{n}", str(number), 1)) for fault in parsed.faults]

    def heads(self, raw: RawBody) -> BodyHead:
        """Tools and system of a body, parsed once for all bodies that share them. Raises NotAMessage."""
        tools_json, system_json = bytes(raw.tools), bytes(raw.system)
        key = (digest_of("", "bytes", tools_json), digest_of("", "bytes", system_json), self.keep_content)
        if key in self._heads:
            return self._heads[key]
        tool_values, write_tool = load_with_writer(tools_json, "tools")
        system_values, write_system = load_with_writer(system_json, "system")
        tools = _objects(tool_values, "tools")
        system = content_blocks(system_values or [], "system")
        theirs = [number for number, tool in enumerate(tools) if str(tool.get("type") or "").startswith(PROVIDER_TOOLS)]
        deferred = [number for number, tool in enumerate(tools) if tool.get("defer_loading") is True]
        ours = [number for number in range(len(tools)) if number not in theirs and number not in deferred]
        tool_breakpoints, tool_faults = collect_breakpoints(tools, "tools")
        system_breakpoints, system_faults = collect_breakpoints(system, "system")
        ttls, shift = dict(tool_breakpoints), len(theirs)
        heads = self._heads[key] = BodyHead(
            Part(self._blocks("", [tools[number] for number in ours], write_tool), _places(ours, 0, 0)),
            Part(
                self._blocks("", [tools[number] for number in theirs], write_tool)
                + self._blocks("system", system, write_system),
                _places([*theirs, *range(len(system))], len(ours), shift),
            ),
            tuple(
                [Breakpoint(Layer.TOOLS, index, ttls[number]) for index, number in enumerate(ours) if number in ttls]
                + [
                    Breakpoint(Layer.SYSTEM, index, ttls[number])
                    for index, number in enumerate(theirs)
                    if number in ttls
                ]
                + [Breakpoint(Layer.SYSTEM, index + shift, ttl) for index, ttl in system_breakpoints]
            ),
            tuple(tool_faults + system_faults),
            {str(tools[number].get("name")): block_of("", tools[number], self.keep_content) for number in deferred},
        )
        return heads

    def _blocks(self, role: str, items: list[Mapping[str, Any]], write: Write) -> tuple[Block, ...]:
        return tuple([block_of(role, item, self.keep_content, write) for item in items])

    def _value(self, raw: msgspec.Raw, path: str) -> Any:
        data = bytes(raw)
        if data not in self._values:
            self._values[data] = load(data, path)
        return self._values[data]


def _places(as_sent: list[int], ours: int, theirs: int) -> tuple[int, ...] | None:
    """Where blocks were sent; None for the order that `request.place_as_sent` assumes (server tools last)."""
    usual = [*range(ours, ours + theirs), *range(len(as_sent) - theirs)]
    return None if as_sent == usual else tuple(as_sent)


WORDS = {"array": "an array", "object": "an object", "str": "a string", "int": "a number", "float": "a number"}
REQUIRED = {"request": "a Messages API body", "messages": "an array of messages"}


def not_a_message(error: msgspec.ValidationError) -> NotAMessage:
    """A msgspec error as NotAMessage: the path within the body, what was expected, what was found."""
    text, _, path = str(error).replace("`", "").partition(" - at $")
    inside = path.removeprefix(".request").lstrip(".")
    if "missing required field" in text:
        name = text.rpartition(" ")[2]
        return NotAMessage(name, REQUIRED[name], BareWord("nothing"))
    expected, _, got = text.removeprefix("Expected ").partition(", got ")
    return NotAMessage(inside or "body", WORDS.get(expected, expected), BareWord(WORDS.get(got, got)))


def _objects(value: Any, path: str) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise NotAMessage(path, "an array of tools", value)
    for number, item in enumerate(value):
        if not isinstance(item, Mapping):
            raise NotAMessage(f"{path}.{number}", "a tool object", item)
    return value
