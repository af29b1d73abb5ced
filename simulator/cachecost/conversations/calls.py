"""A call: a request, when it was sent, its bill and the lengths that are known without one; and the sum of bills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.limits import MOST_TOKENS, is_number, is_tokens
from cachecost.base.structs import replace
from cachecost.base.times import day_of, iso_milliseconds
from cachecost.conversations.readers.common.message_threads import why_not_whole
from cachecost.prompts.blocks import COMPACTION, Block, Layer, given_block
from cachecost.prompts.request import Breakpoint, NotAMessage, Request, sent_breakpoints
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.prices import PriceBook, moment_of, terms_of
from cachecost.providers.usage import ZERO, Prices, ToolUses, Usage, plus

KEYS = ("prompt", "output", "prefixes")
MOST_PREFIXES = 2


class PrefixLength(msgspec.Struct, frozen=True):
    """The length in tokens of the prompt up to a block: `layer`, `message` (from 0; −1 outside messages), `index`."""

    layer: str
    message: int
    index: int
    tokens: int

    def wire(self) -> dict[str, Any]:
        message = [self.message] if self.message >= 0 else []
        return {"at": [self.layer, *message, self.index], "tokens": self.tokens}


class KnownLengths(msgspec.Struct, frozen=True):
    """The lengths of a call in tokens. `prompt` is 0 and `output` None where they are not known."""

    prompt: int = 0
    output: int | None = None
    prefixes: tuple[PrefixLength, ...] = ()

    def wire(self) -> dict[str, Any]:
        """What a line of a request log says; parses back to these lengths."""
        parts = {
            "prompt": self.prompt or None,
            "output": self.output,
            "prefixes": [prefix.wire() for prefix in self.prefixes] or None,
        }
        return {name: part for name, part in parts.items() if part is not None}

    @property
    def usage(self) -> Usage:
        """A usage with these lengths, as if all breakpoints had been written."""
        ends = [prefix.tokens for prefix in self.prefixes]
        last, hour = (ends[-1], ends[0] if len(ends) > 1 else 0) if ends else (0, 0)
        return Usage(max(0, self.prompt - last), write_5m=max(0, last - hour), write_1h=hour)

    def breakpoints(self, request: Request) -> tuple[Breakpoint, ...]:
        """The breakpoints at the prefixes, on a request that has these blocks; none where it has not."""
        nodes = {node.length - 1: node for node in request.thread.back()} if self.prefixes else {}
        found = []
        for number, one in enumerate(self.prefixes):
            node = nodes.get(one.message)
            message = node.message if node else None
            part = request.tools if one.layer == Layer.TOOLS else request.system
            blocks = message.blocks if message else part.blocks if one.message < 0 else ()
            if one.index >= len(blocks):
                return ()
            is_hour = number == 0 and len(self.prefixes) > 1
            found.append(Breakpoint(Layer(one.layer), one.index, "1h" if is_hour else "5m", node))
        return tuple(found)


def billed_lengths(call: Call) -> KnownLengths:
    """The lengths that the bill of a recorded call shows. A bill of several passes shows only that of the answer."""
    billed = call.billed
    if billed is None or call.iterations:
        return KnownLengths(output=call.output_tokens)
    cached = billed.read + billed.write
    sent = sent_breakpoints(call.request).breakpoints
    if not cached or not sent:
        return KnownLengths(billed.total_input, billed.output_tokens)
    hours = [breakpoint for breakpoint in sent if breakpoint.ttl == "1h"] if billed.write_1h and billed.write_5m else []
    ends = [(hours[-1], billed.read + billed.write_1h)] if hours else []
    ends.append((sent[-1], cached))
    prefixes = tuple(
        PrefixLength(str(end.layer), end.node.length - 1 if end.node else -1, end.index, tokens) for end, tokens in ends
    )
    return KnownLengths(billed.total_input, billed.output_tokens, prefixes)


def parse_lengths(found: Any) -> KnownLengths:
    """The `lengths` of a line. Raises NotAMessage with the path of what is wrong."""
    if not isinstance(found, dict):
        raise NotAMessage("lengths", "an object", found)
    if unknown := sorted(found.keys() - set(KEYS)):
        raise NotAMessage(f"lengths.{unknown[0]}", f"one of {', '.join(KEYS)}", unknown[0])
    prefixes = found.get("prefixes", [])
    if not isinstance(prefixes, list) or len(prefixes) > MOST_PREFIXES:
        raise NotAMessage("lengths.prefixes", f"a list of at most {MOST_PREFIXES}", prefixes)
    ends = tuple(_parse_prefix(one, f"lengths.prefixes.{number}") for number, one in enumerate(prefixes))
    output = _tokens(found["output"], "lengths.output") if "output" in found else None
    return KnownLengths(_tokens(found.get("prompt", 0), "lengths.prompt"), output, ends)


def _parse_prefix(found: Any, path: str) -> PrefixLength:
    if not isinstance(found, dict):
        raise NotAMessage(path, "an object", found)
    tokens = _tokens(found.get("tokens"), f"{path}.tokens")
    match found.get("at"):
        case [("tools" | "system") as layer, index] if is_tokens(index):
            return PrefixLength(layer, -1, index, tokens)
        case ["messages", message, index] if is_tokens(message) and is_tokens(index):
            return PrefixLength("messages", message, index, tokens)
    raise NotAMessage(f"{path}.at", 'a place like ["system", 0] or ["messages", 0, 0]', found.get("at"))


def _tokens(found: Any, path: str) -> int:
    if not is_tokens(found):
        raise NotAMessage(path, "a whole number of tokens", found)
    return int(found)


SEARCHES = ("web_search_tool_result", "web_search_call")
"""Blocks that show one search each: of the Messages API, and of the Responses API."""
BILL_ONLY = "the log has only the bill, not the request"
ON_DEMAND = "on-demand compaction (compaction: summarize): its prompt is not published and the log has no iterations"
_set = msgspec.structs.force_setattr


class Iteration(msgspec.Struct, frozen=True):
    """One of the passes that the usage of a call lists: "message", "compaction", "advisor_message" … `model` is that of
    the pass; "" is the call's own."""

    kind: str
    usage: Usage
    model: str = ""


