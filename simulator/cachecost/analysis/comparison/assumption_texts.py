"""Assumptions in words: each in a sentence, by what becomes of the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cachecost.base.formatting import capitalized, count_text
from cachecost.ledger.assumptions import Assumption

SENTENCE_END = re.compile(r"(?<=[.])\s+(?=[A-Z“])")
MOST_ASSUMED = 5
"""Assumptions next to the verdict, at most."""
CHANGE, HOLD, UNTRIED = "Would change the answer", "Would not change it", "Not tried"


def assumption_groups(assumptions: Sequence[Assumption]) -> list[tuple[str, list[str]]]:
    """The assumptions by whether they would change the answer, each in a sentence; no group is empty."""
    groups = [(CHANGE, True), (HOLD, False), (UNTRIED, None)]
    found = [(title, [sentence(one) for one in assumptions if one.changes is changes]) for title, changes in groups]
    return [(title, sentences) for title, sentences in found if sentences]


def sentence(assumption: Assumption) -> str:
    """ "Retry rate of the answer tool: 0.05 (not measured; RFD 033). “a” stays the cheapest …"."""
    value = "" if assumption.value is None else f": {_shown(assumption.value)}"
    reasons = "; ".join(part for part in (assumption.why, assumption.source) if part)
    name = assumption.name.removesuffix(".")
    stated = f"{capitalized(name)}{value}{f' ({reasons})' if reasons else ''}."
    return f"{stated} {assumption.effect}" if assumption.effect else stated


def _shown(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def brief_sentence(assumption: Assumption) -> str:
    """The assumption and what becomes of the answer, in one sentence."""
    value = "" if assumption.value is None else f" ({_shown(assumption.value)})"
    effect = SENTENCE_END.split(assumption.effect)[0].removesuffix(".")
    stated = f"{capitalized(assumption.name.removesuffix('.'))}{value}"
    effect = effect[:1].lower() + effect[1:]
    return f"{stated}: {effect}." if effect else f"{stated}."


def first_assumptions(assumptions: Sequence[Assumption]) -> list[str]:
    """Those that could change most, in a sentence each: what was tried before what was not."""
    return [brief_sentence(one) for one in assumptions[:MOST_ASSUMED]]


def summary_sentence(assumptions: Sequence[Assumption]) -> str:
    """How many assumptions there are, how many were varied, and whether the winner stays; "" without any."""
    if not assumptions:
        return ""
    tried = [one for one in assumptions if one.changes is not None]
    changing = sum(bool(one.changes) for one in tried)
    were = "were" if len(tried) > 1 else "was"
    counted = f"{len(tried) or 'None'} of {count_text(len(assumptions), 'assumption')} {were} varied"
    return f"{counted}{f'; {changing} would change the answer' if changing else '; the winner stays' if tried else ''}."
