"""Placements that users described in threads: proposals, and habits to be seen failing."""

from __future__ import annotations

from cachecost.strategies.placements import EveryKTurns, Freeze, Lag, LastMessage, LastN, LastTool, SystemBlock
from cachecost.strategies.presets.making import RECORDED, breakpoint_preset

HEAD = (LastTool(), SystemBlock("last"))

PATTERNS = (
    breakpoint_preset(
        "system-and-n",
        "system, last tool and the last two messages (librefang's system_and_N with N = 2)",
        "librefang#5021",
        RECORDED,
        *HEAD,
        LastN("any", 2),
    ),
    breakpoint_preset(
        "lagging-tail",
        "last tool, system, tail, and a breakpoint 20 blocks behind the tail",
        "tidebreak#1270",
        RECORDED,
        *HEAD,
        LastMessage(),
        Lag(20),
    ),
    breakpoint_preset(
        "decimation",
        "the last two messages, and the two latest of every 15th human message",
        "oh-my-pi#11665",
        RECORDED,
        LastN("any", 2),
        EveryKTurns(15, 2),
    ),
    breakpoint_preset(
        "freeze-at-4",
        "the first user message and every 10th tool result until 4 breakpoints stand: a habit to avoid",
        "g3#77",
        RECORDED,
        Freeze(10, 4),
    ),
)