class Call(msgspec.Struct, frozen=True):
    """A request and everything about it that is not in the body: of a log or recording with its bill, or simulated.

    `start` is in seconds since the epoch, `timestamp` the same in ISO 8601 (None: unknown), `first_token_s` the
    seconds until the first token, when the entry that the call writes can be read. `day` picks rules and prices
    (None: that of the timestamp, else of the shipped data or `as_of`). The output is `output_tokens` where known
    (from the bill where that is not given), else the sum over `output`. `response` holds the blocks of the answer
    where they are known: server tools and summaries in it make the call several passes; where the reader keeps no
    content it holds only an answer with server tools. `number` is the call's place in its file, where the file is
    not in time order (0: it is). `most_read` is how many tokens the call can read at most, because its bill shows
    that what comes after them was lost (None: no limit), and with `is_lost_by_change` only while it changes what
    the call before it sent. `least_read` is how many tokens it reads at least, as billed, where something of it was
    sent before, or may have been before the recording. `rounding_s`: how many seconds later than `start` it may have
    begun, as its log has whole seconds.

    `billed` is the usage that came back, `status` the HTTP status (None: not recorded, so fine). `source` is who
    recorded the call, `session` the conversation that the log says it belongs to, `project` the folder that the agent
    worked in, `agent` the sub-agent that made the call, `id` identifies copies of one call in several files; each is ""
    where the log does not say (`agent` also for the main thread). `lengths` are those that the log states of a call
    without a bill. `file` and `line` are where the call was recorded, `before` is the line of the call of that file
    that the recording says it continues (0: it does not say).

    `is_simulated`: made by a strategy or answered by the simulated API. `purpose` is "main", or why a strategy sends
    the call; `inquiry` the number of the side question that it answers (None: none).
    """

    request: Request
    start: float
    day: date | None = None
    timestamp: str | None = None
    host: str | None = None
    workspace: str = ""
    first_token_s: float = 0.0
    output: tuple[Block, ...] = ()
    response: tuple[Block, ...] = ()
    output_tokens: int | None = None
    is_batch: bool = False
    number: int = 0
    most_read: int | None = None
    is_lost_by_change: bool = False
    least_read: int | None = None
    rounding_s: float = 0.0
    billed: Usage | None = None
    iterations: tuple[Iteration, ...] = ()
    status: int | None = None
    source: str = ""
    session: str = ""
    id: str = ""
    project: str = ""
    agent: str = ""
    lengths: KnownLengths | None = None
    before: int = 0
    output_billed: int | None = None
    """The output tokens of a usage without input tokens: as every call has input, it is no bill (`billed` is None)."""
    file: str = ""
    line: int = 0
    purpose: str = "main"
    turn: int = 0
    inquiry: int | None = None
    is_simulated: bool = False

    def __post_init__(self) -> None:
        if self.is_simulated:
            return
        made: Any = self
        request = self.request
        if self.billed is not None and request.answering_model != request.model:
            _set(made, "request", replace(request, answering_model=request.model))
        if self.day is None and self.timestamp is not None:
            _set(made, "day", day_of(self.start))
        if self.billed is not None and not self.billed.total_input and not self.iterations:
            _set(made, "output_billed", self.billed.output_tokens)
            _set(made, "billed", None)
        if self.output_tokens is None:
            _set(made, "output_tokens", self._output_tokens())

    def _output_tokens(self) -> int | None:
        """What the bill says, or the blocks of the response where their lengths are known; None: unknown."""
        if self.iterations and self.pass_bills:
            return sum(bill.output_tokens for bill in self.pass_bills)
        if self.billed or self.output_billed:
            return self.billed.output_tokens if self.billed else self.output_billed
        if self.lengths is not None and self.lengths.output is not None:
            return self.lengths.output
        lengths = [block.tokens for block in self.response]
        return sum(filter(None, lengths)) if lengths and None not in lengths else None

    @property
    def ready_s(self) -> float:
        """Seconds from `start` until what the call writes may be readable for a call of the same log: until its first
        token, less what the rounding of their stamps can hide."""
        return max(0.0, self.first_token_s - self.rounding_s) if self.rounding_s else self.first_token_s

    @property
    def returned_usage(self) -> Usage | None:
        """The usage that came back, also one that says nothing of the input."""
        return self.billed if self.output_billed is None else Usage(output_tokens=self.output_billed)

    @property
    def has_failed(self) -> bool:
        return self.status is not None and self.status >= 400

    @property
    def tool_uses(self) -> ToolUses:
        """The uses of server tools that its bill or answer shows."""
        if self.billed:
            return self.billed.tool_uses
        count = sum(block.kind in SEARCHES for block in self.response or self.output)
        return (("web_search", count),) if count else ()

    @property
    def has_known_length(self) -> bool:
        """Whether the log states the length of the prompt without a bill."""
        return self.lengths is not None and self.lengths.prompt > 0

    @property
    def is_bill_only(self) -> bool:
        """Whether the log holds the bill of the call but nothing of what was sent."""
        request = self.request
        is_empty = not (request.thread.length or request.tools.blocks or request.system.blocks)
        return is_empty and self.billed is not None and self.billed.total_input > 0

    @property
    def pass_bills(self) -> tuple[Usage, ...]:
        """The bill of each pass of a call that the API compacted in: their sum is its bill."""
        if not any(one.kind == COMPACTION for one in self.iterations):
            return ()
        return tuple(one.usage for one in self.iterations if one.kind in (COMPACTION, "message"))

    @property
    def why_unknown(self) -> str:
        """Why the log does not show what was sent, or what the API made of it; empty where it does."""
        if self.is_simulated:
            return ""
        if self.is_bill_only:
            return BILL_ONLY
        if self.request.params.get("compaction") and not self.pass_bills:
            return ON_DEMAND
        return why_not_whole(self.request.params)

    @property
    def may_be_refused(self) -> bool:
        """Whether a call that the log does not show in full may be one that its host refuses."""
        return not self.is_simulated and self.billed is None and not self.is_bill_only

    @property
    def simulated_response(self) -> tuple[Block, ...]:
        """The response; if the call was compacted and the log has no summary, with one as long as it was billed."""
        bills = self.pass_bills
        if not bills or any(block.kind == COMPACTION for block in self.response):
            return self.response
        lengths = [one.usage.output_tokens for one in self.iterations if one.kind == COMPACTION]
        summaries = [given_block(COMPACTION, "assistant", f"{self.start} {self.line}", tokens) for tokens in lengths]
        rest = self.response or (given_block("text", "assistant", "answer", 0),)
        return (*summaries, *(rest if len(bills) > len(summaries) else ()))


