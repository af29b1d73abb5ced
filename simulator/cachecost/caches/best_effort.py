"""Caches that promise nothing and say nothing of how they match (Gemini implicit, Qwen implicit …).

The outcome is the most that they could read: every earlier prefix, token by token, for as long as the rules state
(without end where they state nothing). The least is nothing. A result is the range between the two, never one number.
"""

from __future__ import annotations

from cachecost.caches.fixed_blocks import Grid


class BestEffort(Grid):
    """A grid with the step of its rules, 1 where they state none: the ideal."""
