"""The figures of RFC013's claims, by hand."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from plain import BASE_S, MILLION, READ_S, SONNET, UNREAD_S, Sent, chain, uncached, usd

REREAD = (SONNET.write - SONNET.read) / MILLION
"""USD that a token costs more written than read."""


def _net(calls: int, size: int = 5_000, more: int = 0) -> Decimal:
    """What is saved of `calls` prompts of `size` tokens, written once and then read, each with `more` uncached ones."""
    sent = [Sent(size + more, size if number else 0, 0, more) for number in range(calls)]
    return 1 - usd(SONNET, sent) / usd(SONNET, uncached(sent))


LOOP = chain([(4_000, 0), *[(1_000, 0)] * 39])
SAVED = {calls: 1 - usd(SONNET, LOOP[:calls]) / usd(SONNET, uncached(LOOP[:calls])) for calls in range(1, 41)}


def _varying(head: int, read: int) -> Decimal:
    """Ten turns of two calls behind `head` tokens; each turn's first call reads `read` of them, the first none."""
    calls = []
    for turn in range(10):
        first = head + 1_200 * turn + 100
        calls += [Sent(first, read if turn else 0, 100), Sent(first + 900, first, 200)]
    return usd(SONNET, calls)


TRIES, PLACE, LAST, HEAD = 4, 7_900, 7_200, 3_000
"""Later tries at turn 2; tokens before it, up to the last call before it, and of tools and system prompt."""


def _branching() -> list[Sent]:
    """Six turns of five calls, the last four of them at the same place, where the message before them is read."""
    turns = [[(3_200, 100), *[(1_000, 100)] * 3, (1_000, 700)]]
    calls = chain(turns[0])
    for number in range(5):
        first = Sent(PLACE + 200, PLACE if number else LAST, 100)
        rest = [
            Sent(first.total + 1_000 * n, first.total + 1_000 * (n - 1), 700 if n == 4 else 100) for n in range(1, 5)
        ]
        calls += [first, *rest]
    return calls


def _children(shared: bool) -> list[Sent]:
    """Three turns of four calls, and three children of two calls after the ninth."""
    turn = [(900, 100), *[(1_000, 100)] * 2, (1_000, 700)]
    main = chain([(3_200, 100), *turn[1:], *turn, *turn])
    task = main[8].total + 270 + (0 if shared else 10)
    child = [Sent(task, main[8].total if shared else 1_200, 80), Sent(task + 980, task, 500)]
    return [*main, *child * 3]


def _first_block(tools: int) -> Decimal:
    """What the breakpoint on the first of `tools` results costs more than one on the last, in 40 calls."""
    added, late = tools * 1_000, (tools - 1) * 900
    first = Sent(4_000, 0, tools * 100)
    written, coded = [first], [first]
    for number in range(1, 40):
        total, output = 4_000 + number * added, 100 if number == 39 else tools * 100
        near = 1 + 2 * tools <= 20  # blocks back to the entry of the call before, which the lookback has to reach
        near_first = 2 + 2 * (tools - 1) <= 20 if number > 1 else True
        written.append(Sent(total, total - added if near else HEAD, output))
        before = 4_000 if number == 1 else total - added - late
        coded.append(Sent(total, before if near_first else HEAD, output, late))
    return usd(SONNET, coded) / usd(SONNET, written) - 1


TURN, TURNS = 12_600, 12
"""Of the long conversation: tokens of a turn (200, four times 12 tools of 250 in all, 400)."""
PASSED = 100_175
"""Tokens of messages up to the block with which they pass 100,000, in the eighth turn."""
BRANCH = _branching()
INPUT = [call._replace(output=0) for call in BRANCH]
TOOLED, WITHOUT = _varying(7_100, 4_000), _varying(7_100, 0)
FIGURES = {
    "rfc013.latency": {
        "measured_10000": 1 - Decimal("1.1") / Decimal("1.6"),
        "measured_100000": 1 - Decimal("2.4") / Decimal("11.5"),
        "measured_187371": 1 - Decimal("2.92") / Decimal("20.37"),
        "own": 1 - (BASE_S + READ_S * 5_000) / (BASE_S + UNREAD_S * 5_000),
    },
    "rfc013.list-system": {"refused": 1, "written": 3 * 2_000 + 3 * 120},
    "rfc013.first-block": {f"more_{tools}": _first_block(tools) for tools in (1, 3, 8, 12)},
    "rfc013.ninety": {f"net_{calls}": _net(calls) for calls in (1, 2, 10)},
    "rfc013.metric": {
        "tokens": Decimal(4_500),
        "saved": 5_000 * (SONNET.input - SONNET.read) / MILLION,
        "premium": 5_000 * (SONNET.write - SONNET.input) / MILLION,
    },
    "rfc013.loops": {
        **{f"saved_{calls}": SAVED[calls] for calls in (1, 2, 5, 10, 20, 40)},
        "low": next(n for n, (a, b) in enumerate(pairwise(SAVED.values()), 2) if a < Decimal("0.5") <= b),
        "high": next(n for n, (a, b) in enumerate(pairwise(SAVED.values()), 2) if a < Decimal("0.8") <= b),
    },
    "rfc013.documents": {
        "later": 1 - (100_000 * SONNET.read + 100 * SONNET.input) / (100_100 * SONNET.input),
        **{f"net_{asked}": _net(asked, 100_000, 100) for asked in (1, 2, 10, 20)},
    },
    "rfc013.documents-late": {"saved": _net(1, 100_000, 100)},
    "rfc013.tools": {"read": 4_000, "with": TOOLED, "without": WITHOUT, "gained_small": 0},
    "rfc013.branching": {
        "saved_short": TRIES * (PLACE - LAST) * REREAD,
        "saved_long": TRIES * (PLACE - HEAD) * REREAD,
        "reads_plain": HEAD,
        "reads_written": PLACE,
    },
    "rfc013.branching-coded": {"saved_short": 0, "saved_long": 0},
    "rfc013.split": {"split": _varying(7_100, 7_000), "before": TOOLED, "read": 7_000},
    "rfc013.by-length": {
        "saved": 0,
        "saved_wide": 4 * 4 * PASSED * REREAD,
        "branch_wide": 4 * TURN * sum(range(TURNS)) * REREAD,
    },
    "rfc013.children": {
        "plain": usd(SONNET, _children(shared=True)),
        "fork": usd(SONNET, _children(shared=True)) - 100 * REREAD,
        "apart": usd(SONNET, _children(shared=False)),
    },
    **{
        f"rfc013.{key}": {
            "saved_short": (TRIES - 1) * (PLACE - LAST) * REREAD,
            "saved_long": (TRIES - 1) * (PLACE - HEAD) * REREAD,
        }
        for key in ("forks", "tree")
    },
    "rfc013.analytics": {
        "hit_rate": Decimal(sum(call.read for call in BRANCH)) / sum(call.total for call in BRANCH),
        "saved": 1 - usd(SONNET, INPUT) / usd(SONNET, uncached(INPUT)),
    },
    "rfc013.adaptive": {
        "gained_wide": sum(4 * (TURN * turn + 200) + 3_000 * (0 + 1 + 2 + 3) for turn in range(TURNS)) * REREAD,
        "saved_long": -TRIES * 200 * (SONNET.input - SONNET.read) / MILLION,
    },
    "rfc013.budget": {"more": TURNS * 200 * (SONNET.input - SONNET.read) / MILLION},
}