def strip_recording(call: Call) -> Call:
    """The call as a strategy plans it: of what was recorded, only where and when it is sent."""
    request, host, workspace = call.request, call.host, call.workspace
    return Call(request, call.start, host=host, workspace=workspace, is_batch=call.is_batch, is_simulated=True)


def date_call(call: Call) -> Call:
    """The call with the day and the timestamp of its start."""
    return replace(call, day=day_of(call.start), timestamp=iso_milliseconds(call.start))


def name_call(call: Call, session: str, project: str, agent: str) -> Call:
    """The call as one of this conversation."""
    return replace(call, session=session, project=project, agent=agent)


def derive_call(call: Call, request: Request, start: float, output_tokens: int | None, purpose: str) -> Call:
    """A call that was not recorded, sent the way `call` was; only the length of its answer is known."""
    is_timed = call.timestamp is not None
    return Call(
        request,
        start,
        day_of(start) if is_timed else call.day,
        iso_milliseconds(start) if is_timed else None,
        call.host,
        call.workspace,
        output_tokens=output_tokens,
        is_batch=call.is_batch,
        rounding_s=call.rounding_s,
        purpose=purpose,
        turn=call.turn,
        inquiry=call.inquiry,
        is_simulated=True,
    )


APART = ("compaction", "advisor_message")
"""Passes that the usage of a call leaves out of its sums, and that are charged (Claude docs, `usage.iterations`)."""
NO_INPUT = "the usage has no input tokens, so what was sent is unknown; `cachecost replay` estimates it"


