"""Losses that a bill shows and nothing explains: explained as such, and held in every alternative."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cachecost.analysis.bill.explanation import explain_recording, hold_losses
from cachecost.analysis.bill.found_sessions import prices_under
from cachecost.analysis.optimum.optimum import optimum_of
from cachecost.analysis.whatif.report import what_if
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, read_workload

STATIC, STEP, TAIL = 6_000, 2_000, 3
SETUP = ReplaySetup(RuleBook(), PriceBook())


def usage(read: int, cached: int) -> dict[str, Any]:
    return {
        "input_tokens": TAIL,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": cached - read,
        "output_tokens": 9,
    }


def body(turns: int) -> dict[str, Any]:
    words = "word " * STEP
    messages = [{"role": ("user", "assistant")[at % 2], "content": f"{at} {words}"} for at in range(2 * turns - 1)]
    return {
        "model": "claude-opus-4-6",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "rule " * STATIC, "cache_control": {"type": "ephemeral"}}],
        "cache_control": {"type": "ephemeral"},
        "messages": messages,
    }


def workload(folder: Path, *reads: int) -> Workload:
    """A conversation whose n-th call reads so many tokens; each call caches two messages more than the one before."""
    rows = []
    for turn, read in enumerate(reads, 1):
        cached = STATIC + (2 * turn - 1) * STEP
        row = {"timestamp": f"2026-03-07T10:00:{20 * turn - 20:02d}Z", "request": body(turn)}
        rows.append(row | {"usage": usage(read, cached)})
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_workload(log, SETUP)


ALL_READ = (0, STATIC + STEP, STATIC + 3 * STEP)
FULL = STATIC + STEP


@pytest.mark.parametrize(
    ("read", "lost"), [(FULL, 0), (FULL - 159, 0), (FULL - 161, 161), (STATIC, FULL - STATIC), (0, FULL)]
)
def test_a_loss_is_what_the_bill_did_not_read(tmp_path: Path, read: int, lost: int) -> None:
    """A difference of 2% may be that of an estimated length."""
    traffic = workload(tmp_path, 0, read, ALL_READ[2])
    found = explain_recording(traffic, prices_under(SETUP))
    assert [(one.cause, one.call, one.tokens) for one in found.not_explained] == (
        [("billed_not_explained", 2, lost)] if lost else []
    )
    assert found.not_explained_usd == lost * Decimal("5.75") / 10**6
    assert found.billed is not None
    assert found.necessary == found.billed - found.avoidable - found.not_explained_usd
    assert len(hold_losses(traffic)[1]) == bool(lost)


@pytest.mark.parametrize("read", [STATIC, 0])
def test_the_simulation_with_losses_held_is_the_bill(tmp_path: Path, read: int) -> None:
    traffic = workload(tmp_path, 0, read, ALL_READ[2])
    held, losses = hold_losses(traffic)
    rows = list(held.simulation().rows(held.calls))
    assert losses == {2: FULL}
    assert [row.usage.read for row in rows] == [0, read, ALL_READ[2]]
    assert [row.usage.total_input for row in rows] == [STATIC + (2 * n - 1) * STEP + TAIL for n in (1, 2, 3)]


def test_alternatives_keep_the_loss(tmp_path: Path) -> None:
    lost, whole = (what_if(workload(tmp_path, 0, read, ALL_READ[2]), tries_assumptions=False) for read in (0, FULL))
    assert (lost.held_losses, whole.held_losses) == (1, 0)
    assert lost.cost == lost.billed
    assert lost.billed is not None and whole.billed is not None
    hour = [report.find("ttl=1h").cost for report in (lost, whole)]
    assert hour[0] is not None and hour[1] is not None
    assert hour[0] - hour[1] == FULL * (Decimal("10") - Decimal("0.5")) / 10**6  # written again with 1h, not read


def test_a_plan_cannot_avoid_the_loss(tmp_path: Path) -> None:
    lost, whole = (hold_losses(workload(tmp_path, 0, read, ALL_READ[2]))[0] for read in (0, FULL))
    costs = [optimum_of(one.calls, one.setup, pings=False).usd for one in (lost, whole)]
    assert costs[0] > costs[1]
