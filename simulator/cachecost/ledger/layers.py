"""How the tokens and dollars of a call divide among the layers, computed on first use.

Most rows of a long log are printed without their layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

from cachecost.base.structs import value
from cachecost.ledger.rows import LayerTokens
from cachecost.prompts.blocks import Layer
from cachecost.providers.prices import Prices
from cachecost.providers.usage import Usage

Value = TypeVar("Value", covariant=True)


@value
class Spans:
    """Where a pass's prompt divides, in tokens from its start: the spans of rule 15, and the ends of the layers."""

    read: int
    written_1h: int
    written_5m: int
    tools: int
    system: int
    total: int

    def of_layers(self) -> list[LayerTokens]:
        """The tokens of each layer by class. They add up to the usage."""
        ends = (self.tools, max(self.tools, self.system), self.total)
        return [self._between(start, end) for start, end in zip((0, *ends), ends, strict=False)]

    def _between(self, start: int, end: int) -> LayerTokens:
        a, b, c = self.read, self.written_1h, self.written_5m
        cuts = ((0, a), (b, c), (a, b), (c, self.total))
        return LayerTokens(*(max(0, min(end, high) - max(start, low)) for low, high in cuts))


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
        return {layer: self._dollars(tokens) for layer, tokens in self._tokens.items()}

    def _dollars(self, tokens: LayerTokens) -> Decimal:
        usage = Usage(tokens.input, tokens.read, tokens.write_5m, tokens.write_1h)
        return self._prices.total_cost(usage)
