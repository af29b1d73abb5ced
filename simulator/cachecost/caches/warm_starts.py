"""What billed reads prove: how long the prefix is that was read, and that some were written before the recording began.

A call reads what an earlier one wrote at a breakpoint. Where no bill tells the length of that prefix, the read does,
however it was estimated: lengths give way to bills.

A recording that begins in the middle of a session shows a read whose write it does not hold. Simulated from an empty
cache, that read would be a write without a bill. The bill proves the entry, so it is put into the cache before
the call that read it (docs/rulebook.md, Warm start; assumption `warm_start`).

A call that wrote again what another had begun to write shortly before came before the first answer had begun, whether
or not the log has times to first token: an entry can be read from then on (rule 11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Protocol, Self

import msgspec

from cachecost.base.atomic_files import current_work_check
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.compare import new_prefixes, prefixes_back
from cachecost.prompts.render import BreakpointPrefix, PrefixSizes, Prompt, is_within_lookback
from cachecost.prompts.request import TTL
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage

TOLERANCE = 2
"""Tokens that a billed read may differ from a prefix whose length is known from other bills."""
ESTIMATED = 0.01
"""The share that it may differ from a prefix of estimated length that the recording wrote."""
FARTHEST = 0.05
"""The share that it may differ from the matching prefix that the recording cannot have written."""
MISCOUNTED = 0.1
"""The share by which an estimated length may be off where the error margin of the counts is smaller: these hold nine
times out of ten, and what the recording wrote ends at few places."""


class KnownSizes(PrefixSizes, Protocol):
    """Lengths of prefixes in tokens, and which of them come from a bill."""

    def told(self, prefix: Prefix) -> int | None:
        """The length from a bill; None: there is only an estimate."""
        ...


SizesOf = Callable[[Prompt], KnownSizes]
BilledLength = Callable[[Prefix], int | None]


class SentCall(msgspec.Struct, frozen=True):
    """A recorded call as rendered. `start` is seconds; `billed` is None where the read of a single pass is unknown.

    `error_margin` is the relative error of its token counts, without bills. `is_timed`: the log says when it began.
    `first_token_s` (0: unknown) and `rounding_s` are those of the call.
    """

    number: int
    start: float
    prompt: Prompt
    rules: ModelRules
    billed: Usage | None = None
    error_margin: float = 0.0
    is_timed: bool = True
    first_token_s: float = 0.0
    rounding_s: float = 0.0

    @property
    def read(self) -> int:
        return self.billed.read if self.billed else 0


class MeasuredRead(msgspec.Struct, frozen=True):
    """The call with this number read a prefix that the recording wrote, which is `tokens` long."""

    call: int
    prefix: Prefix
    tokens: int


class WarmStart(msgspec.Struct, frozen=True):
    """The prefix that the call with this number read, `tokens` long, and the TTL of the breakpoint that found it."""

    call: int
    prefix: Prefix
    tokens: int
    ttl: TTL


class WarmPrefixes:
    """The prefixes that were cached before a recording began, until a call sends them: then they go into the cache."""

    def __init__(self) -> None:
        self._ttls: dict[Prefix, TTL] = {}
        self._not_warm: set[Prefix] = set()
        """Prefixes that neither are in `_ttls` nor go on from one that is. It stays so: `_ttls` only shrinks."""

    def __len__(self) -> int:
        return len(self._ttls)

    def learn(self, found: WarmStart) -> None:
        self._ttls[found.prefix] = found.ttl
        self._not_warm.clear()

    def copy(self) -> Self:
        """The same prefixes; which of them are sent is another matter from here on."""
        made = type(self)()
        made._ttls = self._ttls.copy()
        made._not_warm = self._not_warm.copy()
        return made

    def find(self, prompt: Prompt) -> BreakpointPrefix | None:
        """The one that was found first, of those in a prompt. Costs work for what is new in the prompt."""
        if not self._ttls:
            return None
        seen, _ = new_prefixes(prompt.end, self._not_warm)
        among = self._ttls.keys() & seen
        if not among:
            self._not_warm.update(seen)
            return None
        return next(BreakpointPrefix(prefix, ttl) for prefix, ttl in self._ttls.items() if prefix in among)

    def pop(self, prompt: Prompt) -> BreakpointPrefix | None:
        """As `find`, for the call that sends the prompt: it is not found again."""
        found = self.find(prompt)
        if found is not None:
            del self._ttls[found.prefix]
        return found


class SentPrefixes:
    """The prefixes that a recording sent so far, and those at its breakpoints. Calls come in the order they start."""

    def __init__(self) -> None:
        self._sent: set[Prefix] = set()
        self._marked: set[Prefix] = set()

    def add(self, prompt: Prompt) -> None:
        self._sent.update(new_prefixes(prompt.end, self._sent)[0])
        self._marked.update(breakpoint.prefix for breakpoint in prompt.breakpoints)

    def measured_read(self, call: SentCall, sizes: KnownSizes) -> MeasuredRead | None:
        """What the call read, if its bill is the first to tell how long that is; None otherwise.

        It ends at the breakpoint of an earlier call whose estimated length is nearest, within the error of the counts.
        """
        share, ends = max(call.error_margin, MISCOUNTED), list[tuple[int, Prefix]]()
        for node in self._marked_in(call.prompt):
            if sizes.told(node) is None and _is_found(node, call):
                tokens = sizes.of(node)
                if abs(tokens - call.read) <= max(TOLERANCE, share * sizes.doubt(tokens)):
                    ends.append((abs(tokens - call.read), node))
        nearest = min(ends, key=itemgetter(0), default=None)
        return MeasuredRead(call.number, nearest[1], call.read) if nearest else None

    def warm_start(self, call: SentCall, sizes: KnownSizes) -> WarmStart | None:
        """What the call read, if it can only have been written before the recording began; None otherwise."""
        read = call.read
        if not read or not _looks_back(call):
            return None
        estimated = max(TOLERANCE, ESTIMATED * read)
        for node in self._marked_in(call.prompt):  # an earlier call of the recording wrote what was read
            if abs(sizes.of(node) - read) <= (estimated if sizes.told(node) is None else TOLERANCE):
                return None
        new, _ = new_prefixes(call.prompt.end, self._sent)
        unsent = (node for node in new if node.block is not None and _is_found(node, call))
        nearest = min(unsent, key=lambda node: abs(sizes.of(node) - read), default=None)
        if nearest is None or abs(sizes.of(nearest) - read) > max(TOLERANCE, FARTHEST * read):
            return None
        ttl = next(breakpoint.ttl for breakpoint in call.prompt.breakpoints if breakpoint.prefix.depth >= nearest.depth)
        return WarmStart(call.number, nearest, read, ttl)

    def has_surely_written(self, prompt: Prompt, read: int, billed_length: BilledLength) -> bool:
        """Whether an earlier call placed a breakpoint at the end of what was read, by the lengths from bills."""
        return any(abs((billed_length(node) or -read) - read) <= TOLERANCE for node in self._marked_in(prompt))

    def _marked_in(self, prompt: Prompt) -> Iterator[Prefix]:
        """The prefixes of a prompt that end at a breakpoint of an earlier call, the longest first."""
        return (node for node in prefixes_back(prompt.end) if node in self._marked)


def _looks_back(call: SentCall) -> bool:
    return call.rules.matching == "breakpoint" and call.prompt.boundaries is None


def _is_found(node: Prefix, call: SentCall) -> bool:
    return any(
        breakpoint.prefix.depth >= node.depth and is_within_lookback(breakpoint.prefix, node, call.rules)
        for breakpoint in call.prompt.breakpoints
    )


def billed_reads(
    calls: Sequence[SentCall], sizes_of: SizesOf, billed_length: BilledLength, may_be_warm: bool
) -> Iterator[MeasuredRead | WarmStart]:
    """What the bills of a recording prove by their reads, in the order its calls start.

    `billed_length` gives the length of a prefix from any bill, also from those that were yielded before: for most calls
    that is enough, and fast. Warm starts are left out unless it `may_be_warm`.
    """
    before = SentPrefixes()
    check = current_work_check()
    for call in sorted(calls, key=lambda one: one.start):
        if check is not None:
            check()
        if call.read and _looks_back(call) and not before.has_surely_written(call.prompt, call.read, billed_length):
            sizes = sizes_of(call.prompt)
            found = before.measured_read(call, sizes) or (before.warm_start(call, sizes) if may_be_warm else None)
            if found is not None:
                yield found
        before.add(call.prompt)


def late_answers(calls: Sequence[SentCall], sizes_of: SizesOf) -> dict[int, float]:
    """By number of the call, the seconds after its start at which its answer had not begun yet, as bills show.

    Only where that is possible: by the time to first token, as recorded or else as it may be
    (`ModelRules.late_answer`), and by stamps of whole seconds.
    """
    found: dict[int, float] = {}
    recent: list[SentCall] = []
    for call in sorted(calls, key=lambda one: one.start):
        if not call.is_timed or call.billed is None or not _looks_back(call):
            continue
        recent = [one for one in recent if call.start - one.start < _latest_answer(one)]
        wrote = call.billed.write > 0
        for writer in recent if wrote else ():
            gap = call.start - writer.start
            if gap > found.get(writer.number, 0.0) and _came_too_early(call, writer, sizes_of):
                found[writer.number] = gap + writer.rounding_s
        if wrote:
            recent.append(call)
    return found


def _latest_answer(call: SentCall) -> float:
    row, written = call.rules.late_answer, call.billed.write if call.billed else 0
    plausible = row["base"] + row["per_token"] * written if row else 0.0
    return (call.first_token_s or plausible) + call.rounding_s


def _came_too_early(call: SentCall, writer: SentCall, sizes_of: SizesOf) -> bool:
    """Whether a call did not read what the writer wrote before it, although a breakpoint of it finds that place."""
    path = set[Prefix]()
    for node in prefixes_back(call.prompt.end):
        if node.parent is writer.prompt.end and node.block is not None and node.block.role == "assistant":
            return False  # it goes on from the answer
        path.add(node)
    shared = [one.prefix for one in writer.prompt.breakpoints if one.prefix in path and _is_found(one.prefix, call)]
    if not shared:
        return False
    sizes = sizes_of(call.prompt)
    length = sizes.of(shared[-1])
    if length < call.rules.minimum_tokens:
        return False
    least = length - max(TOLERANCE, max(call.error_margin, MISCOUNTED) * sizes.doubt(length))
    return call.read < least and writer.read < least
