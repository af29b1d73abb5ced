"""A request as lint sees it: what was sent, its prompt and rules, and a path for every block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cachecost.analysis.lint.bills import CONFIRMED, UNCONFIRMED, CallBill, Confirmation
from cachecost.prompts.blocks import Block, Layer, Part, Prefix, Thread
from cachecost.prompts.refusals import SentBreakpoints, as_sent, wire_path
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Breakpoint, Request
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.rules import ModelRules

Place = tuple[int, int, int]
"""Where a block stands: layer, message (from 1; 0 in the head), block. Places compare in prompt order."""
State = Literal["short", "near", "enough"]
LAYERS = tuple(Layer)


def place_of(breakpoint: Breakpoint) -> Place:
    """Where a breakpoint stands."""
    layer, message, index = breakpoint.block_key
    return LAYERS.index(layer), message, index


@dataclass(frozen=True, slots=True)
class SizedBreakpoint:
    """A breakpoint with its path, the prefix that it ends, how long that is in tokens, and whether that is enough."""

    breakpoint: Breakpoint
    path: str
    prefix: Prefix
    tokens: int
    state: State

    @property
    def place(self) -> Place:
        return place_of(self.breakpoint)


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRequest:
    """A request, rendered. `faults` are (path, words) of what the API refuses for what only the wire can show.

    `error_margin` is the relative error of token counts; `sized` says whether there are counts at all (a recording
    without content may have none): then lengths are bytes, and nothing is said about them. `sizes` are the lengths in
    tokens: as counted, or as the bills of the log have them. `bill` is that of the call (None: the log has none).
    """

    label: str
    call: int | None
    request: Request
    sent_breakpoints: SentBreakpoints
    rules: ModelRules
    prompt: Prompt
    breakpoints: tuple[SizedBreakpoint, ...]
    faults: tuple[tuple[str, str], ...]
    error_margin: float
    sized: bool
    bill: CallBill | None = None
    sizes: PrefixSizes = AS_COUNTED
    is_batch: bool = False
    start: float | None = None
    """When it was sent, in seconds since the epoch, where the log says it."""

    @property
    def total(self) -> int:
        return self.sizes.total(self.prompt)

    def length(self, prefix: Prefix) -> int:
        """Tokens up to and including `prefix`."""
        return self.sizes.of(prefix)

    def start_of(self, layer: int) -> int:
        """Tokens before a layer: 0 tools, 1 system, 2 messages."""
        return self.sizes.at((0, self.prompt.tools_tokens, self.prompt.system_tokens)[layer])

    def error(self, tokens: int) -> float:
        """How far a length of `tokens` may be off: the counter's error on what no bill covers."""
        return self.error_margin * self.sizes.doubt(tokens)

    @property
    def live(self) -> tuple[SizedBreakpoint, ...]:
        """The breakpoints that may leave an entry: all but those that are surely too short."""
        return tuple(breakpoint for breakpoint in self.breakpoints if breakpoint.state != "short")

    @property
    def every(self) -> tuple[Breakpoint, ...]:
        """All breakpoints that the API sees, in the order of the request as sent."""
        return as_sent(self.request, self.sent_breakpoints)

    @property
    def confirmation(self) -> Confirmation:
        """What to say of a finding about tokens that were not cached, where their number is the bill's."""
        return CONFIRMED if self.bill is not None and not self.bill.is_summed else UNCONFIRMED

    def is_cached_after(self, breakpoint: SizedBreakpoint) -> bool:
        """Whether the bill shows that more was cached than stands before `breakpoint`: both what was cached and what
        was not are out of the error of the counts, so the request that the API got had a breakpoint after it.
        """
        cached = self.bill.cached_prefix if self.bill else None
        if cached is None or self.bill is None:
            return False
        before, after = breakpoint.prefix.tokens, self.prompt.total_tokens - breakpoint.prefix.tokens
        return cached > before * (1 + self.error_margin) and self.bill.uncached < after * (1 - self.error_margin)

    def path(self, place: Place) -> str:
        """A place as the API writes it: `messages.0.content.4`, `system.1`, `tools.3`."""
        layer, message, index = place
        if message:
            return f"messages.{message - 1}.content.{index}"
        return wire_path(self.request, Breakpoint(LAYERS[layer], index))

    def reaches(self, place: Place) -> bool:
        """Whether what stands at `place` is in a cached prefix."""
        return bool(self.live) and self.live[-1].place >= place

    def behind(self, block: Block) -> int | None:
        """Tokens from `block` on to the last breakpoint: what is lost if it differs. None where sizes are not known."""
        if not self.sized or not self.live:
            return None
        node = next((node for node in self.nodes() if node.block is block), None)
        before = self.length(node.parent) if node is not None and node.parent is not None else 0
        return max(0, self.live[-1].tokens - before)

    def nodes(self) -> Iterator[Prefix]:
        """The prefixes of the prompt that end with a block, the longest first."""
        node: Prefix | None = self.prompt.end
        while node is not None:
            if node.block is not None:
                yield node
            node = node.parent

    def head(self) -> Iterator[tuple[Place, Block]]:
        """The blocks of tools and system with their places."""
        for number, part in enumerate((self.request.tools, self.request.system)):
            yield from _blocks_with_places(part, number)

    def messages(self, after: int = 0) -> list[Thread]:
        """The messages as nodes, first to last, without the first `after`. Costs work for those that are left."""
        found = []
        for node in self.request.thread.back():
            if node.length <= after:
                break
            found.append(node)
        return found[::-1]


def _blocks_with_places(part: Part, number: int) -> Iterator[tuple[Place, Block]]:
    return (((number, 0, index), block) for index, block in enumerate(part.blocks))


def message_blocks(node: Thread) -> Sequence[Block]:
    """The blocks of the message that a node ends with."""
    return node.message.blocks if node.message else ()


def message_place(node: Thread, index: int) -> Place:
    """The place of a message's block."""
    return LAYERS.index(Layer.MESSAGES), node.length, index
