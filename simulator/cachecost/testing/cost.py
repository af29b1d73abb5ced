"""`cache_cost`: takes the calls of a test, and reports and asserts what they would cost.

Clients reach the simulated API by a transport (httpx2 or httpx, answered in this process, without a socket or a web
framework), by an SDK client or by a base URL. Its clock steps, and can be moved on. A failed assertion says what
failed, by how much, which call, which block and from which character on, and the fix.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from cachecost.analysis.lint.volatile import excerpt
from cachecost.base.extras import require
from cachecost.base.formatting import count_text, dollars, exact_dollars, percent
from cachecost.base.times import midnight
from cachecost.ledger.findings import Explanation
from cachecost.ledger.rows import CallRow
from cachecost.live.clock import SteppingClock, clock_from
from cachecost.live.request_log import CallLog
from cachecost.live.server.answering import answer_call, count_tokens
from cachecost.live.server.answers import answerer_from
from cachecost.live.server.model import Answerer, ApiError, error_body, models_of, not_found
from cachecost.live.server.served_api import EVENTS, PLACEHOLDER, encode_json, receive_call
from cachecost.live.server.served_api import MESSAGES as API
from cachecost.live.server.state import Meter, MeteredCall, ServerState
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.compare import first_changed_block, first_changed_text
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook, data_date
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.tokenizers import require_ctok
from cachecost.views.explain.text import group_findings

if TYPE_CHECKING:
    from cachecost.analysis.lint import LintFinding


class MovableClock(SteppingClock):
    """Goes on by `step_s` a call; `skip` lets a pause pass at once."""

    def skip(self, seconds: float) -> None:
        """The next call comes so many seconds later."""
        self._next += seconds


MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"


LIBRARIES = ("httpx2", "httpx")
Made = TypeVar("Made")


def at_once(coroutine: Coroutine[Any, Any, Made]) -> Made:
    """The result of a coroutine that waits for nothing, within an event loop or without one."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        made: Made = stop.value
        return made
    coroutine.close()
    raise RuntimeError("the coroutine waits for something")


def respond(served: ServerState, request: Any, body: bytes) -> Any:
    """The API's answer to a request of httpx2 or httpx, as that library has it. A failure is raised as it is: it is the
    test that wants to see it.
    """
    method, path = request.method, request.url.path
    message: Mapping[str, Any] | ApiError = not_found("Not Found")
    answered = None

    async def chunks() -> AsyncIterator[bytes]:
        yield body

    if method == "POST" and path in (MESSAGES, COUNT):
        came = at_once(receive_call(API, {name.lower(): value for name, value in request.headers.items()}, chunks()))
        if isinstance(came, ApiError):
            message = came
        elif path == COUNT:
            message = count_tokens(served, came)
        else:
            answered = answer_call(served, API, came)
            message = answered.message
    name = answered.request_id if answered else "req_" + served.ids.next(method.encode(), path.encode())
    status, kind, more = 200, "application/json", dict[str, str]()
    if isinstance(message, ApiError):
        status, more, content = message.status, dict(message.headers), encode_json(error_body(message, name))
    elif answered and answered.streams:
        kind, content = EVENTS, b"".join(API.events(answered))
    else:
        content = encode_json(message)
    headers = {"content-type": kind, "content-length": str(len(content)), "request-id": name, **more}
    families = (made.__module__.partition(".")[0] for made in type(request).__mro__)
    library = importlib.import_module(next((name for name in families if name in LIBRARIES), LIBRARIES[0]))
    return library.Response(status, headers=headers, content=content, request=request)


class Transport:
    """`httpx2.Client(transport=…)`, `httpx.Client(transport=…)`. Nothing is open in it."""

    def __init__(self, served: ServerState) -> None:
        self._served = served

    def handle_request(self, request: Any) -> Any:
        """Called by the client with its library's request; answers with its library's response."""
        return respond(self._served, request, request.read())

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...


class AsyncTransport:
    """`httpx2.AsyncClient(transport=…)`, `httpx.AsyncClient(transport=…)`. Nothing is open in it."""

    def __init__(self, served: ServerState) -> None:
        self._served = served

    async def handle_async_request(self, request: Any) -> Any:
        """Called by the client with its library's request; answers with its library's response."""
        return respond(self._served, request, await request.aread())

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None: ...


