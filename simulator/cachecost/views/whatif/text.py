"""What `cachecost whatif` prints for people: the answer, a line a promise, then what is assumed and how sure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from cachecost.analysis.whatif.alternatives import (
    NO_CHANGE,
    NOT_SUPPORTED,
    Action,
    Alternative,
    BreakEven,
    Combination,
    WhatifReport,
)
from cachecost.base.formatting import (
    counted,
    dollar_change,
    dollar_column,
    dollar_places,
    dollar_range,
    percent,
    percent_column,
    point_aligned,
    rough_dollars,
)
from cachecost.ledger.results import ZERO
from cachecost.views.run.text_tables import table_of
from cachecost.views.streams import inert_console
from cachecost.views.tables.columns import COMPARISON, COUNT, GAP, INDENT, Column, Fit, fit, hidden_note
from cachecost.views.tables.plain import PIPE_WIDTH
from cachecost.views.whatif.sentences import action_lines, break_even_lines, headline, joint_lines

NARROWEST_PROSE = 30
"""Cells from which on the table tells what each promise does."""


def print_whatif(told: WhatifReport, stream: IO[str]) -> None:
    """Print to `stream`; rich respects NO_COLOR, pipes and the width."""
    console = inert_console(stream, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    _say(console, headline(told))
    if told.jointly:
        _say(console, joint_lines(told.jointly, told.cost))
    priced = [one for one in told.alternatives if _is_shown(one)]
    fitted = _fitted(priced, console.width) if priced else None
    if fitted:
        console.print()
        console.print(_table(priced, fitted))
    for part in (_asked(told.asked, told), _actions(told.actions), _break_even(told.break_even), _closing(told)):
        lines = list(part)
        if lines:
            console.print()
            _say(console, lines)
    if note := hidden_note([fitted] if fitted else [], "--csv F"):
        _say(console, [note])


def _is_shown(one: Alternative) -> bool:
    """Models that cost more are told in a line."""
    return one.saving is not None and not one.supported.startswith(NO_CHANGE) and not _is_dearer(one)


def _is_dearer(one: Alternative) -> bool:
    return one.kind == "model" and one.saving is not None and one.saving < 0


def _say(console: Console, lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _fitted(alternatives: Sequence[Alternative], width: int) -> Fit:
    """What each promise costs and saves, and whether that is sure; what it does, where that has room to be read."""
    places = dollar_places(amount for one in alternatives for amount in (one.cost, one.saving, one.most))
    columns = [
        Column("cost", "cost", point_aligned([dollar_range(one.cost, one.most, places) for one in alternatives])),
        Column("saving", "saving", point_aligned([dollar_change(one.saving, places) for one in alternatives])),
        Column("share", "share", percent_column([one.share for one in alternatives], signed=True), rank=COMPARISON),
        Column("calls", "calls", [_calls(one) for one in alternatives], rank=COUNT),
        Column("sure", "sure?", [_mark(one) for one in alternatives], right=False),
    ]
    fitted = fit([one.name for one in alternatives], "promise", columns, width)
    if fitted.room < GAP + NARROWEST_PROSE:
        does = Column("does", "what it does", [" " * NARROWEST_PROSE for _ in alternatives])
        return replace(fitted, hidden=[*fitted.hidden, does])
    return fitted


def _table(alternatives: Sequence[Alternative], fitted: Fit) -> Padding:
    table = table_of(fitted.columns)
    has_prose = fitted.room >= GAP + NARROWEST_PROSE
    if has_prose:
        table.add_column("what it does", overflow="fold")
    for number, one in enumerate(alternatives):
        cells = [Text(column.flush(number)) for column in fitted.columns]
        table.add_row(*cells, *[one.does] * has_prose, style="" if one.is_gain else "dim")
    return Padding(table, (0, 0, 0, INDENT))


def _calls(one: Alternative) -> str:
    return f"{one.calls_changed:,}" + (f" +{one.extra_calls:,}" if one.extra_calls else "")


def _mark(one: Alternative) -> str:
    if one.supported != "yes":
        return "no *"
    return "open rule" if one.depends_on else "yes"


def _asked(joint: Combination | None, told: WhatifReport) -> Iterator[str]:
    if joint:
        yield from joint_lines(joint, told.cost, is_asked=True)


def _actions(actions: Sequence[Action]) -> Iterator[str]:
    for action in actions:
        yield from action_lines(action)


def _break_even(edge: BreakEven | None) -> Iterator[str]:
    if edge:
        yield from break_even_lines(edge)


def _closing(told: WhatifReport) -> Iterator[str]:
    """What the data do not say, what is assumed, and how sure all of this is."""
    doubtful = [one for one in told.alternatives if one.saving is not None and one.supported.startswith(NOT_SUPPORTED)]
    yield from (f"* {line}" for line in _by_verdict(doubtful))
    dearer = [one for one in told.alternatives if _is_dearer(one)]
    if dearer:
        more = dollar_column([-(one.saving or ZERO) for one in dearer])
        models = (f"{one.name.partition('=')[2]} (+{extra})" for one, extra in zip(dearer, more, strict=True))
        yield f"dearer models: {', '.join(models)}"
    yield from _by_verdict([one for one in told.alternatives if one.saving is None])
    yield from _by_verdict([one for one in told.alternatives if one.supported.startswith(NO_CHANGE)])
    for words in dict.fromkeys(one.assumption for one in told.alternatives if one.assumption and one.is_gain):
        names = ", ".join(one.name for one in told.alternatives if one.assumption == words and one.is_gain)
        yield f"assumed  {names}: {words}"
    yield "assumed  effort is not among these: what another effort would have answered is in no recording"
    yield from _sure(told)


def _by_verdict(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """A line for each verdict, with the promises that it is about."""
    for why in dict.fromkeys(one.supported for one in alternatives):
        yield f"{', '.join(one.name for one in alternatives if one.supported == why)}: {why}"


def _sure(told: WhatifReport) -> Iterator[str]:
    best = next((one for one in told.alternatives if one.is_gain), None)
    if told.token_source:
        error = f" ±{percent(told.band)}" if told.band else ""
        on_best = f" → ±{rough_dollars(best.error)} on {best.name}" if best and best.error else ""
        yield f"tokens   {told.token_source}{error}{on_best}"
    for one in told.alternatives:
        for words in one.depends_on:
            yield f"reading  {one.name}: {words}"
    if not told.readings_asked:
        yield "reading  other readings of the open rules were not asked (--readings asks them)"
    elif told.readings and not any(one.depends_on for one in told.alternatives):
        asked = counted(len(told.readings), "other reading")
        yield f"reading  no verdict turns under {asked} of the open rules"
