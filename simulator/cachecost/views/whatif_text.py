"""What `cachecost whatif` prints for people: the answer, a line a promise, then what is assumed and how sure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import IO

from rich.console import Console
from rich.table import Table

from cachecost.analysis.whatif.facts import NO_CHANGE, NOT_SUPPORTED, Action, BreakEven, Jointly, Promise, Whatif
from cachecost.ledger import ZERO
from cachecost.numbers import (
    counted,
    dollar_change,
    dollars,
    percent,
    point_aligned,
    rough_dollars,
)
from cachecost.views.plain_table import PIPE_WIDTH
from cachecost.views.streams import inert_console
from cachecost.views.whatif_words import action_lines, break_even_lines, headline, joint_lines

WIDE = 110
"""Cells from which on the table tells what each promise does."""


def print_whatif(told: Whatif, stream: IO[str]) -> None:
    """Print to `stream`; rich respects NO_COLOR, pipes and the width."""
    console = inert_console(stream, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    _say(console, headline(told))
    if told.jointly:
        _say(console, joint_lines(told.jointly, told.cost))
    priced = [one for one in told.promises if _is_shown(one)]
    if priced:
        console.print()
        console.print(_table(priced, console.width))
    for part in (_asked(told.asked, told), _actions(told.actions), _break_even(told.break_even), _closing(told)):
        lines = list(part)
        if lines:
            console.print()
            _say(console, lines)


def _is_shown(one: Promise) -> bool:
    """Models that cost more are told in a line."""
    return one.saving is not None and not one.supported.startswith(NO_CHANGE) and not _is_dearer(one)


def _is_dearer(one: Promise) -> bool:
    return one.kind == "model" and one.saving is not None and one.saving < 0


def _say(console: Console, lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _table(promises: Sequence[Promise], width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("promise", no_wrap=True, style="bold")
    for name in ("cost", "saving", "share", "calls"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("sure?" if width < WIDE else "what it does", overflow="fold")
    costs = point_aligned([_cost(one) for one in promises])
    savings = point_aligned([dollar_change(one.saving) for one in promises])
    for one, cost, saving in zip(promises, costs, savings, strict=True):
        share = percent(one.share, signed=True)
        words = _mark(one) if width < WIDE else f"{one.does}{_note(one)}"
        table.add_row(one.name, cost, saving, share, _calls(one), words, style="" if one.is_gain else "dim")
    return table


def _cost(one: Promise) -> str:
    return f"{dollars(one.cost)}–{dollars(one.most)}" if one.most is not None else dollars(one.cost)


def _calls(one: Promise) -> str:
    return f"{one.calls_changed:,}" + (f" +{one.extra_calls:,}" if one.extra_calls else "")


def _mark(one: Promise) -> str:
    if one.supported != "yes":
        return "no *"
    return "open rule" if one.depends_on else "yes"


def _note(one: Promise) -> str:
    if one.supported != "yes":
        return " *"
    return " (open rule)" if one.depends_on else ""


def _asked(joint: Jointly | None, told: Whatif) -> Iterator[str]:
    if joint:
        yield from joint_lines(joint, told.cost, is_asked=True)


def _actions(actions: Sequence[Action]) -> Iterator[str]:
    for action in actions:
        yield from action_lines(action)


def _break_even(edge: BreakEven | None) -> Iterator[str]:
    if edge:
        yield from break_even_lines(edge)


def _closing(told: Whatif) -> Iterator[str]:
    """What the data do not say, what is assumed, and how sure all of this is."""
    doubtful = [one for one in told.promises if one.saving is not None and one.supported.startswith(NOT_SUPPORTED)]
    yield from (f"* {line}" for line in _by_verdict(doubtful))
    dearer = [one for one in told.promises if _is_dearer(one)]
    if dearer:
        models = (f"{one.name.partition('=')[2]} ({dollar_change(-(one.saving or ZERO))})" for one in dearer)
        yield f"dearer models: {', '.join(models)}"
    yield from _by_verdict([one for one in told.promises if one.saving is None])
    yield from _by_verdict([one for one in told.promises if one.supported.startswith(NO_CHANGE)])
    for words in dict.fromkeys(one.assumption for one in told.promises if one.assumption and one.is_gain):
        names = ", ".join(one.name for one in told.promises if one.assumption == words and one.is_gain)
        yield f"assumed  {names}: {words}"
    yield "assumed  effort is not among these: what another effort would have answered is in no recording"
    yield from _sure(told)


def _by_verdict(promises: Sequence[Promise]) -> Iterator[str]:
    """A line for each verdict, with the promises that it is about."""
    for why in dict.fromkeys(one.supported for one in promises):
        yield f"{', '.join(one.name for one in promises if one.supported == why)}: {why}"


def _sure(told: Whatif) -> Iterator[str]:
    best = next((one for one in told.promises if one.is_gain), None)
    if told.token_source:
        error = f" ±{percent(told.band)}" if told.band else ""
        on_best = f" → ±{rough_dollars(best.error)} on {best.name}" if best and best.error else ""
        yield f"tokens   {told.token_source}{error}{on_best}"
    for one in told.promises:
        for words in one.depends_on:
            yield f"reading  {one.name}: {words}"
    if not told.readings_asked:
        yield "reading  other readings of the open rules were not asked (--readings asks them)"
    elif told.readings and not any(one.depends_on for one in told.promises):
        asked = counted(len(told.readings), "other reading")
        yield f"reading  no verdict turns under {asked} of the open rules"
