"""Assumptions in words: each in a sentence, by what becomes of the answer."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.base.formatting import capitalized, count_text
from cachecost.ledger.assumptions import Assumption

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
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def summary_sentence(assumptions: Sequence[Assumption]) -> str:
    """How many assumptions there are, and how many of those tried would change the answer; "" without any."""
    if not assumptions:
        return ""
    tried = [one for one in assumptions if one.changes is not None]
    changing = [one for one in tried if one.changes]
    counted = f"The answer rests on {count_text(len(assumptions), 'assumption')}"
    if not tried:
        return f"{counted}; none of them was tried at other values."
    return f"{counted}; {len(changing) or 'none'} of {len(tried)} tried would change it."
