"""The bill of a simulated API: what its calls cost, what caching saved, and which loops are uncached.

In an uncached loop each call pays again for what the call before it sent. The bill is shown in a terminal (the verdict,
the cost by token class and by group, then the loops) and as JSON at `/cachecost.json`.

The page of the calls is for people, below an address that holds a token; the API stays where clients find it.
`/cachecost` leads a browser there that was sent by a person, not by another site, and under no name that another site
controls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import attrgetter
from typing import IO, Any, TypeVar

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from cachecost.analysis.comparison.summary import CLASS_FIELDS, CLASS_NAMES
from cachecost.base.formatting import (
    change,
    change_text,
    count_text,
    dollars,
    exact,
    margin_text,
    percent,
    point_aligned,
    tokens,
)
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import count_margin
from cachecost.ledger.rows import REFUSED, Cost
from cachecost.ledger.unread import UnreadWrites
from cachecost.live.loopback import HEADERS, names_loopback
from cachecost.live.server.state import Meter, MeteredCall
from cachecost.live.viewer.source import conversation_title
from cachecost.prompts.blocks import Layer
from cachecost.prompts.request import block_at, sent_breakpoints
from cachecost.providers.usage import TOKEN_CLASSES, ZERO, Usage
from cachecost.views.streams import REPORT_WIDTH, Colours, render_text, stream_look, write_report
from cachecost.views.tables.table import (
    COMPARISON,
    COUNT,
    GAP,
    INDENT,
    LOWER_BOUND,
    ZERO_CLASS,
    Column,
    FittedTable,
    Table,
    fit_table,
    hidden_note,
    render_table,
    shorten_end,
)

MOST, FEWEST = Decimal("0.5"), 2
"""A loop is uncached if more than this share is paid again, in at least so many later calls."""


@dataclass(frozen=True, slots=True)
class UncachedLoop:
    """Later calls of a conversation that paid the full price again for most of what had been sent before.

    `again` is how many tokens, of `had_been_sent`; `cost` is their cost at the input price, in dollars, and `avoidable`
    what of that `explain` says that breakpoints would have saved; `why` says which breakpoints were set.
    """

    conversation: str
    steps: int
    again: int
    had_been_sent: int
    cost: Decimal
    avoidable: Decimal
    why: str

    @property
    def sentence(self) -> str:
        share = percent(Decimal(self.again) / self.had_been_sent)
        paid = f"paid the full price again for {tokens(self.again)} tokens, {share} of what had been sent before"
        part = f"of which {dollars(self.avoidable)} is avoidable" if self.avoidable else "none of it avoidable"
        usd = f"{dollars(self.cost)}, {part}"
        return f"{self.conversation}: {self.why}. {count_text(self.steps, 'later call')} {paid}: {usd}."


def find_uncached_loop(conversation: str, calls: Sequence[MeteredCall], meter: Meter) -> UncachedLoop | None:
    later: list[MeteredCall] = []
    again = before = grown = again_of_grown = 0
    cost = Decimal(0)
    for call in calls:
        if call.before is None or call.row.error is not None:
            continue
        continued = meter.taken[call.before - 1]
        if continued.request.thread is call.request.thread:  # the same call again is a retry
            continue
        sent_before = continued.row.usage.total_input
        new = max(0, call.row.usage.total_input - sent_before)
        paid_again = max(0, call.row.usage.input_tokens - new)
        if paid_again < call.step:  # what a hit leaves after its last step
            paid_again = 0
        since_first = max(0, sent_before - calls[0].row.usage.total_input)
        later.append(call)
        again, before, grown = again + paid_again, before + sent_before, grown + since_first
        again_of_grown += min(paid_again, since_first)
        cost += paid_again * call.input_price
    if len(later) < FEWEST or not (again > MOST * before or (grown and again_of_grown > MOST * grown)):
        return None
    avoidable = meter.avoidable()
    saved = sum((avoidable.get(call.row.call, Decimal(0)) for call in calls), Decimal(0))
    why = Counter(map(_uncached_reason, later)).most_common(1)[0][0]
    return UncachedLoop(conversation, len(later), again, before, cost.scaleb(-6), saved, why)


def _uncached_reason(call: MeteredCall) -> str:
    request, breakpoints = call.request, sent_breakpoints(call.request).breakpoints
    not_read = f"the cache was not read: {(call.row.cause or '').replace('_', ' ')}"
    if not breakpoints and call.needs_breakpoints:
        return "no breakpoint is set (no cache_control in its calls)"
    if call.row.usage.total_input < call.minimum:
        return f"its prompts are below the minimum of {call.minimum:,} tokens that this model caches"
    if not breakpoints:
        return not_read
    last = max(breakpoints, key=attrgetter("prompt_order"))
    length, block = last.node.length if last.node else 0, block_at(request, last)
    if last.layer is not Layer.MESSAGES:
        place = "a tool's definition" if last.layer is Layer.TOOLS else "the system prompt"
    elif block.kind != "text":
        place = f"a {block.kind}"
    else:
        place = f"{'the first' if length == 1 else 'a later'} {block.role} text"
    message = request.thread.message
    answers_tools = message is not None and any(block.kind == "tool_result" for block in message.blocks)
    if answers_tools and not any(block_at(request, one).kind == "tool_result" for one in breakpoints):
        return f"no breakpoint on tool results; the last breakpoint is on {place}"
    if request.thread.length > length:
        return f"the last breakpoint is on {place}, with messages after it"
    return f"the last block has a breakpoint, but {not_read}"


Key = TypeVar("Key")
NO_KEY = "(no key)"
NO_TEXT = "(no text)"
NOT_BILLED = "{} refused with status 400 and not billed"


@dataclass(frozen=True, slots=True)
class BillShare:
    """Usage and cost of some of the calls. `uncached` is their cost without caching, in dollars."""

    name: str
    calls: int
    refused: int
    usage: Usage
    cost: Cost
    uncached: Decimal
    unread: UnreadWrites

    @property
    def cache_hit_rate(self) -> Decimal | None:
        """The cache hit rate: tokens read ÷ input tokens; None without input."""
        total = self.usage.total_input
        return Decimal(self.usage.read) / total if total else None

    @property
    def saved_usd(self) -> Decimal:
        """Dollars that caching saved; negative if it cost more than it saved."""
        return self.uncached - self.cost.total


@dataclass(frozen=True, slots=True)
class ServerBill:
    """All calls, then by workspace, conversation and model, and the uncached loops.

    `token_source` says how tokens were counted, `error_margin` is relative (0.03 is ±3%).
    """

    total: BillShare
    workspaces: tuple[BillShare, ...]
    conversations: tuple[BillShare, ...]
    models: tuple[BillShare, ...]
    loops: tuple[UncachedLoop, ...]
    errors: tuple[tuple[str, int], ...]
    token_source: str
    error_margin: float
    notes: tuple[str, ...]


def bill_of(meter: Meter) -> ServerBill:
    taken = meter.taken
    conversations = _groups(taken, lambda one: (one.workspace, one.first))
    several = len({one.workspace for one in taken}) > 1
    named = []
    for (workspace, first), calls in conversations:
        name = conversation_title(first) or NO_TEXT
        named.append((f"{workspace or NO_KEY}: {name}" if several else name, calls))
    loops = (find_uncached_loop(name, calls, meter) for name, calls in named)
    count = meter.not_messages
    return ServerBill(
        _share("all", taken, meter),
        tuple(_share(key or NO_KEY, calls, meter) for key, calls in _groups(taken, lambda one: one.workspace)),
        tuple(_share(name, calls, meter) for name, calls in named),
        tuple(_share(key, calls, meter) for key, calls in _groups(taken, lambda one: one.row.model)),
        tuple(loop for loop in loops if loop is not None),
        tuple(Counter(one.row.error for one in taken if one.row.error is not None).most_common()),
        meter.token_source,
        count_margin([one.row for one in taken], meter.error_margin),
        (*([NOT_BILLED.format(count_text(count, "invalid request"))] if count else []), *meter.notes()),
    )


def _groups(taken: Iterable[MeteredCall], key: Callable[[MeteredCall], Key]) -> list[tuple[Key, list[MeteredCall]]]:
    """The calls by key, in the order of their first call."""
    found: dict[Key, list[MeteredCall]] = {}
    for one in taken:
        found.setdefault(key(one), []).append(one)
    return list(found.items())


def _share(name: str, calls: Sequence[MeteredCall], meter: Meter) -> BillShare:
    rows = [one.row for one in calls]
    return BillShare(
        name,
        len(rows),
        sum(row.error is not None for row in rows),
        sum((row.usage for row in rows), Usage()),
        sum((row.cost for row in rows), Cost()),
        sum((one.uncached for one in calls), ZERO),
        meter.unread.of_all(row.call for row in rows),
    )


FORMAT = 1
COLUMNS = {
    "calls": "calls",
    "input": "input",
    **{f"{name}_tokens": CLASS_NAMES[name] for name in TOKEN_CLASSES},
    "cache_hit_rate": "hit rate",
    "unread": "never read",
    "uncached": "without caching",
    "cost": "cost",
}
"""Columns of a table of shares, by key, in their order."""


def verdict(bill: ServerBill) -> str:
    """One sentence: what the calls cost, and what they would have cost without caching."""
    total = bill.total
    if not total.calls:
        return "No calls yet."
    cost = f"{dollars(total.cost.total)} for {count_text(total.calls, 'call')}"
    if not total.uncached:
        return f"{cost}."
    difference = change(total.cost.total, total.uncached)
    words = f"{change_text(difference)} {'than' if difference else 'as'} without caching"
    return f"{cost}, {words} ({dollars(total.uncached)})."


def facts(bill: ServerBill) -> list[str]:
    total, unread = bill.total, bill.total.unread
    sentences = []
    if total.cache_hit_rate is not None:
        rate, count = percent(total.cache_hit_rate), tokens(total.usage.total_input)
        sentences.append(f"{rate} of {count} input tokens were read from the cache.")
    if unread.tokens:
        lost = f"{dollars(unread.paid)}, {dollars(unread.extra)} more than without caching"
        sentences.append(f"Written but not read so far: {tokens(unread.tokens)} tokens ({lost}).")
    sentences += [f"{count_text(count, 'call')} refused at no charge: {words}" for words, count in bill.errors]
    return [*sentences, *(f"{note}." for note in bill.notes)]


def bill_json(bill: ServerBill) -> dict[str, Any]:
    """The bill as JSON; dollars are decimal strings of all digits."""
    return {
        "format": FORMAT,
        "verdict": verdict(bill),
        "facts": facts(bill),
        "total": _share_json(bill.total),
        **{name: list(map(_share_json, getattr(bill, name))) for name in ("workspaces", "models", "conversations")},
        "uncached_loops": [
            {
                "conversation": loop.conversation,
                "later_calls": loop.steps,
                "tokens_again": loop.again,
                "tokens_sent_before": loop.had_been_sent,
                "cost_usd": exact(loop.cost),
                "avoidable_usd": exact(loop.avoidable),
                "why": loop.why,
            }
            for loop in bill.loops
        ],
        "refused": [{"message": words, "calls": count} for words, count in bill.errors],
        "tokens": {"source": bill.token_source, "error_margin": bill.error_margin},
        "notes": list(bill.notes),
    }


def _share_json(share: BillShare) -> dict[str, Any]:
    return {
        "name": share.name,
        "calls": share.calls,
        "refused": share.refused,
        "usage": share.usage.wire(),
        "cache_hit_rate": None if share.cache_hit_rate is None else float(share.cache_hit_rate),
        "cost_usd": exact(share.cost.total),
        "cost_by_class_usd": {name: exact(amount) for name, amount in share.cost.by_class().items()},
        "without_caching_usd": exact(share.uncached),
        "saved_usd": exact(share.saved_usd),
        "never_read": {
            "tokens": share.unread.tokens,
            "cost_usd": exact(share.unread.paid),
            "extra_usd": exact(share.unread.extra),
        },
    }


RANKS = {"cache_hit_rate": COMPARISON, "uncached": LOWER_BOUND, "unread": COUNT, "input": ZERO_CLASS}
"""Columns that may be hidden for lack of width. A token class may be only if it is zero everywhere."""


def print_bill(meter: Meter, stream: IO[str]) -> None:
    """Print the bill, as wide as the terminal or 120 cells into a pipe, with colors as it and NO_COLOR allow."""
    write_report(bill_text(bill_of(meter), *stream_look(stream)), stream)


def bill_text(bill: ServerBill, width: int = REPORT_WIDTH, colours: Colours | None = None) -> str:
    """The whole bill, no line wider than `width` cells."""
    return render_text(_parts(bill, width), width, colours)


def _parts(bill: ServerBill, width: int) -> Iterator[RenderableType]:
    yield Text(verdict(bill), "bold")
    if not bill.total.calls:
        return
    for fact in facts(bill):
        yield _indent(Text(fact))
    yield Text()
    used, costs = bill.total.usage, bill.total.cost.by_class()
    classes = [name for name in TOKEN_CLASSES if name != "write_1h" or used.write_1h]
    counts = [tokens(getattr(used, CLASS_FIELDS[name])) for name in classes]
    class_costs = point_aligned([dollars(costs[name]) for name in classes])
    numbers = [Column("count", "", counts), Column("cost", "cost", class_costs)]
    names = Column("name", "tokens", [CLASS_NAMES[name] for name in classes], False)
    yield render_table(FittedTable(names, numbers, [], width, 0))
    groups = (("workspace", bill.workspaces), ("model", bill.models), ("conversation", bill.conversations))
    for header, shares in groups:
        if len(shares) > 1 or header == "conversation":
            yield Text()
            yield from _table(header, shares, width)
    if bill.loops:
        yield Text()
        yield Text(f"{count_text(len(bill.loops), 'conversation')} left uncached", "bold red")
    for loop in bill.loops:
        yield _indent(Text(loop.sentence))
    if bill.token_source:
        yield Text()
        counted = ", ".join(filter(None, (bill.token_source, margin_text(bill.error_margin))))
        yield _indent(Text(f"tokens   {counted}", "dim"))


def _table(header: str, shares: Sequence[BillShare], width: int) -> Iterator[RenderableType]:
    shown = sorted(shares, key=lambda share: -share.cost.total)[:20]
    kept = [Column("name", header, [share.name for share in shown], False)]
    rows = [
        {
            "calls": f"{share.calls:,}",
            "input": tokens(share.usage.total_input),
            "cache_hit_rate": percent(share.cache_hit_rate),
            **{f"{name}_tokens": tokens(getattr(share.usage, CLASS_FIELDS[name])) for name in TOKEN_CLASSES},
            "cost": dollars(share.cost.total),
            "uncached": dollars(share.uncached),
            "unread": tokens(share.unread.tokens),
        }
        for share in shown
    ]
    for key, header_text in COLUMNS.items():
        column = Column(key, header_text, point_aligned([row[key] for row in rows]))
        is_zero = column.key.endswith("_tokens") and set(column.cells) == {"0"}
        if not is_zero or column.key != "write_1h_tokens":
            rank = ZERO_CLASS if is_zero else RANKS.get(column.key, column.rank)
            kept.append(replace(column, rank=rank))
    fitted = fit_table(Table(kept), width, 18)  # the narrowest name
    room = max(width - INDENT - sum(GAP + column.width for column in fitted.shown), len(header))
    names = [shorten_end(share.name, room) for share in shown]  # the beginning identifies a conversation
    yield render_table(replace(fitted, names=Column("name", header, names, False)))
    if note := hidden_note([replace(fitted, missing=0)], "the page at /cachecost"):
        yield _indent(Text(note, "dim"))
    if len(shares) > len(shown):
        yield _indent(Text(f"and {count_text(len(shares) - len(shown), header)} more", "dim"))


def _indent(text: RenderableType) -> RenderableType:
    return Padding(text, (0, 0, 0, INDENT))


NAME = "cachecost serve"


@dataclass(frozen=True, slots=True)
class MeterFeed:
    """The calls of a meter, each with its simulated usage as its bill."""

    meter: Meter

    def since(self, count: int) -> Sequence[Call]:
        recorded = []
        for one in self.meter.taken[count:]:
            status = 400 if one.row.error_type == REFUSED else 404
            known = {"billed": one.row.usage} if one.row.error is None else {"status": status}
            recorded.append(replace(one.call, **known, is_simulated=False))
        return recorded


PAGE, JSON = "/cachecost", "/cachecost.json"
BELOW = f"{PAGE}/"
BILL_FROM_PAGE = "../../cachecost.json"
"""The bill's address from the page."""


def routes(meter: Meter, token: str, port: int) -> list[Route]:

    async def figures(request: Request) -> Response:
        return JSONResponse(bill_json(bill_of(meter)), headers={"cache-control": "no-store"})

    async def page(request: Request) -> Response:
        if not names_loopback(request.scope, port):
            return Response(status_code=421, headers=HEADERS)
        # values of Sec-Fetch-Site of requests that a person began, or that no browser sent
        if request.headers.get("sec-fetch-site") not in (None, "none", "same-origin"):
            return Response(status_code=403, headers=HEADERS)
        return RedirectResponse(f"{BELOW}{token}/", headers=HEADERS)

    return [Route(PAGE, page), Route(JSON, figures)]


@dataclass(frozen=True, slots=True)
class PageBesideApi:
    """Requests below `/cachecost/` go to the page, all others to the API."""

    api: ASGIApp
    page: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and scope["path"].startswith(BELOW)
        await (self.page if is_page else self.api)(scope, receive, send)
