"""The findings of `cachecost explain`: every avoidable miss and write, with its cause, place and dollars.

Beside them: how the tokens and dollars of a call divide among the layers, computed on first use, and the error margin
of dollars, which is the relative error of token counts on what no bill determines (rule 18).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import fsum
from typing import TypeVar

import msgspec

from cachecost.account.causes import Cause
from cachecost.ledger.rows import CallRow, LayerTokens, WarmReads
from cachecost.prompts.blocks import Layer
from cachecost.prompts.render import PrefixSizes, Prompt
from cachecost.providers.prices import Prices
from cachecost.providers.usage import PER_TOKEN, ZERO, Usage


@dataclass(frozen=True, slots=True)
class Finding:
    """One call that paid more than it had to, for one cause.

    `call` counts from 1; `since` is the earlier call that it is compared with. `block` is the place of the first
    difference in the request (`system.1`, `messages.4.content.0`); `tokens` were paid for at more than the read price.
    `excerpt` is the text around the first character that differs, None without content.
    """

    code: str
    cause: Cause
    call: int
    layer: Layer
    block: str
    tokens: int
    cost: Decimal
    message: str
    fix: str
    since: int | None = None
    excerpt: str | None = None
    diagnostics: str = "unavailable"
    """Anthropic's word for it: model_changed, system_changed, tools_changed, messages_changed, else unavailable."""
    session: str = ""
    project: str = ""
    agent: str = ""
    timestamp: str | None = None
    file: str = ""
    line: int | None = None
    session_call: int | None = None
    """The number of the call within its session, from 1, by time; None without a session."""
    paid_again: Decimal = ZERO
    """USD above the price of a read that the tokens cost: what happened. `cost` is what its fix nets."""
    is_behind: bool = False
    """Whether the cause only shows once the causes before it are fixed; a replay of the log does not name it."""
    alternative: str = ""
    """The name in `whatif` of the change that is its fix; "": none has one."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a log costs, and what it would have cost with the fix of every finding.

    The findings' dollars add up to the difference, exactly: each is what its fix nets in a replay with the fix and
    with those before it, other costs of the fix included. `notes` are faults whose fix nets nothing.
    """

    calls: int
    cost: Decimal
    without: Decimal
    findings: list[Finding]
    strategy: str = ""
    token_source: str = ""
    error_margin: float = 0.0
    open_share: float = 1.0
    """The share of the avoidable dollars that rests on token counts and not on bills."""
    flips: list[str] = field(default_factory=list)
    """Assumptions under which the answer differs, each in a sentence."""
    warm: WarmReads = WarmReads()
    """Reads of what was cached before the recording began. They are no loss."""
    billed: Decimal | None = None
    """USD that were billed, where the calls have bills: then the findings are what the bills show."""
    not_explained: list[Finding] = field(default_factory=list)
    """Rewrites that the bills show and nothing explains; their dollars are not in `avoidable`."""
    notes: list[Finding] = field(default_factory=list)
    """What was paid again and no fix makes cheaper: their cost is 0."""
    lower_bound: Decimal | None = None
    """USD that the calls cost at least as the fixes would send them; None where only bills are known."""
    ranges: list[str] = field(default_factory=list)
    """Of hosts whose hits are not certain: what is known of them, each in a sentence."""
    bounds_fixed_requests: bool = False
    """Whether the lower bound is for other requests than were sent: those that the fixes change them to."""

    @property
    def not_explained_usd(self) -> Decimal:
        return sum((finding.cost for finding in self.not_explained), ZERO)

    @property
    def necessary(self) -> Decimal | None:
        """USD of the bill that are neither avoidable nor unexplained; None without a bill."""
        return None if self.billed is None else self.billed - self.avoidable - self.not_explained_usd

    @property
    def avoidable(self) -> Decimal:
        return sum((finding.cost for finding in self.findings), ZERO)


Value = TypeVar("Value", covariant=True)


class Spans(msgspec.Struct, frozen=True):
    """Where a pass's prompt divides, in tokens from its start: the spans of rule 15, and the ends of the layers."""

    read: int
    written_1h: int
    written_5m: int
    tools: int
    system: int
    total: int

    def of_layers(self) -> list[LayerTokens]:
        """The tokens of each layer by class. They add up to the usage."""
        cuts = (
            (0, self.read),
            (self.written_1h, self.written_5m),
            (self.read, self.written_1h),
            (self.written_5m, self.total),
        )
        ends = (self.tools, max(self.tools, self.system), self.total)
        return [
            LayerTokens(*(max(0, min(end, high) - max(start, low)) for low, high in cuts))
            for start, end in zip((0, *ends), ends, strict=False)
        ]


