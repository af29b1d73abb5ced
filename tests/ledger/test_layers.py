"""How the tokens and the dollars of a call divide among tools, system and messages (`cost_by_layer_usd`)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.ledger.findings import DollarsByLayer, Spans, TokensByLayer
from cachecost.ledger.rows import LayerTokens
from cachecost.prompts.blocks import Layer
from cachecost.providers.prices import STANDARD, PriceBook

# Claude Opus 4.5, USD per million tokens
READ, FIVE, HOUR, INPUT = Decimal("0.5"), Decimal("6.25"), Decimal(10), Decimal(5)


def tokens(read: int = 0, five: int = 0, hour: int = 0, plain: int = 0) -> LayerTokens:
    return LayerTokens(read, five, hour, plain)


SPANS = [
    # read to 100, 1h to 250, 5m to 400, uncached to 450; tools to 50, system to 300
    (Spans(100, 250, 400, 50, 300, 450), [tokens(50), tokens(50, 50, 150), tokens(0, 100, 0, 50)]),
    # nothing cached
    (Spans(0, 0, 0, 50, 300, 450), [tokens(plain=50), tokens(plain=250), tokens(plain=150)]),
    # all read, as far as the last breakpoint
    (Spans(450, 450, 450, 50, 300, 450), [tokens(50), tokens(250), tokens(150)]),
    # 5m alone, and 1h alone
    (Spans(0, 0, 450, 50, 300, 450), [tokens(five=50), tokens(five=250), tokens(five=150)]),
    (Spans(0, 450, 450, 50, 300, 450), [tokens(hour=50), tokens(hour=250), tokens(hour=150)]),
    # no system prompt: its end is not after that of the tools
    (Spans(0, 0, 450, 50, 0, 450), [tokens(five=50), tokens(), tokens(five=400)]),
    (Spans(20, 20, 20, 50, 50, 450), [tokens(20, plain=30), tokens(), tokens(plain=400)]),
    # no tools
    (Spans(20, 20, 20, 0, 50, 450), [tokens(), tokens(20, plain=30), tokens(plain=400)]),
    # estimates of the layers that are longer than the bill of the whole
    (Spans(450, 450, 450, 460, 470, 450), [tokens(450), tokens(), tokens()]),
    (Spans(450, 450, 450, 50, 470, 450), [tokens(50), tokens(400), tokens()]),
    (Spans(0, 0, 450, 460, 470, 450), [tokens(five=450), tokens(), tokens()]),
]


@pytest.mark.parametrize(("spans", "layers"), SPANS)
def test_each_layer_has_the_classes_of_its_own_tokens(spans: Spans, layers: list[LayerTokens]) -> None:
    assert spans.of_layers() == layers
    assert TokensByLayer([spans]) == dict(zip(Layer, layers, strict=True))


ENDS = st.lists(st.integers(0, 500), min_size=4, max_size=4).map(sorted)


@given(ENDS, st.integers(0, 600), st.integers(0, 600))
def test_the_layers_add_up_to_the_usage(ends: list[int], tools: int, system: int) -> None:
    read, hour, five, total = ends
    made = Spans(read, hour, five, tools, system, total).of_layers()
    assert sum(made[1:], made[0]) == tokens(read, five - hour, hour - read, total - five)
    sizes = [one.read + one.write_5m + one.write_1h + one.input for one in made]
    assert sizes[0] == min(tools, total)
    assert sizes[1] == max(0, min(system, total) - min(tools, total))


def test_the_passes_of_a_call_are_added() -> None:
    first, second = SPANS[0][0], SPANS[4][0]
    assert TokensByLayer([first, second])[Layer.SYSTEM] == tokens(50, 50, 150 + 250)


def test_dollars_are_those_of_the_classes() -> None:
    prices = PriceBook().quote("anthropic", "claude-opus-4-5", date(2026, 3, 1), STANDARD).of(0)
    made = DollarsByLayer(TokensByLayer([SPANS[0][0]]), prices)
    million = Decimal(10**6)
    assert made[Layer.TOOLS] == 50 * READ / million
    assert made[Layer.SYSTEM] == (50 * READ + 50 * FIVE + 150 * HOUR) / million
    assert made[Layer.MESSAGES] == (100 * FIVE + 50 * INPUT) / million
    assert (len(made), list(made)) == (3, list(Layer))
