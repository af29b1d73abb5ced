"""The blocks of a call: how long each is, what happened to it, and how it differs from the call before, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from json import dumps
from typing import Literal

from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.compare import (
    are_versions,
    first_difference,
    opcodes,
    pair_in_order,
    prefixes_back,
    shared_ends,
    text_of,
    value_text,
)
from cachecost.prompts.request import Request
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import Pass, SimulatedCall

USES = ("tool_use", "server_tool_use", "mcp_tool_use")
PARTS = {"text": "text", "thinking": "thinking"}
"""The field that holds the text of a part, by its type."""


def readable_text(block: Block, layer: Layer = Layer.MESSAGES) -> str | None:
    """What a person reads of a block; its JSON where there is no text in it, None where its content is not known."""
    content = block.content
    if content is None:
        return None
    if layer is Layer.TOOLS:
        rest = {name: value for name, value in content.items() if name not in ("name", "description")}
        words = [content.get("name"), content.get("description"), dumps(rest, ensure_ascii=False) if rest else ""]
        return "\n".join(word for word in words if isinstance(word, str) and word) or text_of(block)
    if block.kind in USES:  # such as "Bash command: ls"
        given = content.get("input")
        fields = given.items() if isinstance(given, dict) else ()
        inputs = ", ".join(f"{name}: {value_text(value)}" for name, value in fields)
        return f"{content.get('name', '')} {inputs or value_text(given or '')}".strip()
    text = content.get(PARTS.get(block.kind, ""))
    if block.kind.endswith("tool_result"):
        result = content.get("content")
        parts = [part for part in (result if isinstance(result, list) else ()) if isinstance(part, dict)]
        named = ((part.get("text"), part.get("type", "part")) for part in parts)
        lines = "\n".join(words if isinstance(words, str) else f"[{kind}]" for words, kind in named)
        text = (result if isinstance(result, str) else lines) or None
    return text if isinstance(text, str) else text_of(block)


def compared_texts(old: Block, new: Block, layer: Layer) -> tuple[str, str] | None:
    """Both texts as a person reads them, or as JSON where only that differs; None where one is not known."""
    was, now = readable_text(old, layer), readable_text(new, layer)
    if was is None or now is None:
        return None
    is_hidden = was == now and old.digest != new.digest
    return (text_of(old), text_of(new)) if is_hidden else (was, now)


BlockState = Literal["read", "write_1h", "write_5m", "input", "hidden", "stripped"]
CHARGED: tuple[BlockState, ...] = ("read", "write_1h", "write_5m", "input")
"""States in the order in which they lie in a prompt."""


@dataclass(frozen=True, slots=True)
class SentBlock:
    """A block of a call. `block` is None for tokens that the provider adds ("hidden"), and for what no record has: of
    tools and system prompt of a transcript only the bill tells (`is_unrecorded`).

    `state` "stripped": it was sent, but is not in the prompt; then it has no tokens. `breakpoint` is the TTL of one on
    the block, "" without.
    """

    layer: Layer
    block: Block | None
    tokens: int
    state: BlockState
    breakpoint: str = ""
    is_unrecorded: bool = False

    @property
    def digest(self) -> bytes:
        """The identity of its content."""
        return self.block.digest if self.block else b""


def sent_blocks(call: Call, made: SimulatedCall | None, billed: Usage | None) -> list[SentBlock]:
    """The blocks of a call as a replay rendered them; where it could not, those that were sent, sized by their bytes.

    With a bill, their tokens add up to its input, unless it sums several passes.
    """
    usage = billed if billed is not None and billed.total_input else None
    if made is None or not made.passes:
        found = _size_by_bytes(call.request, usage or Usage())
    else:
        first = made.passes[0]
        is_whole = usage is not None and len(made.passes) == 1
        rendered = _size_as_rendered(first, usage if is_whole and usage else first.outcome.usage)
        messages = (at for at, one in enumerate(rendered) if one.block and one.layer is Layer.MESSAGES)
        start = next(messages, len(rendered))
        found, inside, sent = rendered[:start], rendered[start:], _message_blocks(call.request)
        before, now = [block.digest for block in sent], [one.digest for one in inside]
        for kind, i, j, k, m in opcodes(before, now, first_difference(before, now)):
            if kind != "equal":  # sent, and not rendered
                found += [SentBlock(Layer.MESSAGES, block, 0, "stripped") for block in sent[i:j]]
            found += inside[k:m]
    return _join_fillers(found) if call.line else found


def _join_fillers(blocks: list[SentBlock]) -> list[SentBlock]:
    """Of a static prefix that a reader made, as its format lacks it, only how many tokens were read and written."""
    prefix = [one.block for one in blocks if one.layer is Layer.SYSTEM and one.block is not None]
    if not any(block.content is None and block.tokens is not None for block in prefix):
        return blocks
    made, hidden = list[SentBlock](), 0
    for one in blocks:
        if one.layer is Layer.MESSAGES:
            made.append(one)
        elif one.block is None:
            hidden += one.tokens
        else:
            tokens, hidden = one.tokens + hidden, 0
            if made and made[-1].state == one.state:
                tokens += made.pop().tokens
            made.append(SentBlock(Layer.SYSTEM, None, tokens, one.state, one.breakpoint, is_unrecorded=True))
    return made


def _size_as_rendered(one: Pass, usage: Usage) -> list[SentBlock]:
    total = one.sizes.total(one.prompt)

    def stretch(position: int) -> int:
        billed = usage.total_input
        return position if total == billed or not total else round(min(position, total) * billed / total)

    breakpoints = {breakpoint.prefix: breakpoint.ttl for breakpoint in one.prompt.breakpoints}
    made, before = list[SentBlock](), 0
    for node in [*prefixes_back(one.prompt.end)][::-1]:
        end = max(before, stretch(one.sizes.of(node)))
        if node.block is not None:
            state = _state_at(usage, before, end)
            made.append(SentBlock(node.layer, node.block, end - before, state, breakpoints.get(node, "")))
        elif end > before:
            made.append(SentBlock(node.layer, None, end - before, "hidden"))
        before = end
    rest = stretch(total) - before
    return [*made, SentBlock(Layer.MESSAGES, None, rest, "hidden")] if rest > 0 else made


def _state_at(usage: Usage, start: int, end: int) -> BlockState:
    limit = 0
    for tokens, state in zip((usage.read, usage.write_1h, usage.write_5m), CHARGED, strict=False):
        limit += tokens
        if start + end < 2 * limit:
            return state
    return "input"


def _size_by_bytes(request: Request, usage: Usage) -> list[SentBlock]:
    parts = (Layer.TOOLS, request.tools.blocks), (Layer.SYSTEM, request.system.blocks)
    placed = [(layer, block) for layer, blocks in parts for block in blocks]
    placed += [(Layer.MESSAGES, block) for block in _message_blocks(request)]
    total = sum(block.size for _, block in placed)
    made, bytes_before, before = list[SentBlock](), 0, 0
    for layer, block in placed:
        bytes_before += block.size
        end = round(usage.total_input * bytes_before / total) if total else 0
        made.append(SentBlock(layer, block, end - before, _state_at(usage, before, end)))
        before = end
    return made


def _message_blocks(request: Request) -> list[Block]:
    return [block for message in request.thread.messages() for block in message.blocks]


Change = Literal["same", "changed", "new"]
AROUND = 80
"""Characters shown before the first one that differs, of what differs, and after it."""


@dataclass(frozen=True, slots=True)
class BlockChange:
    """What became of a block; `before` is the index of its counterpart in the call before (None: it has none)."""

    change: Change
    before: int | None = None


@dataclass(frozen=True, slots=True)
class CallChanges:
    """A change for each block of a call, and the indices of blocks of the call before that are no longer there."""

    blocks: Sequence[BlockChange]
    gone: Sequence[int]

    @property
    def first_changed(self) -> int | None:
        """The index of the first block that changed."""
        return next((at for at, one in enumerate(self.blocks) if one.change == "changed"), None)


@dataclass(frozen=True, slots=True)
class TextDifference:
    """Where two texts first differ: at character `at`, what was there and what is; `before` and `after` are in both."""

    at: int
    before: str
    was: str
    now: str
    after: str


def compare_blocks(before: Sequence[SentBlock], now: Sequence[SentBlock]) -> CallChanges:
    """The changes from one call to the next. Provider-added tokens are ignored."""
    old = [(at, one.layer, one.block) for at, one in enumerate(before) if one.block]
    new = [(at, one.layer, one.block) for at, one in enumerate(now) if one.block]
    found = {at: BlockChange("same") for at, one in enumerate(now) if not one.block}
    kept: set[int] = set()
    for i, k in pair_in_order([block.digest for *_, block in old], [block.digest for *_, block in new]):
        if i is None or k is None:
            continue
        (one, layer, was), (other, other_layer, block) = old[i], new[k]
        is_same = was.digest == block.digest
        # A block stands for another that is a version of it, or in its place in tools and system.
        is_head = layer is not Layer.MESSAGES and (was.kind, was.role) == (block.kind, block.role)
        if is_same or (layer is other_layer and (is_head or are_versions(was, block, layer))):
            found[other] = BlockChange("same" if is_same else "changed", one)
            kept.add(one)
    blocks = [found.get(at, BlockChange("new")) for at in range(len(now))]
    return CallChanges(blocks, [at for at, *_ in old if at not in kept])


def first_text_difference(old: Block, new: Block, layer: Layer) -> TextDifference | None:
    """Where the texts of two blocks first differ; None without content."""
    texts = compared_texts(old, new, layer)
    if texts is None:
        return None
    was, now = texts
    at, shared = shared_ends(was, now)
    lost, added = was[at : len(was) - shared], now[at : len(now) - shared]
    after = now[len(now) - shared :][:AROUND] if max(len(lost), len(added)) <= AROUND else ""
    return TextDifference(at, now[max(0, at - AROUND) : at], _cut(lost), _cut(added), after)


def _cut(text: str) -> str:
    return text if len(text) <= AROUND else f"{text[:AROUND]}…"
