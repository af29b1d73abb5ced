"""Small request logs whose blocks are as many bytes as a test wants, and what `whatif` makes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from bodies import Body, assistant, body, marked, text, user
from cachecost.analysis.whatif.report import what_if
from cachecost.analysis.whatif.results import Alternative, WhatifReport
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, read_workload

DAY = datetime(2026, 10, 5, 9, tzinfo=UTC)
PER_MILLION = Decimal(1_000_000)
Row = tuple[float | None, Body]


def traffic(tmp_path: Path, rows: Sequence[Row], name: str = "log", output: int | None = None, **told: Any) -> Workload:
    """A log of (seconds, body), counted in bytes."""
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(json.dumps(_line(at, sent, output)) + "\n" for at, sent in rows), encoding="utf-8")
    return read_workload(path, ReplaySetup(told.get("rules") or RuleBook(), PriceBook()), "bytes")


def _line(at: float | None, sent: Body, output: int | None) -> dict[str, Any]:
    line: dict[str, Any] = {"request": sent}
    if at is not None:
        line["timestamp"] = (DAY + timedelta(seconds=at)).isoformat()
    if output is not None:
        line["usage"] = {"input_tokens": 1, "output_tokens": output}
    return line


def told(tmp_path: Path, rows: Sequence[Row], *asked: str, **options: Any) -> WhatifReport:
    """Everything about a log."""
    return what_if(traffic(tmp_path, rows, output=options.pop("output", None)), asked, **options)


def promise(tmp_path: Path, rows: Sequence[Row], name: str) -> Alternative:
    return told(tmp_path, rows).find(name)


def usd(*parts: float) -> Decimal:
    """Dollars of (tokens, price, tokens, price, …); prices in USD per 10**6 tokens."""
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return sum((Decimal(str(count)) * Decimal(str(price)) for count, price in pairs), Decimal(0)) / PER_MILLION


def two_calls(pause: float, first: int = 2_000, answer: int = 100, second: int = 200, **fields: Any) -> list[Row]:
    """A call that writes `first`, and one `pause` seconds later that goes on from it; both marked at their end."""
    return [
        (0, body(user(marked(text(first, "a"))), **fields)),
        (pause, body(user(text(first, "a")), assistant(text(answer, "b")), user(marked(text(second, "c"))), **fields)),
    ]
