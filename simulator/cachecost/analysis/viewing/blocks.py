"""The blocks of a call, in the order of the prompt: how long each is, and what happened to it.

The bill says how many tokens were read and written; they lie in the prompt in this order: read, written for an hour,
written for five minutes, uncached (rule 15). A block belongs to where its middle lies. Of a call without a bill, or
whose bill sums several passes, the replay says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Block, Layer, Prefix
from cachecost.prompts.request import Request
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import Pass, SimulatedCall

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


def sent_blocks(call: RecordedCall, made: SimulatedCall | None, billed: Usage | None) -> list[SentBlock]:
    """The blocks of a call as a replay rendered them; where it could not, those that were sent, sized by their bytes.

    With a bill, their tokens add up to its input, unless it sums several passes.
    """
    usage = billed if billed is not None and billed.total_input else None
    if made is None or not made.passes:
        found = _unrendered(call.request, usage or Usage())
    else:
        first = made.passes[0]
        is_whole = usage is not None and len(made.passes) == 1
        found = _with_stripped(_rendered(first, usage if is_whole and usage else _usage_of(first)), call.request)
    return _without_fillers(found) if call.line and any(map(_is_filler, found)) else found


def _is_filler(one: SentBlock) -> bool:
    """Whether a reader made the block, for a static prefix that its format lacks."""
    block = one.block
    return one.layer is Layer.SYSTEM and block is not None and block.content is None and block.tokens is not None


def _without_fillers(blocks: Sequence[SentBlock]) -> list[SentBlock]:
    """The blocks; of the static prefix only how many of its tokens were read and written."""
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


def _usage_of(one: Pass) -> Usage:
    return one.outcome.usage


def _rendered(one: Pass, usage: Usage) -> list[SentBlock]:
    prompt, sizes = one.prompt, one.sizes
    nodes = _path(prompt.end)
    ends = [sizes.of(node) for node in nodes]
    total = sizes.total(prompt)
    scale = _Scale(total, usage.total_input)
    states, marks = _States(usage), _marks(one)
    made, before = list[SentBlock](), 0
    for node, counted in zip(nodes, ends, strict=True):
        end = max(before, scale.at(counted))
        if node.block is not None:
            state = states.of(before, end)
            made.append(SentBlock(node.layer, node.block, end - before, state, marks.get(node, "")))
        elif end > before:
            made.append(SentBlock(node.layer, None, end - before, "hidden"))
        before = end
    rest = scale.at(total) - before
    return [*made, SentBlock(Layer.MESSAGES, None, rest, "hidden")] if rest > 0 else made


def _path(end: Prefix) -> list[Prefix]:
    """The prefixes from the root to `end`."""
    found: list[Prefix] = []
    node: Prefix | None = end
    while node is not None:
        found.append(node)
        node = node.parent
    return found[::-1]


def _marks(one: Pass) -> Mapping[Prefix, str]:
    return {breakpoint.prefix: breakpoint.ttl for breakpoint in one.prompt.breakpoints}


@dataclass(frozen=True, slots=True)
class _Scale:
    """Positions as counted, stretched to the length that was billed."""

    counted: int
    billed: int

    def at(self, position: int) -> int:
        if self.counted == self.billed or not self.counted:
            return position
        return round(min(position, self.counted) * self.billed / self.counted)


class _States:
    """Where in a prompt which tokens lie."""

    def __init__(self, usage: Usage) -> None:
        hour = usage.read + usage.write_1h
        self._ends = (usage.read, hour, hour + usage.write_5m)

    def of(self, start: int, end: int) -> BlockState:
        """The state of the middle of a block."""
        for limit, state in zip(self._ends, CHARGED, strict=False):
            if start + end < 2 * limit:
                return state
        return "input"


def _unrendered(request: Request, usage: Usage) -> list[SentBlock]:
    """The blocks as sent; each has its share by bytes of what was billed."""
    placed = list(_blocks_of(request))
    total = sum(block.size for _, block in placed)
    states, made, bytes_before, before = _States(usage), list[SentBlock](), 0, 0
    for layer, block in placed:
        bytes_before += block.size
        end = round(usage.total_input * bytes_before / total) if total else 0
        made.append(SentBlock(layer, block, end - before, states.of(before, end)))
        before = end
    return made


def _blocks_of(request: Request) -> Iterator[tuple[Layer, Block]]:
    yield from ((Layer.TOOLS, block) for block in request.tools.blocks)
    yield from ((Layer.SYSTEM, block) for block in request.system.blocks)
    yield from ((Layer.MESSAGES, block) for block in _message_blocks(request))


def _message_blocks(request: Request) -> list[Block]:
    return [block for message in request.thread.messages() for block in message.blocks]


def _with_stripped(rendered: Sequence[SentBlock], request: Request) -> list[SentBlock]:
    """The rendered blocks, and between them those that were sent and not rendered."""
    start = next((at for at, one in enumerate(rendered) if one.block and one.layer is Layer.MESSAGES), len(rendered))
    inside, sent = rendered[start:], _message_blocks(request)
    made = list(rendered[:start])
    for kind, i, j, k, m in opcodes([block.digest for block in sent], [one.digest for one in inside]):
        if kind != "equal":
            made += [SentBlock(Layer.MESSAGES, block, 0, "stripped") for block in sent[i:j]]
        made += inside[k:m]
    return made


def opcodes(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[str, int, int, int, int]]:
    """As difflib's: what makes `new` of `old`. What both begin with is found without work for what follows."""
    shared = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        shared += 1
    if shared:
        yield "equal", 0, shared, 0, shared
    matcher = SequenceMatcher(None, old[shared:], new[shared:], autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        yield kind, i + shared, j + shared, k + shared, m + shared