class BillTotal(msgspec.Struct):
    """The sum of the bills of calls. Without `prices` there are no dollars; `host` is for calls that name none.

    `usage` is the usage that the API returned and `dollars` its cost in USD, both with the passes that the usage leaves
    out; `unpriced` counts, by reason, the calls that are not in the dollars. A failed call costs nothing.
    """

    prices: PriceBook | None = None
    host: str = AUTO_HOST
    calls: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)
    unpriced: Counter[str] = msgspec.field(default_factory=Counter)
    charged: Decimal = ZERO
    """USD that the answers themselves say were charged (gateways), part of `dollars`."""
    charged_calls: int = 0
    listed: Decimal | None = ZERO
    """What these calls cost at list prices; None where one has none."""
    _priced: dict[int, tuple[Prices, Usage]] = msgspec.field(default_factory=dict)
    """The usage at each of the prices, by their identity: dollars are exact, so they can be summed at the end."""

    @property
    def dollars(self) -> Decimal:
        return sum((prices.total_cost(usage) for prices, usage in self._priced.values()), self.charged)

    def add(self, call: Call) -> None:
        """Add a call to the sums."""
        self.calls += 1
        if call.has_failed:
            return
        if call.billed is None:
            self.unpriced.update([NO_INPUT] if self.prices and call.output_billed is not None else [])
            return
        parts = [("", call.billed)]
        if call.iterations:
            parts += [(one.model, one.usage) for one in call.iterations if one.kind in APART]
        for _, usage in parts:
            self.usage += usage
        if self.prices:
            self._price(call, parts, self.prices)

    def add_all(self, calls: Iterable[Call]) -> Iterator[Call]:
        """Yield the calls unchanged, and add each to the sums."""
        for call in calls:
            self.add(call)
            yield call

    def _price(self, call: Call, parts: list[tuple[str, Usage]], book: PriceBook) -> None:
        charged = call.billed.charged_usd if call.billed else None
        if charged is not None:
            self.charged += charged
            self.charged_calls += 1
        moment = moment_of(None if call.timestamp is None else call.start, call.day)
        terms, priced = terms_of(call.request.params, call.is_batch), list[tuple[Prices, Usage]]()
        try:
            for name, usage in parts:
                model = name or call.request.model
                quote = book.quote(host_of(call.host, self.host, model), model, moment, terms)
                priced.append((quote.of(usage.total_input), usage))
        except CannotEvaluate as error:
            if charged is None:
                self.unpriced[str(error)] += 1
            else:
                self.listed = None
            return
        if charged is not None:
            self.listed = plus(self.listed, sum((prices.total_cost(usage) for prices, usage in priced), ZERO))
            return
        for prices, usage in priced:
            known = self._priced.get(id(prices))
            self._priced[id(prices)] = prices, usage if known is None else known[1] + usage


