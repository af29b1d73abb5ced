"""What `cachecost whatif` prints by default: the answer, in at most ten lines."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import ceil
from typing import IO

from cachecost.analysis.whatif.alternatives import Alternative, TTLBreakEven, WhatifReport
from cachecost.base.formatting import change_text, count_text, dollars, percent, rough_dollars
from cachecost.views.see_also import see_also
from cachecost.views.streams import report_console
from cachecost.views.tables.text import PIPE_WIDTH
from cachecost.views.whatif.sentences import action_answer, best, cost_words, joint_lines

MOST_ALTERNATIVES = 3
MOST_LINES = 10


def print_brief(whatif: WhatifReport, arguments: str, stream: IO[str]) -> None:
    """Print to `stream`; rich respects NO_COLOR, pipes and the width."""
    console = report_console(stream, PIPE_WIDTH)
    for line in brief_lines(whatif, arguments):
        console.print(line, markup=False, soft_wrap=True)


def brief_lines(whatif: WhatifReport, arguments: str) -> Iterator[str]:
    """The answer, what was asked for or what else saves, how sure that is, and what to type next."""
    below = [*_below(whatif), *_next_lines(whatif, arguments)]
    yield from _action_answers(whatif, MOST_LINES - len(below)) if whatif.actions else [_answer(whatif)]
    yield from below


def _action_answers(whatif: WhatifReport, room: int) -> Iterator[str]:
    """The answer for each action; where there is no room for all, how many more there are."""
    shown = len(whatif.actions) if len(whatif.actions) <= room else room - 1
    yield from map(action_answer, whatif.actions[:shown])
    if rest := len(whatif.actions) - shown:
        yield f"… and {count_text(rest, 'more action')}: --full"


def _below(whatif: WhatifReport) -> Iterator[str]:
    """What stands below the answer: what it cost, what was asked for or what else saves, and how sure that is."""
    yield f"{whatif.name}   {count_text(whatif.calls, 'call')} · {cost_words(whatif)}"
    if whatif.asked:
        yield from joint_lines(whatif.asked, whatif.cost, is_asked=True)
    if whatif.actions:
        yield f"assumed    {whatif.actions[0].assumption}{'; more in --full' * (len(whatif.actions) > 1)}"
    if not whatif.asked and not whatif.actions:
        yield from _others(whatif)
    yield f"sure       {_counts(whatif) if whatif.actions else _certainty(whatif)}"


def _next_lines(whatif: WhatifReport, arguments: str) -> Iterator[str]:
    number = f"all {len(whatif.alternatives)} alternatives, and what is assumed"
    yield f"next       cachecost whatif {arguments} --full: {number}"
    known = {"explain": f"why it costs {dollars(whatif.cost)}", "optimize": "cheapest breakpoints, the lower bound"}
    yield see_also("whatif", arguments, known)


def _answer(whatif: WhatifReport) -> str:
    """The best change that keeps the answers: what to do, dollars now and then."""
    one = best(whatif, keeps_answers=True)
    now = f"{dollars(whatif.cost)} now"
    if one is None:
        return f"{now}; no single change that keeps the answers saves anything that these data support"
    return f"{now} · {_saving(one)}: {one.does}"


def _saving(one: Alternative) -> str:
    return f"{one.name} {dollars(one.cost)}{_less(one.share)}"


def _less(share: Decimal | None) -> str:
    return f", {change_text(-share)}" if share is not None else ""


def _others(whatif: WhatifReport) -> Iterator[str]:
    first = best(whatif, keeps_answers=True)
    more = [one for one in whatif.alternatives if one.is_gain and one.keeps_answers and one is not first]
    yield f"saves too  {' · '.join(map(_saving, more[:MOST_ALTERNATIVES])) or 'nothing else that keeps the answers'}"
    joint = whatif.jointly
    if joint and joint.saving is not None and len(joint.names) > 1:
        share = joint.saving / whatif.cost if whatif.cost else None
        yield f"together   {' + '.join(joint.names)} {dollars(joint.cost)}{_less(share)}"
    if other := best(whatif, keeps_answers=False):
        yield f"otherwise  {_saving(other)}, with other answers: {other.does}"
    if whatif.break_even and (words := _break_even(whatif.break_even)):
        yield f"1h TTL     {words}"


def _break_even(edge: TTLBreakEven) -> str:
    if edge.needed_pauses is None:
        return ""
    return f"breaks even at {count_text(ceil(edge.needed_pauses), 'pause')} of 5–60 min; you have {edge.pauses[1]:,}"


def _certainty(whatif: WhatifReport) -> str:
    one = best(whatif, keeps_answers=True)
    on_best = f" → ±{rough_dollars(one.error)} on {one.name}" if one and one.error else ""
    if one and one.depends_on:
        return f"{_counts(whatif)}{on_best}; depends on an open rule (--full)"
    tried = (
        "holds under every tried assumption" if whatif.has_tried_assumptions else "open rules not tried (--assumptions)"
    )
    return f"{_counts(whatif)}{on_best}; {tried}"


def _counts(whatif: WhatifReport) -> str:
    """Where the token counts come from, and their error margin."""
    margin = f" ±{percent(whatif.error_margin)}" if whatif.error_margin else ""
    return f"{whatif.token_source}{margin}"