LAYERS: Sequence[str] = tuple(str(layer) for layer in Layer)


@dataclass(frozen=True, slots=True)
class LayerChange:
    """The first difference of a layer between call `since` and call `call`, where on the wire it is, and what it is.

    `offset` counts characters from 0 in the text at `path`, `was` and `now` are the text around it; None and "" where
    no text can be shown.
    """

    call: int
    since: int
    layer: str
    path: str
    what: str
    offset: int | None = None
    was: str = ""
    now: str = ""


def changes(taken: Sequence[MeteredCall], layers: Sequence[str], across: bool) -> tuple[int, list[LayerChange]]:
    """(how many calls were compared with another, the first difference of each layer of each).

    `across` compares tools and system with the call before, whichever conversation it is of.
    """
    compared, found = 0, []
    latest: dict[object, MeteredCall] = {}
    for new in (one for one in taken if one.row.error is None):
        conversation = None if across else (new.workspace, new.row.model, new.first)
        if (old := latest.get(conversation)) is not None:
            compared += 1
            for layer in layers:
                numbers = new.row.call, old.row.call
                if layer == Layer.MESSAGES:
                    change = _message_change(old, new)
                else:
                    before, after = ((one.request.tools, one.request.system) for one in (old, new))
                    place = 0 if layer == Layer.TOOLS else 1
                    change = _block_change(before[place].blocks, after[place].blocks, layer, layer, numbers)
                found += [change] if change else []
        latest[conversation] = new
    return compared, found


def _message_change(old: MeteredCall, new: MeteredCall) -> LayerChange | None:
    """The first message that is not as it was; a call of another conversation has nothing to be compared with."""
    before, after = old.request.thread.messages(), new.request.thread.messages()
    numbers = new.row.call, old.row.call
    for number, node in enumerate(before):
        path = f"messages.{number}"
        if number == len(after):
            return LayerChange(*numbers, "messages", path, f"{len(before)} messages became {len(after)}")
        if node.digest != after[number].digest:
            blocks = node.blocks, after[number].blocks
            found = _block_change(*blocks, f"{path}.content", "messages", numbers, may_grow=True)
            return found or LayerChange(*numbers, "messages", path, "changed")
    return None


def _block_change(
    before: Sequence[Block],
    after: Sequence[Block],
    path: str,
    layer: str,
    numbers: tuple[int, int],
    may_grow: bool = False,
) -> LayerChange | None:
    at = first_changed_block(before, after)
    path = f"{path}.{at}"
    if at == min(len(before), len(after)):
        if len(before) == len(after) or (may_grow and len(before) < len(after)):
            return None
        counts = f"{count_text(len(before), 'block')} became {count_text(len(after), 'block')}"
        return LayerChange(*numbers, layer, path, counts)
    names = [str((block.content or {}).get("name") or "") for block in (before[at], after[at])]
    if found := first_changed_text(before[at], after[at]):
        place = path if found.path == "text" else f"{path}.{found.path}"
        place = f"{place} ({names[1]})" if names[1] and found.path != "name" else place
        shown = 12
        was, now = (
            excerpt(text, min(len(text), found.at + shown), shown).replace("▮", "") for text in (found.was, found.now)
        )
        return LayerChange(*numbers, layer, place, f"changed at character {found.at}", found.at, was, now)
    swapped = names[0] != names[1] and all(names)
    what = f"{names[0]} became {names[1]}" if swapped else "is not as it was (other keys, or another order of keys)"
    return LayerChange(*numbers, layer, path, what)


NO_CALL = (
    "no call reached cache_cost: give the code under test cache_cost.client(), a client with cache_cost.transport, "
    "or cache_cost.base_url"
)
NOTHING_TO_COMPARE = (
    "nothing was compared: no call goes on from another one. Let the test make two calls of one conversation, or "
    "compare conversations with across_conversations=True"
)
SHOWN_CALLS = 12
SHOWN_CAUSES = 3