NOTHING: dict[str, Any] = {}
TICKS_A_DOLLAR = 10**10
"""Of xAI's `cost_in_usd_ticks`."""


def parse_usage(value: Any, path: str) -> Usage:
    """A wire `usage` object. Creation that its 5m/1h split leaves out is 5m. Raises NotAMessage."""
    if not isinstance(value, dict):
        raise NotAMessage(path, "a usage object", value)
    split = value.get("cache_creation") or NOTHING
    written = _wire_usage_tokens(value, "cache_creation_input_tokens", path)
    hour = _wire_usage_tokens(split, "ephemeral_1h_input_tokens", f"{path}.cache_creation")
    five = _wire_usage_tokens(split, "ephemeral_5m_input_tokens", f"{path}.cache_creation")
    return Usage(
        _wire_usage_tokens(value, "input_tokens", path),
        _wire_usage_tokens(value, "cache_read_input_tokens", path),
        max(five, written - hour),
        hour,
        _wire_usage_tokens(value, "output_tokens", path),
        reported_uses(value),
        reported_charge(value),
    )


def reported_uses(value: Mapping[str, Any]) -> ToolUses:
    """The uses of server tools that a usage counts."""
    counts = value.get("server_tool_use")
    if not isinstance(counts, Mapping):
        return ()
    found = ((str(name).removesuffix("_requests"), number) for name, number in counts.items())
    return tuple(sorted((name, number) for name, number in found if is_tokens(number) and number))


def reported_charge(value: Mapping[str, Any]) -> Decimal | None:
    """USD that a usage says were charged; None: it does not say so. All of these are bills, not estimates.

    OpenRouter (docs, Usage accounting): `cost`; with a key of one's own, that is its fee, and the upstream's charge
    comes on top. Perplexity (docs, Pricing): `cost.total_cost`. xAI (docs, Cost tracking): `cost_in_usd_ticks`.
    """
    cost, ticks = value.get("cost"), value.get("cost_in_usd_ticks")
    if isinstance(cost, Mapping):
        cost = cost.get("total_cost")
    if cost is None and ticks is not None and is_tokens(ticks):
        return Decimal(ticks) / TICKS_A_DOLLAR
    if isinstance(cost, bool) or not isinstance(cost, (int, float, Decimal)) or not is_number(cost):
        return None
    charged, details = Decimal(str(cost)), value.get("cost_details")
    upstream = details.get("upstream_inference_cost") if isinstance(details, Mapping) else None
    if value.get("is_byok") and isinstance(upstream, (int, float)) and is_number(upstream):
        charged += Decimal(str(upstream))
    return charged


def _wire_usage_tokens(value: Any, name: str, path: str) -> int:
    found = value.get(name) if type(value) is dict else value
    if type(found) is int and 0 <= found <= MOST_TOKENS:
        return found
    if found is None:
        return 0
    if not is_tokens(found):
        raise NotAMessage(f"{path}.{name}", "a whole number of tokens", found)
    return found


def parse_iterations(usage: Any, path: str) -> tuple[Iteration, ...]:
    passes = usage.get("iterations") if isinstance(usage, dict) else None
    if not isinstance(passes, list) or not all(isinstance(one, dict) for one in passes):
        return ()
    names = [(str(one.get("type") or "message"), str(one.get("model") or "")) for one in passes]
    usages = [parse_usage(one, f"{path}.iterations.{n}") for n, one in enumerate(passes)]
    return tuple(Iteration(kind, usage, model) for (kind, model), usage in zip(names, usages, strict=True))
