"""The online policy: what the optimum teaches, told from the past alone."""

from __future__ import annotations

from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.adapting import Adapt

LEARNED = (
    Agent(
        name="adaptive",
        what="head and end marked for 5m or 1h by the pauses seen so far; ends that nothing goes on from not at all",
        source="cachecost optimize: what the optimum does, from the past alone",
        date="2026-11-22",
        changes=(Adapt(),),
    ),
)