@dataclass(frozen=True, slots=True)
class CostEvidence:
    """Why it came to that: each call, what of it was avoidable, and which layers changed on the way."""

    calls: Sequence[CallRow]
    explanation: Explanation
    changes: Sequence[LayerChange]

    def lines(self) -> Iterator[str]:
        """The first change of each layer, the most expensive call of each cause, and a table of the calls."""
        yield from _first_changes(self.changes)
        if self.explanation.findings:
            yield f"  {dollars(self.explanation.avoidable)} of it was avoidable:"
        else:
            yield "  no avoidable cost with these prompts, breakpoints and times"
        for group in group_findings(self.explanation)[:SHOWN_CAUSES]:
            first, count = group.example, len(group.findings)
            since = f" since call {first.since}" if first.since else ""
            more = f" and {count_text(count - 1, 'more call')}" if count > 1 else ""
            shown = f": “{first.excerpt}”" if first.excerpt else ""
            what = f"{first.block}{since}: {first.message}{shown} ({dollars(group.cost)})"
            yield f"  {first.code} call {first.call}{more}, {what}"
            yield f"        → {first.fix}"
        yield f"  {'call':>4} {'read':>9} {'written':>9} {'uncached':>9} {'cost':>10}  cause"
        for row in self.calls[:SHOWN_CALLS]:
            usage = row.usage
            figures = f"{usage.read:>9,} {usage.write:>9,} {usage.input_tokens:>9,} {dollars(row.cost.total):>10}"
            yield f"  {row.call:>4} {figures}  {row.error or row.cause or ''}"
        if len(self.calls) > SHOWN_CALLS:
            yield f"  and {count_text(len(self.calls) - SHOWN_CALLS, 'more call')}"


def cost_message(spent: Decimal, limit: Decimal, evidence: CostEvidence) -> str:
    """The dollars, then why."""
    write = exact_dollars if dollars(spent) == dollars(limit) else dollars
    more = f"{dollars(spent - limit)} more than the limit of {exact_dollars(limit)}"
    calls = len(evidence.calls)
    costs = count_text(calls, "call", "cost")
    return "\n".join([f"{costs} {write(spent)}, {more}", *evidence.lines()])


def _first_changes(found: Sequence[LayerChange]) -> Iterator[str]:
    for layer in dict.fromkeys(one.layer for one in found):
        first, *others = [one for one in found if one.layer == layer]
        more = f" (and in {count_text(len(others), 'more call')})" if others else ""
        yield f"  call {first.call}: {first.path} {first.what}, since call {first.since}{more}"
        if first.offset is not None:
            yield f"    was  {first.was}"
            yield f"    now  {first.now}"


def lint_message(found: Sequence[LintFinding]) -> str:
    """Each finding with its place and its fix."""
    lines = [f"lint found {count_text(len(found), 'problem')}"]
    for one in found:
        where = f" call {one.call}" if one.call is not None else ""
        often = f" (in {one.calls} calls)" if one.calls > 1 else ""
        lines.append(f"  {one.code} {one.severity}{where}, {one.path}: {one.message}{often}")
        lines.append(f"        → {one.fix}")
    return "\n".join(lines)


NOWHERE = "http://cache-cost.invalid"
"""Where clients of a transport think they send to; the name can never be a host (RFC 6761)."""
CLIENT = {"api_key": PLACEHOLDER, "base_url": NOWHERE, "max_retries": 0}


Severity = Literal["error", "warning", "note"]
DOLLARS = 'US dollars from 0, like 0.05 or "0.05"'
SHARE = 'a share from 0 to 1, like 0.9 or "0.9"'
SEVERITIES: Sequence[Severity] = ("error", "warning", "note")


