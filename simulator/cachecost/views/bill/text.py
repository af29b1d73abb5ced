"""What `cachecost bill` prints for people: of all sessions, or of one session call by call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import PurePath
from textwrap import wrap
from typing import IO, TYPE_CHECKING

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.summary import RESULTS, BillRow, BillSummary, unwritten_cost
from cachecost.analysis.bill.timeline import TimelineCall, fold_timeline
from cachecost.base.formatting import (
    CENTS,
    count_text,
    dollar_column,
    dollars,
    duration,
    percent,
    range_text,
    token_column,
    tokens,
)
from cachecost.base.structs import replace
from cachecost.base.times import zone_name
from cachecost.conversations.input_files import EVENTS
from cachecost.providers.usage import ZERO
from cachecost.views.bill.words import (
    CLASSES,
    LIST_PRICES,
    MOST,
    caching_words,
    cause_lines,
    cause_name,
    causes_table,
    charged_words,
    class_words,
    evidence_words,
    note_cells,
    partial_output_words,
    period,
    row_names,
    rows_table,
    span,
)
from cachecost.views.streams import REPORT_WIDTH, report_console
from cachecost.views.tables.table import (
    COMPARISON,
    COUNT,
    DETAIL,
    GAP,
    INDENT,
    PIPE_WIDTH,
    Column,
    FittedTable,
    Table,
    fit_table,
    hidden_note,
    word_column,
)

if TYPE_CHECKING:
    from rich.console import Console


NARROWEST_PROSE = 36
"""Cells that words beside a row need; with less they stand below it."""
BELOW = 6
"""Blanks before words below a row."""
NO_BREAK = "\xa0"
StyledLine = tuple[str, str]
"""A line, and its style in rich's words."""
AFTER_NUMBER = re.compile(r"(?<=[\d%]) (?=[\w×%])")
"""A number never breaks from what it counts."""