class _LazyMapping(Mapping[Layer, Value]):
    """A mapping that is computed on first use."""

    __slots__ = ("_made",)
    _made: dict[Layer, Value] | None

    def _make(self) -> dict[Layer, Value]:
        raise NotImplementedError

    @property
    def _values(self) -> dict[Layer, Value]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, layer: Layer) -> Value:
        return self._values[layer]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


class TokensByLayer(_LazyMapping[LayerTokens]):
    """The tokens of each layer by class, in all passes of a call."""

    __slots__ = ("_passes",)

    def __init__(self, passes: Sequence[Spans]) -> None:
        self._made = None
        self._passes = passes

    def _make(self) -> dict[Layer, LayerTokens]:
        each = [spans.of_layers() for spans in self._passes]
        return {layer: sum(parts[1:], parts[0]) for layer, parts in zip(Layer, zip(*each, strict=True), strict=True)}


class DollarsByLayer(_LazyMapping[Decimal]):
    """The cost of each layer's tokens, in USD."""

    __slots__ = ("_prices", "_tokens")

    def __init__(self, tokens: TokensByLayer, prices: Prices) -> None:
        self._made = None
        self._tokens = tokens
        self._prices = prices

    def _make(self) -> dict[Layer, Decimal]:
        usages = {layer: Usage(one.input, one.read, one.write_5m, one.write_1h) for layer, one in self._tokens.items()}
        return {layer: self._prices.total_cost(usage) for layer, usage in usages.items()}


def estimated_usd(prompt: Prompt, spans: Spans, sizes: PrefixSizes, prices: Prices) -> Decimal:
    """USD of one pass that depend on token counts, where bills determine the size of the prompt.

    The price changes where a span ends. If an end is `n` tokens from the nearest length known from a bill, only those
    `n` tokens were counted, and they may be on the wrong side of the end.
    """
    moved, after = ZERO, None
    for start, end, price in (
        (spans.written_5m, spans.total, prices.input),
        (spans.written_1h, spans.written_5m, prices.write_5m),
        (spans.read, spans.written_1h, prices.write_1h),
        (0, spans.read, prices.read),
    ):
        if end <= start:
            continue
        tokens = sizes.doubt_of_total(prompt) if after is None else sizes.doubt(end)
        if tokens:
            moved += tokens * (price if after is None else abs(price - after))
        after = price
    return moved.scaleb(PER_TOKEN) if moved else ZERO


def margin(rows: Sequence[CallRow], general: float) -> float:
    """The relative error of the dollars of `rows`: that of their token counts, on what no bill determines.

    Each row has the margin of its own content; `general` (0.03 is ±3%) is that of a row without one. Output of recorded
    length is certain.
    """
    return _weighted(rows, general, _open_usd)


def count_margin(rows: Sequence[CallRow], general: float) -> float:
    """The relative error of the token counts of `rows`, whatever bills determine: each row by the dollars that rest on
    its counts."""
    return _weighted(rows, general, _counted_usd)


def _weighted(rows: Sequence[CallRow], general: float, share: Callable[[CallRow], Decimal]) -> float:
    """The dollars of `share` times the margin of each row, over those that rest on counts; `general` where none do."""
    counted = sum(map(_counted_usd, rows), ZERO)
    if not counted:
        return general if all(row.estimated_usd is None for row in rows) else 0.0
    margins = {general if row.error_margin is None else row.error_margin for row in rows}
    if len(margins) == 1:
        return margins.pop() * float(sum(map(share, rows), ZERO) / counted)
    dollars = (float(share(row)) * (general if row.error_margin is None else row.error_margin) for row in rows)
    return fsum(dollars) / float(counted)  # `sum` of floats has other last digits before Python 3.12


def open_usd(rows: Iterable[CallRow]) -> Decimal:
    """USD that rest on token counts, since no bill determines them."""
    return sum(map(_open_usd, rows), ZERO)


def _open_usd(row: CallRow) -> Decimal:
    counted = _counted_usd(row)
    return counted if row.estimated_usd is None else min(row.estimated_usd, counted)


def _counted_usd(row: CallRow) -> Decimal:
    """USD of a call that rest on token counts without bills: everything but output of recorded length."""
    return row.cost.total - (row.cost.output if row.output_is_recorded else ZERO)