class CacheCost:
    """A simulated API for one test: same calls, same answers, same times, same dollars.

    `as_of` is the day whose rules and prices hold (default: that of the shipped rules); the clock starts on it.
    `tokens` selects the counter (tiktoken, bytes, ctok), `rules` are assumptions by name, `prices` is your own file,
    `answers` selects the answers (agent, agent:N, script:FILE, recording:FILE), `clock` the time (+2s: each call that
    much after the last). Requests are written to `recording`, a request log in `folder`, without any key. Raises
    InputError, CannotEvaluate, ValueError.
    """

    def __init__(
        self,
        folder: Path,
        *,
        as_of: date | str | None = None,
        host: str = AUTO_HOST,
        tokens: str = "tiktoken",
        rules: Mapping[str, object] | None = None,
        prices: str | Path | None = None,
        answers: str | Answerer = "agent",
        clock: str = "+2s",
    ) -> None:
        if tokens == "ctok":
            require_ctok()
        day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
        book = PriceBook.load(Path(prices) if prices else None, day)
        self._setup = ReplaySetup(RuleBook(assumptions_from(rules or {}), day), book, host, tokens)
        start = midnight(day or data_date(host))
        self._clock = clock_from(clock, start)
        if isinstance(self._clock, SteppingClock):
            self._clock = MovableClock(self._clock.step_s, start)
        self._meter = Meter(self._setup)
        answerer = answerer_from(answers) if isinstance(answers, str) else answers
        self._open = ExitStack()
        self._log = CallLog(folder / "calls.jsonl")
        self._open.callback(self._log.close)
        self._faults: list[str] = []
        self._served = ServerState(
            answerer,
            self._meter,
            self._clock,
            self._log,
            models=models_of(self._setup.rules, host_of(None, host, "")),
            say=self._faults.append,
        )
        self._address: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server, if there is one, and close the recording."""
        self._open.close()

    @property
    def transport(self) -> Any:
        """For your own client: `httpx2.Client(transport=cache_cost.transport)`, and the same with httpx."""
        return Transport(self._served)

    @property
    def async_transport(self) -> Any:
        """For your own client: `httpx2.AsyncClient(transport=cache_cost.async_transport)`."""
        return AsyncTransport(self._served)

    def client(self, **options: Any) -> Any:
        """An `anthropic.Anthropic` whose calls end here; `options` are its own. Raises NotInstalled."""
        require("cache_cost.client()", "anthropic")
        import anthropic

        given: Any = {**CLIENT, **options, "http_client": anthropic.DefaultHttpxClient(transport=self.transport)}
        return self._open.enter_context(anthropic.Anthropic(**given))

    def async_client(self, **options: Any) -> Any:
        """An `anthropic.AsyncAnthropic` whose calls end here; `options` are its own. Raises NotInstalled."""
        require("cache_cost.client()", "anthropic")
        import anthropic

        http_client = anthropic.DefaultAsyncHttpxClient(transport=self.async_transport)
        given: Any = {**CLIENT, **options, "http_client": http_client}
        return anthropic.AsyncAnthropic(**given)

    @property
    def base_url(self) -> str:
        """The address of a server on this machine only, started on first use: for agents in other processes.

        Raises NotInstalled where starlette or uvicorn is missing.
        """
        if self._address is None:
            require("cache_cost.base_url", "starlette", "uvicorn")
            from cachecost.live.server.app import app_of, serving

            self._address = self._open.enter_context(serving(app_of(self._served), self._served.pauses))
        return self._address

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of a process whose calls go to `base_url`."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": PLACEHOLDER}

    def wait(self, seconds: float = 0.0, *, minutes: float = 0.0) -> None:
        """Let the next call come that much later, without waiting. Raises ValueError for a real clock."""
        if not isinstance(self._clock, MovableClock):
            raise ValueError("wait: expected a clock like '+2s'; a clock that runs by itself cannot be moved")
        self._clock.skip(seconds + 60 * minutes)

    @property
    def calls(self) -> list[CallRow]:
        """Each call with its usage, its dollars and its cause, in order; refused ones with their error."""
        if self._faults:
            raise AssertionError("\n".join(self._faults))
        return self._meter.rows

    @property
    def recording(self) -> Path:
        """The request log of the calls so far, as `cachecost replay` reads it."""
        return self._log.path

    @property
    def dollars(self) -> Decimal:
        """What all calls cost in USD, exactly."""
        return sum((row.cost.total for row in self.calls), ZERO)

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return sum((row.usage for row in self.calls), Usage())

    @property
    def cache_hit_rate(self) -> Decimal:
        """Which share of all input tokens was read from the cache, from 0 to 1; 0 where there was no input."""
        usage = self.usage
        return Decimal(usage.read) / usage.total_input if usage.total_input else ZERO

    def explain(self) -> Explanation:
        """What the calls pay more than they must, each cause with its place and its dollars.

        Warns of calls to explicit cache objects, which are left out; raises CannotEvaluate where all are.
        """
        from cachecost.analysis.explain.explaining import explain_workload
        from cachecost.api.setup import only_supported
        from cachecost.simulation.workload import read_workload

        self._require_calls()
        calls = read_workload(self.recording, self._setup, self._setup.tokens)
        return explain_workload(only_supported(calls, "explain"))

    def lint(self) -> list[LintFinding]:
        """What is wrong with the calls, each alone and with the one before it."""
        from cachecost.analysis.lint import RequestLoader, lint_log
        from cachecost.conversations.readers.detect import read_calls

        self._require_calls()
        desk = RequestLoader(self._setup.rules, self._setup.host, self._setup.tokens)
        return lint_log(read_calls(self.recording), "this test", desk).findings

    def assert_costs_at_most(self, dollars: str | Decimal | float) -> None:
        """All calls together cost no more than that many USD; equal passes. 0.05 and "0.05" are the same limit.

        Raises ValueError for what is no amount of dollars.
        """
        __tracebackhide__ = True
        limit, spent = _exact(dollars, DOLLARS), self.dollars
        self._require_calls()
        if spent > limit:
            raise AssertionError(cost_message(spent, limit, self._evidence()))

    def assert_cache_hit_rate_at_least(self, share: str | float | Decimal) -> None:
        """At least this share (0 to 1) of all input tokens was read from the cache; equal passes.

        Raises ValueError for what is no share.
        """
        __tracebackhide__ = True
        limit, reached = _exact(share, SHARE, most=1), self.cache_hit_rate
        self._require_calls()
        if reached < limit:
            head = f"{percent(reached)} of the input was read from the cache; expected at least {percent(limit)}"
            raise AssertionError("\n".join([head, *self._evidence().lines()]))

    def assert_prefix_stable(self, *layers: str, across_conversations: bool = False) -> None:
        """These layers (tools, system, messages; all if none is named) are in each call as in the one it goes on from.

        Messages are stable if they only grow. With `across_conversations` tools and system are compared with those of
        the call before, whatever its conversation. Fails where no call could be compared with another.
        """
        __tracebackhide__ = True
        if unknown := [name for name in layers if name not in LAYERS]:
            raise ValueError(f"expected {', '.join(LAYERS)}; got {', '.join(map(repr, unknown))}")
        self._require_calls()
        compared, found = changes(self._meter.taken, layers or LAYERS, across_conversations)
        if found:
            changed = list(dict.fromkeys(one.layer for one in found))
            verb = "is" if changed == ["system"] else "are"
            raise AssertionError("\n".join([f"{' and '.join(changed)} {verb} not stable", *_first_changes(found)]))
        if not compared:
            raise AssertionError(NOTHING_TO_COMPARE)

    def assert_no_lint(self, severity: Severity = "warning", *, ignore: Sequence[str] = ()) -> None:
        """Lint finds nothing this bad or worse (error, warning, note); `ignore` are codes that do not count."""
        __tracebackhide__ = True
        if severity not in SEVERITIES:
            raise ValueError(f"severity: expected {', '.join(SEVERITIES)}; got {severity!r}")
        counts = SEVERITIES[: SEVERITIES.index(severity) + 1]
        found = [one for one in self.lint() if one.severity in counts and one.code not in ignore]
        if found:
            raise AssertionError(lint_message(found))

    def _evidence(self) -> CostEvidence:
        """The calls, what of them was avoidable, and what became of tools and system within a conversation."""
        found = changes(self._meter.taken, ("tools", "system"), across=False)[1]
        return CostEvidence(self.calls, self.explain(), found)

    def _require_calls(self) -> None:
        __tracebackhide__ = True
        if not self.calls:
            raise AssertionError(NO_CALL)


def _exact(number: str | Decimal | float, what: str, most: int | None = None) -> Decimal:
    """A limit as it was written: 0.1 is a tenth, though the float is not. Raises ValueError."""
    try:
        found = Decimal(str(number))
    except InvalidOperation:
        found = Decimal("NaN")
    if not found.is_finite() or found < 0 or (most is not None and found > most):
        raise ValueError(f"expected {what}; got {number!r}")
    return found
