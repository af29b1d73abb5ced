"""Pairs of faults in one log, so that one may hide the other."""

from __future__ import annotations

from itertools import product

from planted.catalogue import FAULTS
from planted.fault import Fault

PROMPTS = [
    "clock in system",
    "clock first in system",
    "tools reordered",
    "tools alternate",
    "tool added",
    "tool gone and back",
    "system edited",
    "system edited and reverted",
    "old message edited",
    "message inserted",
    "block dropped",
    "effort alternates",
]
OTHERS = [
    "7 minutes",
    "20 minutes, again and again",
    "no message breakpoint",
    "no breakpoint once",
    "thirty blocks",
    "breakpoint on a reminder",
    "tool choice once",
    "thinking on",
    "model switched",
]
MORE = [
    ("7 minutes", "no message breakpoint"),
    ("7 minutes, again and again", "thirty blocks each time"),
    ("20 minutes", "breakpoint on a reminder"),
    ("model switched", "20 minutes"),
    ("model alternates", "no message breakpoint once"),
    ("tool choice once", "format once"),
    ("system edited and reverted", "tools reordered"),
    ("written for nobody", "too short"),
    ("system edited, chat", "7 minutes, chat"),
    ("clock in system, chat", "no message breakpoint, chat"),
    ("first message edited, chat", "no breakpoint once, chat"),
]
TOO_LONG = ("message inserted", "breakpoint on a reminder")
"""Sent at the end instead, the inserted messages make a turn longer than the lookback: a third fault."""
INTERLACED = {
    frozenset(names)
    for names in [
        ("effort alternates", "breakpoint on a reminder"),
        ("7 minutes", "no message breakpoint"),
        ("20 minutes", "breakpoint on a reminder"),
        ("7 minutes, again and again", "thirty blocks each time"),
    ]
}
"""Where a fix is chosen that is not the one which is best once all others are made: other legal fixes net a little more
together. The findings net at least the best fix alone."""
PAIRS: list[tuple[Fault, Fault]] = [
    (FAULTS[one], FAULTS[other])
    for one, other in [
        *(pair for number, pair in enumerate(product(PROMPTS, OTHERS)) if number % 2 == 0 and pair != TOO_LONG),
        *MORE,
    ]
]