def wrap_line(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """`text` in lines of at most `width` cells; a word that is longer, such as a path, has a line of its own."""
    joined = AFTER_NUMBER.sub(NO_BREAK, text)
    lines = wrap(
        joined,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def wrap_parts(text: str, width: int, hanging: str = "  ") -> list[str]:
    """As `wrap_line`, but only between parts that " · " separates, where each fits into a line."""
    lines = [""]
    for part in text.split(" · "):
        longer = f"{lines[-1]} · {part}" if lines[-1].strip() else lines[-1] + part
        if lines[-1].strip() and len(longer) > width:
            lines.append(hanging + part)
        else:
            lines[-1] = longer
    return [short for line in lines for short in (wrap_line(line, width) if len(line) > width else [line])]


def header_line(fitted: FittedTable) -> str:
    cells = (c.header.rjust(c.width) if c.right else c.header.ljust(c.width) for c in fitted.columns)
    return (" " * INDENT + (" " * GAP).join(cells)).rstrip()


def row_lines(fitted: FittedTable) -> Iterator[str]:
    """The rows of a table, whose columns are aligned."""
    for row in range(len(fitted.names.cells)):
        yield (" " * INDENT + (" " * GAP).join(column.flush(row) for column in fitted.columns)).rstrip()


def prose_width(fitted: FittedTable) -> int:
    """Cells for words beside the rows of a table; 0 where they are too few."""
    room = fitted.room - GAP
    return room if room >= NARROWEST_PROSE else 0


def rows_with_prose(fitted: FittedTable, words: Sequence[str]) -> Iterator[str]:
    """The rows, each with its words beside it, or below it where room lacks."""
    room = prose_width(fitted)
    at = fitted.width - room
    for line, text in zip(row_lines(fitted), words, strict=True):
        if not room:
            yield line
            yield from wrap_line(text, fitted.width, " " * BELOW)
            continue
        first, *rest = wrap_line(text, room) or [""]
        yield f"{line.ljust(at)}{first}".rstrip()
        yield from (" " * at + one for one in rest)


def plain(lines: Iterable[str]) -> Iterator[StyledLine]:
    return ((line, "") for line in lines)


def print_lines(console: Console, lines: Iterable[StyledLine]) -> None:
    for line, style in lines:
        console.print(line, style=style, soft_wrap=True, highlight=False)


ROWS_SHOWN = 10
LEAST_NAME_CELLS, MOST_NAME_CELLS = 16, 32
BY_WHAT = "--by session|project|branch|pr|day|model|version|agent|server|skill|tool"
OF_RESULTS = (
    "Results cost as long as they are in the prompt: when they are first sent, and when later calls read or rewrite "
    "them. Their tokens are estimates: their share, by length, of what each call added by its bill."
)
EXAMPLES = "the most expensive of each cause"


def print_bill(
    summary: BillSummary, rewrites: Sequence[BilledRewrite], hints: Sequence[str], stream: IO[str], most: int | None
) -> None:
    """Print to `stream`; `hints` stand below the tables."""
    console = report_console(stream, PIPE_WIDTH)
    print_lines(console, bill_lines(summary, rewrites, hints, console.width, most))


def bill_lines(
    summary: BillSummary, rewrites: Sequence[BilledRewrite], hints: Sequence[str], width: int, most: int | None
) -> Iterator[StyledLine]:
    """The lines of a bill in a terminal of `width` cells."""
    yield from plain(wrap_parts(headline(summary), width))
    if not summary.rows:
        return
    if split := class_words(summary.total, "it"):
        yield from plain(wrap_parts(f"  {split}", width, "    "))
    causes = fit_causes(causes_table(summary, rewrites), width) if rewrites else None
    if causes:
        yield from plain(["", *wrap_line(f"{_rewritten_words(summary.total)}:", width, "  ")])
        yield header_line(causes), "dim"
        notes = note_cells(cause_lines(summary), rewrites if prose_width(causes) else [])
        yield from plain(rows_with_prose(causes, notes))
    for line in accounted(summary):
        yield from plain(wrap_line(line, width, "  ", "    "))
    names = min(MOST_NAME_CELLS, max(LEAST_NAME_CELLS, width // 5))
    rows = fit_rows(rows_table(summary, rewrites, most, names), width)
    yield "", ""
    yield header_line(rows), "dim"
    lines, shown = list(row_lines(rows)), len(summary.rows[:most])
    yield from plain(lines[:shown])
    if more := len(summary.rows) - shown:
        yield f"  … {count_text(more, f'more {summary.by}')}: --by {summary.by} shows all", ""
    yield from ((total, "bold") for total in lines[shown:])
    yield "", ""
    for line in filter(None, (OF_RESULTS if summary.by in RESULTS else "", *hints)):
        indent = " " * (len(line) - len(line.lstrip()))
        yield from plain(wrap_line(line.strip(), width, indent, f"{indent}  " if indent else ""))
    hidden = hidden_note([rows, *([causes] if causes else [])], "--csv F")
    options = [BY_WHAT, "--html bill.html"]
    if summary.by == "session":
        options.insert(1, f"--session {row_names(summary)[0]} for its calls")
    for line in filter(None, (hidden, " · ".join(options))):
        yield from plain(wrap_parts(line, width))


def fit_rows(table: Table, width: int) -> FittedTable:
    """The rows; tokens of all classes or of none, as one class alone looks like the whole."""
    rows = fit_table(table, width)
    if not any(column.key in CLASSES for column in rows.hidden):
        return rows
    columns = [column for column in table.columns if column.key not in CLASSES]
    rows = fit_table(replace(table, columns=columns), width)
    if rows.room < 0 or rows.hidden:  # the lengths of pauses go before anything else is hidden for them
        shorter = [cell.partition(" (")[0] for column in columns if column.key == MOST for cell in column.cells]
        columns = [replace(one, cells=shorter) if one.key == MOST else one for one in columns]
        rows = fit_table(replace(table, columns=columns), width)
    shown = {column.key for column in rows.columns}
    return replace(rows, hidden=[one for one in table.columns if one.key not in shown and one.rank != DETAIL])


def fit_causes(table: Table, width: int) -> FittedTable:
    """The causes without their notes, which wrap beside them; notes that have no room count as hidden."""
    *columns, notes = table.columns
    fitted = fit_table(replace(table, columns=columns), width)
    if prose_width(fitted) or not any(notes.cells):
        return fitted
    return replace(fitted, hidden=[*fitted.hidden, replace(notes, header=EXAMPLES, cells=[" " * NARROWEST_PROSE])])


def headline(summary: BillSummary) -> str:
    """The answer: what it cost, where it comes from, and what caching did."""
    calls = f"{count_text(summary.sessions, 'session')}, {count_text(summary.total.calls, 'call')}"
    return _answer(summary.total, calls, period(summary.total, summary.zone))


def _answer(total: BillRow, calls: str, times: str) -> str:
    saved = caching_words(total.saved_by_caching) if total.saved_by_caching else ""
    cost = f"{dollars(total.cost)} in {calls}{f', {times}' if times else ''}"
    return " · ".join(filter(None, [cost, f"cache hit rate {percent(total.hit_rate)}", saved]))


def _rewritten_words(total: BillRow) -> str:
    share = f" ({percent(total.rewritten / total.cost)})" if total.cost else ""
    return f"{dollars(total.rewritten)}{share} was spent re-caching content that was already cached"


def accounted(summary: BillSummary) -> Iterator[str]:
    """The identity, and what is not in the dollars."""
    total = summary.total
    if total.rewritten:
        necessary, rewritten, cost = dollar_column([total.necessary, total.rewritten, total.cost])
        yield f"{necessary} necessary + {rewritten} rewritten = {cost}"
    if summary.warm_calls:
        yield f"{count_text(summary.warm_calls, 'session')} began on a cache that was still warm."
    if charged := charged_words(total):
        yield charged
    if partial := partial_output_words(total, summary.estimates_output):
        yield partial
    if summary.copies:
        yield f"{count_text(summary.copies, 'repeated call')} of resumed or copied sessions counted once."
    unwritten = unwritten_cost(summary.unwritten)
    if unwritten:
        yield f"{dollars(unwritten)} more for calls in no transcript (compactions, titles), by the client's own sums."
    for reason, calls in sorted(summary.unpriced.items()):
        size = tokens(summary.unpriced_tokens[reason])
        yield f"{count_text(calls, 'call')} of {size} tokens not in the dollars: {reason}"


def list_price_note(total: BillRow) -> str:
    """Whose prices these are; empty where the answers themselves say what all calls were charged."""
    return LIST_PRICES if total.cost and total.charged_calls < total.calls else ""


MAIN = "main"
SHOWN_IDLE_S = 60.0
FILES_NAMED = 3
FOLDED = "Rows of several calls: each read all that was cached. --all-calls shows them one by one."


def print_session(
    summary: BillSummary,
    calls: Sequence[TimelineCall],
    first_words: Mapping[int, str],
    hints: Sequence[str],
    stream: IO[str],
    is_folded: bool,
) -> None:
    """Print to `stream`; `first_words` begin the person's message before a call, by its number in the session."""
    console = report_console(stream, REPORT_WIDTH)
    width, groups = console.width, list(fold_timeline(calls)) if is_folded else [[one] for one in calls]
    fitted = fit_table(calls_table(groups, summary.zone), width, 0)
    lines = [*plain(wrap_parts(session_headline(summary), width))]
    facts = [f"{name}: {value}" for name, value in named_facts(calls)]
    causes = ", ".join(
        f"{cause_name(one.cause)} {dollars(one.cost, CENTS)} ({one.times:,} ×)" for one in summary.total.ranked_causes
    )
    rewritten = f"{_rewritten_words(summary.total)}: {causes}." if causes else ""
    for line in filter(None, [*facts, class_words(summary.total), rewritten, *accounted(summary)]):
        lines += plain(wrap_line(line, width, "  ", "    "))
    lines.append(("", ""))
    lines.append((header_line(fitted), "dim"))
    indent, day = " " * (INDENT + fitted.names.width + GAP), ""
    model = groups[0][0].call.model if groups else ""
    for group, row in zip(groups, row_lines(fitted), strict=True):
        first = group[0]
        start = None if first.call.start is None else datetime.fromtimestamp(first.call.start, summary.zone)
        new_day = f"{start.day} {start:%B %Y} ({zone_name(summary.zone)})" if start else ""
        if new_day != day:
            day = new_day
            lines.append((indent + day, "dim"))
        if len(group) == 1:
            lines += plain(wrap_line(what_came_before(first, first_words, model), fitted.width, indent))
        lines.append((row, "bold" if first.rewrite else ""))
        if first.rewrite:
            lines += plain(wrap_line(rewrite_words(first.rewrite), fitted.width, indent))
    folded = FOLDED if len(groups) < len(calls) else ""
    for line in filter(None, (folded, hidden_note([fitted], "--json"), *hints)):
        lines += plain(wrap_line(line, width))
    print_lines(console, lines)


def session_headline(summary: BillSummary) -> str:
    """What the session cost, when it was, and what caching did."""
    return _answer(summary.total, count_text(summary.total.calls, "call"), span(summary.total, summary.zone))


def named_facts(calls: Sequence[TimelineCall]) -> Iterator[tuple[str, str]]:
    """The session's id, title, project, branch, files, client and models: (name, value)."""
    files = list(dict.fromkeys(one.file.path for one in calls))
    rest = len(files) - FILES_NAMED
    versions = list(dict.fromkeys(one.call.version for one in calls if one.call.version))
    client = ", ".join(dict.fromkeys(one.file.client for one in calls))
    agents = max((one.agent_number for one in calls), default=0)
    for name, value in (
        ("session", ", ".join(dict.fromkeys(one.call.session for one in calls if one.call.session))),
        ("title", next((one.file.title for one in calls if one.file.title), "")),
        ("project", ", ".join(dict.fromkeys(one.file.project for one in calls if one.file.project))),
        ("branch", ", ".join(filter(None, dict.fromkeys(one.file.branch(one.call) for one in calls)))),
        ("file", ", ".join(files[:FILES_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")),
        ("client", " ".join(filter(None, (client, ", ".join(versions))))),
        ("model", ", ".join(dict.fromkeys(one.call.model for one in calls))),
        ("sub-agents", f"{agents:,}" if agents else ""),
    ):
        if value:
            yield name, value


def calls_table(groups: Sequence[Sequence[TimelineCall]], zone: tzinfo = UTC) -> Table:
    """A row a call, or a run of calls in which nothing happened."""
    usages = [[one.call.tokens for one in group] for group in groups]
    numbers = [range_text(f"{group[0].number:,}", f"{group[-1].number:,}") for group in groups]
    starts = [group[0].call.start for group in groups]
    times = ["" if start is None else f"{datetime.fromtimestamp(start, zone):%H:%M:%S}" for start in starts]
    threads = [list(dict.fromkeys(map(agent_name, group))) for group in groups]
    agents = [names[0] if len(names) == 1 else f"{len(names)} agents" for names in threads]
    idle = [max((one.idle_s or 0.0 for one in group), default=0.0) for group in groups]
    known = [[one.cost for one in group if one.cost is not None] for group in groups]
    again = [sum(one.rewrite.tokens for one in group if one.rewrite) for group in groups]
    again_cost = dollar_column([sum((one.dollars.rewritten for one in group), ZERO) for group in groups])
    columns = [
        Column("number", "call", numbers),
        Column("time", "time", times, rank=COMPARISON),
        word_column("agent", agents, COUNT),
        Column("idle", "idle", [duration(one) if one >= SHOWN_IDLE_S else "" for one in idle], rank=COMPARISON),
        Column("read", "read", token_column([sum(one[1] for one in group) for group in usages])),
        Column("written", "written", token_column([sum(one[2] + one[3] for one in group) for group in usages])),
        Column("uncached", "uncached", token_column([sum(one[0] for one in group) for group in usages]), rank=COUNT),
        Column("cost", "cost", dollar_column([sum(costs, ZERO) if costs else None for costs in known])),
        Column(
            "rewritten", "rewritten", [cost if count else "" for cost, count in zip(again_cost, again, strict=True)]
        ),
    ]
    has_agents = any(one.agent_number for group in groups for one in group)
    return Table([one for one in columns if one.key != "agent" or has_agents], "The session call by call")


def agent_name(one: TimelineCall) -> str:
    """The thread of a call: "main", or the type of the sub-agent and its number in the session."""
    return f"{one.call.agent_type or 'agent'} {one.agent_number}" if one.agent_number else MAIN


def is_human(one: TimelineCall) -> bool:
    """Whether a person's message came before the call."""
    return "human" in one.call.events and not one.agent_number


def what_came_before(one: TimelineCall, first_words: Mapping[int, str], model: str = "") -> str:
    """What happened between a call and the one that it continues, in words; `model` is that of the session's start."""
    call, rewrite = one.call, one.rewrite
    words = []
    if one.before is None:
        begins = f"{agent_name(one)} begins" if one.agent_number else ""
        other = f" with {call.model}" if begins and call.model != model else ""
        cached = f"{tokens(call.read)} tokens were cached before it" if one.cause == "warm_start" else ""
        words.append(", ".join(filter(None, (begins + other, cached))))
    for event in call.events:
        if one.before is None and (one.agent_number or event not in ("human", "clear", "resume")):
            continue  # nothing was there that could have changed, and what a sub-agent was asked is no person's message
        if event == "command" and one.number in first_words:
            continue  # the words are the command
        text = EVENTS.get(event, event)
        if event == "human" and one.number in first_words:
            text = f"“{first_words[one.number]}”"
        elif event == "model" and one.before is not None:
            text = f"model changed from {one.before.model} to {call.model}"
        elif event == "client" and one.before is not None:
            text = f"the client was upgraded from {one.before.version} to {call.version}"
        if rewrite is None or text not in rewrite.words:
            words.append(text)
    return "; ".join(filter(None, words))


def rewrite_words(rewrite: BilledRewrite) -> str:
    """What a call wrote again, why, and where it is recorded."""
    cost = "" if rewrite.cost is None else f", {dollars(rewrite.cost, CENTS)}"
    place = f"{PurePath(rewrite.file.path).name}:{rewrite.call.line}"
    return f"rewritten: {tokens(rewrite.tokens)} tokens{cost}: {evidence_words(rewrite)} ({place})"
