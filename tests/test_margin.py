"""The margin of a calibrated figure is that of what no bill determines."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.structs import replace
from cachecost.ledger.findings import Spans, estimated_usd, margin, open_usd
from cachecost.ledger.rows import CallRow, Cost
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import AS_COUNTED, Prompt
from cachecost.providers.prices import Prices
from cachecost.providers.usage import Usage
from cachecost.tokens.calibrated import BilledLengths, BilledSizes

PRICES = Prices(*map(Decimal, ("0.3", "3.75", "6", "3", "15")))
ROOT = Prefix(None, Layer.TOOLS, None, 0)
MIDDLE = ROOT.cache_key(b"a", Layer.MESSAGES, 1000)
END = MIDDLE.cache_key(b"b", Layer.MESSAGES, 500)
PROMPT = Prompt(END, MIDDLE, (), 0, 0, 1510, ("", "", ""))


def bills(*lengths: tuple[Prefix, int], total: int | None = None) -> BilledLengths:
    anchors = BilledLengths()
    for number, (prefix, tokens) in enumerate(lengths, 1):
        anchors.learn_prefix(number, prefix, tokens)
    if total is not None:
        anchors.learn(9, PROMPT, Usage(total))
    return anchors


@pytest.mark.parametrize(
    ("read", "written", "usd"),
    [
        (1000, 1500, "0"),  # both ends are told
        (1000, 1490, "7.5"),  # 10 tokens from a told end: 10 x (3.75 - 3)
        (1010, 1500, "34.5"),  # 10 x (3.75 - 0.3)
        (1000, 1000, "0"),  # nothing written: the read ends at what is told
        (0, 1250, "187.5"),  # half way between 1,000 and 1,500
    ],
)
def test_an_end_counts_for_its_distance_from_what_bills_tell(read: int, written: int, usd: str) -> None:
    sizes = bills((MIDDLE, 1000), (END, 1500), total=1510).all(PROMPT)
    spans = Spans(read, read, written, 0, 0, 1510)
    assert estimated_usd(PROMPT, spans, sizes, PRICES) == Decimal(usd).scaleb(-6)


def test_a_prompt_that_no_bill_tells_is_counted_from_the_last_one_that_is() -> None:
    sizes = bills((MIDDLE, 1000)).all(PROMPT)
    assert estimated_usd(PROMPT, Spans(0, 0, 0, 0, 0, 1510), sizes, PRICES) == Decimal(510 * 3).scaleb(-6)


def plain_usd(spans: Spans, sizes: BilledSizes) -> Decimal:
    """Each end where the price changes, by its distance from a billed length; the last by that of the prompt."""
    ends, start = [], 0
    cuts = (spans.read, spans.written_1h, spans.written_5m, spans.total)
    for end, price in zip(cuts, (PRICES.read, PRICES.write_1h, PRICES.write_5m, PRICES.input), strict=True):
        ends += [(end, price)] if end > start else []
        start = end
    moved = [sizes.doubt_of_total(PROMPT) * price for _, price in ends[-1:]]
    moved += [sizes.doubt(end) * abs(price - after) for (end, price), (_, after) in pairwise(ends)]
    return sum(moved, Decimal(0)).scaleb(-6)


@given(st.lists(st.integers(0, 1510), min_size=3, max_size=3).map(sorted), st.booleans(), st.booleans())
def test_empty_spans_and_known_ends_add_nothing(ends: list[int], is_billed: bool, is_whole: bool) -> None:
    sizes = bills((MIDDLE, 1000), *([(END, 1500)] if is_billed else []), total=1510 if is_whole else None).all(PROMPT)
    spans = Spans(*ends, 0, 0, 1510)
    assert estimated_usd(PROMPT, spans, sizes, PRICES) == plain_usd(spans, sizes)


def test_without_bills_everything_is_counted() -> None:
    assert estimated_usd(PROMPT, Spans(0, 0, 0, 0, 0, 1510), AS_COUNTED, PRICES) == Decimal(1510 * 3).scaleb(-6)


def row(cost: str, open_: str | None, output: str = "0") -> CallRow:
    of = Cost(input=Decimal(cost), output=Decimal(output))
    made = CallRow(1, 0.0, None, "s", "m", Usage(), of, None, {}, {})
    return replace(made, estimated_usd=None if open_ is None else Decimal(open_))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("1", None)], 0.08),  # no bills: all of it
        ([row("1", "0")], 0.0),
        ([row("1", "0"), row("3", "1")], 0.02),
        ([row("1", "0"), row("3", None)], 0.06),
        ([row("1", "5")], 0.08),  # never more than all
        ([row("1", "0.5", output="9")], 0.04),  # recorded output is certain
        ([row("0", "0")], 0.0),
    ],
)
def test_the_margin_is_the_share_that_is_open(rows: list[CallRow], expected: float) -> None:
    assert margin(rows, 0.08) == pytest.approx(expected)
    assert margin(rows, 0.0) == 0.0


def test_what_is_open_is_never_more_than_what_is_counted() -> None:
    assert open_usd([row("1", "5"), row("1", None, output="2"), row("1", "0.25")]) == Decimal("2.25")
