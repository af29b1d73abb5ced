"""What `cachecost next` prints for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from cachecost.analysis.next_message.alternatives import COLD, NextAlternative, NextChoice
from cachecost.analysis.next_message.state import SessionState
from cachecost.base.formatting import count_text, dollar_column, dollars, token_column, tokens
from cachecost.views.bill.lines import StyledLine, header_line, plain, print_lines, row_lines, wrap_line, wrap_parts
from cachecost.views.next.words import ClockText, cache_words, keep_alive_words, price_words, session_words
from cachecost.views.streams import report_console
from cachecost.views.tables.fitting import fit_table, hidden_note
from cachecost.views.tables.table import ANSWER, COMPARISON, COUNT, Column, Table
from cachecost.views.tables.text import PIPE_WIDTH


def print_next(
    choice: NextChoice, state: SessionState, now: float, new_tokens: int, source: str, clock: ClockText, stream: IO[str]
) -> None:
    """Print the next message of a session; `source` says where its figures come from."""
    console = report_console(stream, PIPE_WIDTH)
    print_lines(console, next_lines(choice, state, now, new_tokens, source, clock, console.width))


def next_lines(
    choice: NextChoice, state: SessionState, now: float, new_tokens: int, source: str, clock: ClockText, width: int
) -> Iterator[StyledLine]:
    answer = f"next message {price_words(choice.message)} · {cache_words(state, now, clock)}"
    yield from plain(wrap_parts(answer, width))
    yield from plain(wrap_parts(session_words(state), width))
    yield "", ""
    fitted = fit_table(alternatives_table(shown_rows(choice)), width)
    yield header_line(fitted), "dim"
    yield from plain(row_lines(fitted))
    yield "", ""
    for line in filter(None, notes(choice, state, new_tokens, source, clock)):
        yield from plain(wrap_line(line, width))
    yield from plain(filter(None, [hidden_note([fitted], "--json")]))


def shown_rows(choice: NextChoice) -> list[NextAlternative]:
    """The alternatives; a cache that has expired already expires no more."""
    return [row for row in choice.alternatives if choice.message.is_warm or row.kind != COLD]


def alternatives_table(rows: Sequence[NextAlternative]) -> Table:
    """A row an alternative; `first` has to be paid before the message."""
    usages = [row.usage.usage for row in rows]
    columns = [
        Column("way", "next message", [row.name for row in rows], right=False),
        Column("cost", "cost", dollar_column([row.cost for row in rows])),
        Column("first", "one-time cost", _first_column(rows), rank=COMPARISON),
        Column("read", "read", token_column([usage.read for usage in usages]), rank=COUNT),
        Column("written", "written", token_column([usage.write for usage in usages]), rank=COUNT),
        Column("input", "uncached", token_column([usage.input_tokens for usage in usages]), rank=COUNT),
        Column("note", "note", [row.note for row in rows], right=False, rank=COUNT + 1),
    ]
    return Table([column for column in columns if any(column.cells) or column.rank == ANSWER])


def _first_column(rows: Sequence[NextAlternative]) -> list[str]:
    return ["" if row.first is None else dollars(row.first.cost) for row in rows]


def notes(choice: NextChoice, state: SessionState, new_tokens: int, source: str, clock: ClockText) -> Iterator[str]:
    """What the figures do not say: the break-even of a compaction, keep-alives, and what was taken for granted."""
    found = choice.compaction
    if found is not None and found.saved is not None:
        kept = f"{tokens(state.prompt_tokens)} tokens become {tokens(found.kept_tokens)}"
        if found.breaks_even_after is None:
            yield f"/compact now: {kept}; it would never pay for itself."
        else:
            later = f"each later message costs {dollars(found.saved)} less"
            yield f"/compact now: {kept}; {later}; break-even after {count_text(found.breaks_even_after, 'message')}."
    yield keep_alive_words(choice.keep_alive, clock)
    yield f"Assumes a {new_tokens:,}-token message{source}"
