"""Published figures beside what they are exactly: dollars, and what caching really saved."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.comparison.run import run
from cachecost.base.errors import InputError
from cachecost.scenario import from_mapping
from cachecost.views.run.tables import published_figure_table
from cachecost.views.tables.output import markdown_table

BARE = {
    "format": 1,
    "name": "published_figures",
    "as_of": "2026-03-07",
    "model": "claude-opus-4-6",
    "conversation": {"synthetic": {"seed": 1, "turns": 1, "calls": 1}},
    "strategies": ["none"],
}


def published_figures(*figures: dict[str, Any]) -> Any:
    figures = tuple({"source": "s", "says": "w", **one} for one in figures)
    return run(from_mapping({**BARE, "published_figures": list(figures)}, Path()), Path()).published_figures


@pytest.mark.parametrize(
    ("saving", "share"),
    [
        ({"read": 27_164, "write_5m": 1_101}, "85.5"),  # seed 5's second turn, called 96%
        ({"read": 27_164, "write_1h": 1_101}, "82.6"),
        ({"read": 27_164, "write_5m": 25_808}, "34.0"),  # both turns
        ({"read": 27_164, "write_1h": 25_808}, "−2.6"),
        ({"write_5m": 5_000}, "−25.0"),  # RFC013 over one, two and ten calls, called 90%
        ({"write_5m": 5_000, "read": 5_000}, "32.5"),
        ({"write_5m": 5_000, "read": 45_000}, "78.5"),
        ({"input": 5_000}, "0"),
    ],
)
def test_what_caching_saved_forgets_no_write(saving: dict[str, int], share: str) -> None:
    (published_figure,) = published_figures({"saving": saving})
    assert published_figure.is_share
    assert f"| {share}% |" in markdown_table(published_figure_table([published_figure]))


def test_dollars_stay_dollars() -> None:
    (published_figure,) = published_figures({"tokens": 95_000, "price": "write_5m - read", "times": 3})
    assert (published_figure.is_share, published_figure.exact) == (False, Decimal("1.63875"))


@pytest.mark.parametrize(
    ("figure", "why"),
    [
        ({}, "expected price or saving; got neither"),
        ({"tokens": 5, "price": "read", "saving": {"read": 5}}, "expected price or saving; got price and saving"),
        ({"price": "read"}, "expected tokens with a price, and without one none"),
        ({"tokens": 5, "saving": {"read": 5}}, "expected tokens with a price, and without one none"),
    ],
)
def test_a_claim_is_of_one_kind(figure: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        published_figures(figure)
