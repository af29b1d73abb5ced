"""What `cachecost whatif` prints for people: the answer, a line per alternative, then what is assumed and how sure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import IO

from rich.console import Console

from cachecost.analysis.whatif.alternatives import NO_CHANGE, NOT_SUPPORTED, Alternative, WhatifReport
from cachecost.base.formatting import (
    count_text,
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
from cachecost.views.streams import report_console
from cachecost.views.tables.fitting import GAP, FittedTable, fit_table, hidden_note
from cachecost.views.tables.table import COMPARISON, COUNT, Column, Table
from cachecost.views.tables.text import PIPE_WIDTH, render_table
from cachecost.views.whatif.sentences import action_lines, break_even_lines, headline, joint_lines

NARROWEST_PROSE = 30
"""Cells that the column “what it does” needs to be shown."""


def print_whatif(whatif: WhatifReport, stream: IO[str]) -> None:
    """Print to `stream`; rich respects NO_COLOR, pipes and the width."""
    console = report_console(stream, PIPE_WIDTH)
    _print_lines(console, headline(whatif))
    if whatif.jointly:
        _print_lines(console, joint_lines(whatif.jointly, whatif.cost))
    shown = [one for one in whatif.alternatives if _is_shown(one)]
    fitted = _fit(shown, console.width) if shown else None
    if fitted:
        prose = ("what it does", [one.does for one in shown]) if _has_prose(fitted) else None
        losses = [number for number, one in enumerate(shown) if not one.is_gain]
        console.print()
        console.print(render_table(fitted, prose=prose, dim=losses))
    for lines in _sections(whatif):
        if lines:
            console.print()
            _print_lines(console, lines)
    if fitted and (note := hidden_note([_with_prose_hidden(fitted)], "--csv F")):
        _print_lines(console, [note])


def _sections(whatif: WhatifReport) -> Iterator[list[str]]:
    """What stands below the table: the combination that was asked for, actions, break-evens, certainty."""
    yield list(joint_lines(whatif.asked, whatif.cost, is_asked=True)) if whatif.asked else []
    yield [line for action in whatif.actions for line in action_lines(action)]
    yield list(break_even_lines(whatif.break_even)) if whatif.break_even else []
    yield list(_closing(whatif))


def _is_shown(one: Alternative) -> bool:
    """Models that cost more share one line."""
    return one.saving is not None and not one.supported.startswith(NO_CHANGE) and not _costs_more(one)


def _costs_more(one: Alternative) -> bool:
    return one.kind == "model" and one.saving is not None and one.saving < 0


def _print_lines(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _fit(alternatives: Sequence[Alternative], width: int) -> FittedTable:
    """What each alternative costs and saves, and whether that is sure, in `width` cells."""
    places = dollar_places(amount for one in alternatives for amount in (one.cost, one.saving, one.most))
    columns = [
        Column("name", "alternative", [one.name for one in alternatives], right=False),
        Column("cost", "cost", point_aligned([dollar_range(one.cost, one.most, places) for one in alternatives])),
        Column("saving", "saving", point_aligned([dollar_change(one.saving, places) for one in alternatives])),
        Column("share", "share", percent_column([one.share for one in alternatives], signed=True), rank=COMPARISON),
        Column("calls", "calls", [_calls(one) for one in alternatives], rank=COUNT),
        Column("sure", "sure?", [_certainty(one) for one in alternatives], right=False),
    ]
    return fit_table(Table(columns), width)


def _has_prose(fitted: FittedTable) -> bool:
    """Whether there is room for the column that says what each alternative does."""
    return fitted.room >= GAP + NARROWEST_PROSE


def _with_prose_hidden(fitted: FittedTable) -> FittedTable:
    if _has_prose(fitted):
        return fitted
    prose = Column("does", "what it does", [" " * NARROWEST_PROSE for _ in fitted.names.cells])
    return replace(fitted, hidden=[*fitted.hidden, prose])


def _calls(one: Alternative) -> str:
    return f"{one.calls_changed:,}" + (f" +{one.extra_calls:,}" if one.extra_calls else "")


def _certainty(one: Alternative) -> str:
    if one.supported != "yes":
        return "no *"
    return "open rule" if one.depends_on else "yes"


def _closing(whatif: WhatifReport) -> Iterator[str]:
    """What the data do not say, what is assumed, and how sure all of this is."""
    doubtful = [
        one for one in whatif.alternatives if one.saving is not None and one.supported.startswith(NOT_SUPPORTED)
    ]
    yield from (f"* {line}" for line in _by_verdict(doubtful))
    expensive = [one for one in whatif.alternatives if _costs_more(one)]
    if expensive:
        more = dollar_column([-(one.saving or ZERO) for one in expensive])
        models = (f"{one.name.partition('=')[2]} (+{extra})" for one, extra in zip(expensive, more, strict=True))
        yield f"more expensive models: {', '.join(models)}"
    if whatif.retired_models:
        retired = ", ".join(f"{name} (last day {day})" for name, day in whatif.retired_models.items())
        yield f"retired, so not suggested: {retired}; --as-of {whatif.day} prices them"
    yield from _by_verdict([one for one in whatif.alternatives if one.saving is None])
    yield from _by_verdict([one for one in whatif.alternatives if one.supported.startswith(NO_CHANGE)])
    for words in dict.fromkeys(one.assumption for one in whatif.alternatives if one.assumption and one.is_gain):
        names = ", ".join(one.name for one in whatif.alternatives if one.assumption == words and one.is_gain)
        yield f"assumed  {names}: {words}"
    yield "assumed  effort is unchanged: no recording shows what another effort would have answered"
    yield from _sure(whatif)


def _by_verdict(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """A line for each verdict, with the alternatives that it is about."""
    for why in dict.fromkeys(one.supported for one in alternatives):
        yield f"{', '.join(one.name for one in alternatives if one.supported == why)}: {why}"


def _sure(whatif: WhatifReport) -> Iterator[str]:
    best = next((one for one in whatif.alternatives if one.is_gain), None)
    if whatif.token_source:
        error = f" ±{percent(whatif.error_margin)}" if whatif.error_margin else ""
        on_best = f" → ±{rough_dollars(best.error)} on {best.name}" if best and best.error else ""
        yield f"tokens   {whatif.token_source}{error}{on_best}"
    for one in whatif.alternatives:
        for words in one.depends_on:
            yield f"depends  {one.name}: {words}"
    if not whatif.has_tried_assumptions:
        yield "rules    other assumptions on the open rules were not tried (try them with --assumptions)"
    elif whatif.assumptions and not any(one.depends_on for one in whatif.alternatives):
        tried = count_text(len(whatif.assumptions), "other assumption")
        yield f"rules    no verdict changes under {tried} on the open rules"
