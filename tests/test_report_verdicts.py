"""Each report's verdict, recomputed from its calls in plain Python: tokens × the prices of the price pages, and sums.

Nothing of the package is used. `tests/test_reports.py` holds that the committed reports are what the scenarios give.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

REPORTS = Path(__file__).parent.parent / "reports"
CLASSES = ("input", "read", "write_5m", "write_1h", "output")
OPUS = ("5", "0.50", "6.25", "10", "25")
SONNET = ("3", "0.30", "3.75", "6", "15")
PRICES = {
    "claude-opus-4-6": OPUS,
    "claude-sonnet-4": SONNET,
    "claude-sonnet-4-5": SONNET,
    "claude-sonnet-4-6": SONNET,
    "claude-haiku-4-5": ("1", "0.10", "1.25", "2", "5"),
}
"""USD per million tokens, in the order of CLASSES; Claude docs, Pricing, 2026-10-10."""
LONG = {"claude-opus-4-6": ("10", "1", "12.50", "20", "37.50"), "claude-sonnet-4-5": ("6", "0.60", "7.50", "12", "22.50")}
"""The same for prompts of more than 200,000 tokens, until 13 March 2026."""
LONG_UNTIL = "2026-03-13"
COMPARED = re.compile(r"“([^”]+)” costs \$([\d.]+) instead of \$([\d.]+): ([\d.]+)% less")

Call = dict[str, str]


@cache
def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((REPORTS / name / "result.json").read_text(encoding="utf-8"))
    return found


@cache
def calls(name: str) -> dict[str, list[Call]]:
    """The calls of each strategy."""
    rows: dict[str, list[Call]] = defaultdict(list)
    with (REPORTS / name / "calls.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rows[row["strategy"]].append(row)
    return rows


def prompt(call: Call) -> int:
    return sum(int(call[name]) for name in CLASSES if name != "output")


def usd(call: Call, day: str) -> Decimal:
    is_long = prompt(call) > 200_000 and day < LONG_UNTIL and call["model"] in LONG
    prices = (LONG if is_long else PRICES)[call["model"]]
    return sum((int(call[name] or 0) * Decimal(price) for name, price in zip(CLASSES, prices, strict=True)), Decimal(0)) / 10**6


def costs(name: str, day: str | None = None) -> dict[str, Decimal]:
    """The dollars of each strategy, on the report's day or on another."""
    on = day or result(name)["as_of"]
    return {strategy: sum((usd(call, on) for call in rows), Decimal(0)) for strategy, rows in calls(name).items()}


def per_question(name: str, day: str | None = None) -> dict[str, Decimal]:
    on = day or result(name)["as_of"]
    found = {}
    for strategy, rows in calls(name).items():
        asked = [call for call in rows if call["inquiry"]]
        found[strategy] = sum((usd(call, on) for call in asked), Decimal(0)) / len({call["inquiry"] for call in asked})
    return found


def less(cost: Decimal, base: Decimal) -> float:
    """How many percent less."""
    return float(100 * (1 - cost / base))


def rounds_to(value: float | Decimal, text: str) -> bool:
    """Whether `text` is `value` at the precision that it has."""
    digits = len(text.partition(".")[2])
    return abs(Decimal(value) - Decimal(text)) <= Decimal("0.5").scaleb(-digits)


NAMES = sorted(path.parent.name for path in REPORTS.glob("*/calls.csv"))


@pytest.mark.parametrize("name", NAMES)
def test_every_strategy_costs_the_tokens_of_its_calls_times_their_prices(name: str) -> None:
    found = costs(name)
    told = {line["name"]: line for line in result(name)["strategies"]}
    assert {strategy: Decimal(line["cost_usd"]) for strategy, line in told.items()} == found
    assert {strategy: line["calls"] for strategy, line in told.items()} == Counter(
        strategy for strategy, rows in calls(name).items() for _ in rows
    )


def compared(name: str) -> tuple[str, str, str, str]:
    """Winner, its dollars, those of the compared one and the percentage, as the verdict states them."""
    found = COMPARED.search(result(name)["verdict"])
    assert found, result(name)["verdict"]
    return found.group(1), found.group(2), found.group(3), found.group(4)


@pytest.mark.parametrize(
    ("name", "apart", "winner", "base"),
    [
        ("agents-side-by-side", ("llama-index-cache-idx",), "claude-code-mixed-ttl", "claude-code"),
        (
            "answer-inquiry",
            ("cheaper model, cold", "cheaper model, warm", "cheaper model, with cache hint"),
            "answer tool, auto",
            "structured output, no tools",
        ),
        ("compaction", (), "all but three results cleared in each turn", "never"),
        ("dont-break-the-cache", (), "full context", "no cache"),
        ("every-provider", (), "answer tool, auto", "structured output, no tools"),
        ("progressive-caching", (), "progressive", "system-only"),
        ("structured-finish", (), "one step, one schema", "two steps"),
        ("ttl", (), "1h", "5m"),
    ],
)
def test_the_cheapest_and_what_it_saves(name: str, apart: tuple[str, ...], winner: str, base: str) -> None:
    found = {strategy: cost for strategy, cost in costs(name).items() if strategy not in apart}
    told, money, instead, share = compared(name)
    assert told == winner
    assert found[winner] == min(found.values())
    assert result(name)["compare_to"] == base
    assert rounds_to(found[winner], money)
    assert rounds_to(found[base], instead)
    assert rounds_to(less(found[winner], found[base]), share)
