"""`next`, as JSON and for people; dollars are decimal strings of all digits, times ISO 8601 in UTC."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

from cachecost.analysis.next_message.choices import COLD, NextAlternative, NextChoice
from cachecost.analysis.next_message.state import Price, SessionState
from cachecost.base.formatting import count_text, dollar_column, dollars, exact, exact_or_none, token_column, tokens
from cachecost.base.times import iso, iso_or_none
from cachecost.views.bill.text import header_line, plain, print_lines, row_lines, wrap_line, wrap_parts
from cachecost.views.next.words import ClockText, cache_words, keep_alive_words, price_words, session_words
from cachecost.views.streams import report_console
from cachecost.views.tables.output import pick
from cachecost.views.tables.table import (
    ANSWER,
    COMPARISON,
    COUNT,
    PIPE_WIDTH,
    Column,
    Table,
    fit_table,
    hidden_note,
    word_column,
)


def next_object(
    choice: NextChoice, state: SessionState, at: float, new_tokens: int, is_simulated: bool
) -> dict[str, Any]:
    """The next message, what could be done instead, and the session that it continues."""
    compaction, advice = choice.compaction, choice.keep_alive
    return {
        "format": 1,
        "at": iso(at),
        "is_warm": choice.message.is_warm,
        "is_simulated": is_simulated,
        "new_tokens": new_tokens,
        **price_object(choice.message.price),
        "cold": price_object(choice.message.cold),
        "alternatives": [
            {
                **pick(one, "kind", "name"),
                "cost_usd": exact_or_none(one.cost),  # with what has to be paid `first`
                "usage": one.usage.usage.wire(),
                "first": price_object(one.first) if one.first else None,
                **pick(one, "breaks_even_after", "note"),
            }
            for one in choice.alternatives
        ],
        "compaction": compaction
        and {
            "summary": price_object(compaction.summary),
            "message": price_object(compaction.message),
            "kept_tokens": compaction.kept_tokens,
            "saved_per_message_usd": exact_or_none(compaction.saved),
            "breaks_even_after": compaction.breaks_even_after,
        },
        "keep_alive": advice
        and {
            "cost_usd": exact(advice.cost),
            **pick(advice, "worth_up_to", "advised"),
            "saved_usd": exact(advice.saved),
            "pauses": advice.pauses,
            "send_at": iso_or_none(advice.send_at),
            "interval_s": advice.interval_s,
            "stop_at": iso_or_none(advice.stop_at),
        },
        "session": state_object(state),
    }


def state_object(state: SessionState) -> dict[str, Any]:
    return {
        **pick(state, "session", "project", "model", "host", "calls"),
        "cost_usd": exact_or_none(state.cost),
        "hit_rate": None if state.hit_rate is None else float(state.hit_rate),
        **pick(state, "prompt_tokens", "cached_tokens", "static_tokens", "ttl"),
        "last_used": iso_or_none(state.last_used),
        "warm_until": iso_or_none(state.warm_until),
        **pick(state, "typical_new_tokens", "typical_output_tokens", "calls_per_message"),
    }


def price_object(price: Price) -> dict[str, Any]:
    return {"cost_usd": exact_or_none(price.cost), "usage": price.usage.wire()}


def print_next(
    choice: NextChoice, state: SessionState, now: float, new_tokens: int, source: str, clock: ClockText, stream: IO[str]
) -> None:
    """Print the next message of a session; `source` says where its figures come from."""
    console = report_console(stream, PIPE_WIDTH)
    answer = f"next message {price_words(choice.message)} · {cache_words(state, now, clock)}"
    # a cache that has expired already expires no more
    rows = [row for row in choice.alternatives if choice.message.is_warm or row.kind != COLD]
    fitted = fit_table(alternatives_table(rows), console.width)
    sentences = [
        line
        for note in filter(None, notes(choice, state, new_tokens, source, clock))
        for line in wrap_line(note, console.width)
    ]
    head = [*wrap_parts(answer, console.width), *wrap_parts(session_words(state), console.width), ""]
    print_lines(console, plain(head))
    print_lines(console, [(header_line(fitted), "dim")])
    print_lines(console, plain([*row_lines(fitted), "", *sentences]))
    print_lines(console, plain(filter(None, [hidden_note([fitted], "--json")])))


def alternatives_table(rows: Sequence[NextAlternative]) -> Table:
    """A row an alternative; `first` has to be paid before the message."""
    usages = [row.usage.usage for row in rows]
    first = ["" if row.first is None else dollars(row.first.cost) for row in rows]
    columns = [
        Column("way", "next message", [row.name for row in rows], right=False),
        Column("cost", "cost", dollar_column([row.cost for row in rows])),
        Column("first", "one-time cost", first, rank=COMPARISON),
        Column("read", "read", token_column([usage.read for usage in usages]), rank=COUNT),
        Column("written", "written", token_column([usage.write for usage in usages]), rank=COUNT),
        Column("input", "uncached", token_column([usage.input_tokens for usage in usages]), rank=COUNT),
        word_column("note", [row.note for row in rows], COUNT + 1),
    ]
    return Table([column for column in columns if any(column.cells) or column.rank == ANSWER])


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
