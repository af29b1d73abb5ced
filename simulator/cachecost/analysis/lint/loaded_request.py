"""A request as lint sees it: what was sent, its prompt and rules, a path for every block, how long its prefixes are.

Bodies and recorded calls -> `LoadedRequest`, rendered into one shared tree. The bills of recorded calls size what they
cover; a tokenizer counts the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal

from cachecost.base.errors import CannotEvaluate, Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.apis.formats import APIS, api_of, messages_body
from cachecost.prompts.blocks import Block, Layer, Prefix, Thread, is_server_result
from cachecost.prompts.compare import path, prefixes_back, texts
from cachecost.prompts.intake import Intake
from cachecost.prompts.passes import passes
from cachecost.prompts.render import AS_COUNTED, CannotCount, PrefixSizes, Prompt, Renderer, since_compaction
from cachecost.prompts.request import (
    Breakpoint,
    NotAMessage,
    Request,
    SentBreakpoints,
    accepts_breakpoint,
    as_sent,
    block_at,
    breakpoint_fault,
    content_blocks,
    last_breakpoint_place,
    own_breakpoint,
    sent_breakpoints,
    wire_path,
)
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import Usage
from cachecost.tokens.calibrated import BilledLengths
from cachecost.tokens.factory import make_counter
from cachecost.tokens.margins import LAYER_ERROR

Confirmation = Literal["", "confirmed"]
UNCONFIRMED: Confirmation = ""
CONFIRMED: Confirmation = "confirmed"
SERVER_TOOLS = ("code_execution_", "tool_search_tool_")
"""What the types of tools begin with that the provider runs, besides web tools."""
SAME = 2
"""Tokens by which the bills of two calls may count one prefix differently."""


@dataclass(frozen=True, slots=True)
class CallBill:
    """The usage of a call, in tokens. `is_summed`: it adds up several passes (server tools, a compaction), so its
    reads and writes are not lengths of prefixes.
    """

    usage: Usage
    is_summed: bool = False

    @property
    def is_cached(self) -> bool:
        """Whether anything was read from the cache or written to it."""
        return bool(self.usage.read or self.usage.write)

    @property
    def cached_prefix(self) -> int | None:
        """Tokens up to the last breakpoint that counts: what the call left in the cache. None: the bill has no such
        length.
        """
        return self.usage.read + self.usage.write if self.is_cached and not self.is_summed else None


def bill_of(call: Call) -> CallBill | None:
    """The bill of a call; None if the log has none, or one without input (an answer that broke off).

    It is a sum where server tools made the call several passes, or may have where the answer was not recorded.
    """
    if not call.billed or not call.billed.total_input:
        return None
    is_summed = bool(call.pass_bills) or sum(one.kind == "message" for one in call.iterations) > 1
    if not is_summed and call.response:
        ran = any(is_server_result(block.kind) for block in call.response)
        is_summed = ran or len(passes(call.request, call.simulated_response)) > 1
    elif not is_summed:
        request = call.request
        types = (str(block.content.get("type")) for block in request.tools.blocks if block.content is not None)
        is_web = any(not block.role for block in request.system.blocks)  # they stand at the head of the system layer
        runs_servers = is_web or bool(request.params.get("mcp_servers"))
        is_summed = runs_servers or any(one.startswith(SERVER_TOOLS) for one in types)
    return CallBill(call.billed, is_summed)


def without_cache(bill: CallBill) -> str:
    """What was billed where nothing was cached."""
    return f"billed: {count_text(bill.usage.total_input, 'input token')} at full price, none read or written"


def beside_cache(bill: CallBill | None) -> str:
    """What was billed beside what was cached, to end a sentence with; "" where the bill does not show it."""
    if bill is None or bill.is_summed:
        return ""
    return f"; billed: {count_text(bill.usage.input_tokens, 'input token')} at full price"


Place = tuple[int, int, int]
"""Where a block stands: layer, message (from 1; 0 in the head), block. Places compare in prompt order."""
State = Literal["short", "near", "enough"]
LAYERS = tuple(Layer)


@dataclass(frozen=True, slots=True)
class SizedBreakpoint:
    """A breakpoint with its path, the prefix that it ends, how long that is in tokens, and whether that is enough."""

    breakpoint: Breakpoint
    path: str
    prefix: Prefix
    tokens: int
    state: State

    @property
    def place(self) -> Place:
        return self.breakpoint.prompt_order


@dataclass(frozen=True, slots=True, eq=False)
class LoadedRequest:
    """A request, rendered. `faults` are (path, words) of what the API refuses for what only the wire can show.

    `error_margin` is the relative error of token counts; `sized` says whether there are counts at all (a recording
    without content may have none): then lengths are bytes, and nothing is said about them. `sizes` are the lengths in
    tokens: as counted, or as the bills of the log have them. `bill` is that of the call (None: the log has none).
    """

    label: str
    call: int | None
    request: Request
    sent_breakpoints: SentBreakpoints
    rules: ModelRules
    prompt: Prompt
    breakpoints: tuple[SizedBreakpoint, ...]
    faults: tuple[tuple[str, str], ...]
    error_margin: float
    sized: bool
    bill: CallBill | None = None
    sizes: PrefixSizes = AS_COUNTED
    is_batch: bool = False
    start: float | None = None
    """When it was sent, in seconds since the epoch, where the log says it."""

    @property
    def total(self) -> int:
        return self.sizes.total(self.prompt)

    def length(self, prefix: Prefix) -> int:
        """Tokens up to and including `prefix`."""
        return self.sizes.of(prefix)

    def start_of(self, layer: int) -> int:
        """Tokens before a layer: 0 tools, 1 system, 2 messages."""
        return self.sizes.at((0, self.prompt.tools_tokens, self.prompt.system_tokens)[layer])

    def error(self, tokens: int) -> float:
        """How far a length of `tokens` may be off: the counter's error on what no bill covers."""
        return self.error_margin * self.sizes.doubt(tokens)

    def layer_error(self, tokens: int) -> float:
        """The same where they end in the middle of a prompt: a layer alone may be off by more than all of it."""
        return max(self.error_margin, LAYER_ERROR) * self.sizes.doubt(tokens) if self.error_margin else 0.0

    @property
    def live(self) -> tuple[SizedBreakpoint, ...]:
        """The breakpoints that may leave an entry: all but those that are surely too short."""
        return tuple(breakpoint for breakpoint in self.breakpoints if breakpoint.state != "short")

    @property
    def every(self) -> tuple[Breakpoint, ...]:
        """All breakpoints that the API sees, in the order of the request as sent."""
        return as_sent(self.request, self.sent_breakpoints)

    @property
    def confirmation(self) -> Confirmation:
        """What to say of a finding about tokens that were not cached, where their number is the bill's."""
        return CONFIRMED if self.bill is not None and not self.bill.is_summed else UNCONFIRMED

    @property
    def cached(self) -> int | None:
        """The tokens that are cached after the call, as its bill shows; None where it does not."""
        if self.bill is None or not self.rules.is_automatic:
            return self.bill.cached_prefix if self.bill else None
        return None if self.bill.is_summed else self.bill.usage.total_input

    def is_cached_after(self, breakpoint: SizedBreakpoint) -> bool:
        """Whether the bill shows that more was cached than stands before `breakpoint`: both what was cached and what
        was not are out of the error of the counts, so the request that the API got had a breakpoint after it.
        """
        cached = self.cached
        if cached is None or self.bill is None:
            return False
        before, uncached = breakpoint.prefix.tokens, self.bill.usage.input_tokens
        is_more = cached > before * (1 + self.error_margin)
        return is_more and uncached < (self.prompt.total_tokens - before) * (1 - self.error_margin)

    def path(self, place: Place) -> str:
        """A place as the API writes it: `messages.0.content.4`, `system.1`, `tools.3`."""
        layer, message, index = place
        if message:
            return f"messages.{message - 1}.content.{index}"
        return wire_path(self.request, Breakpoint(LAYERS[layer], index))

    def reaches(self, place: Place) -> bool:
        """Whether what stands at `place` is in a cached prefix."""
        return bool(self.live) and self.live[-1].place >= place

    def behind(self, block: Block) -> int | None:
        """Tokens from `block` on to the last breakpoint: what is lost if it differs. None where sizes are not known."""
        if not self.sized or not self.live:
            return None
        node = next((node for node in self.nodes() if node.block is block), None)
        before = self.length(node.parent) if node is not None and node.parent is not None else 0
        return max(0, self.live[-1].tokens - before)

    def nodes(self) -> Iterator[Prefix]:
        """The prefixes of the prompt that end with a block, the longest first."""
        return (node for node in prefixes_back(self.prompt.end) if node.block is not None)

    def head(self) -> Iterator[tuple[Place, Block]]:
        """The blocks of tools and system with their places."""
        for number, part in enumerate((self.request.tools, self.request.system)):
            yield from (((number, 0, index), block) for index, block in enumerate(part.blocks))

    def messages(self, after: int = 0) -> list[Thread]:
        """The messages as nodes, first to last, without the first `after`. Costs work for those that are left."""
        return [*takewhile(lambda node: node.length > after, self.request.thread.back())][::-1]


def message_place(node: Thread, index: int) -> Place:
    """The place of a message's block."""
    return LAYERS.index(Layer.MESSAGES), node.length, index


REPEATED_LETTER = re.compile(r"([^\W\d_])\1{15,}")
"""A run of one letter. Tokenizers differ most on these (6,000 × "a": 2,001 and 836 tokens by two counters that agree
within their error on prose), so no measured error holds for them; one token for each letter is the most.
"""
UNWRITTEN = ("image", "document")
"""Blocks whose data is not text; their tokens are not those of letters."""


def length_state(tokens: int, error: float, minimum: int) -> State:
    """Whether a prefix of `tokens`, give or take `error`, reaches the minimum: surely, surely not, or who knows."""
    if tokens + error < minimum:
        return "short"
    return "enough" if tokens - error >= minimum else "near"


def size_breakpoints(loaded: LoadedRequest) -> LoadedRequest:
    """The request with the lengths and states of its breakpoints as its `sizes` and its bill have them.

    The bill decides: a call that read and wrote nothing had no breakpoint that was long enough. Else the last one was,
    and the last 1h one if anything was written for 1h.
    """
    bill, decided = loaded.bill if loaded.rules.uses_breakpoints else None, dict[int, State]()  # others bill no writes
    if bill is not None and not bill.is_cached:
        decided = dict.fromkeys(range(len(loaded.breakpoints)), "short")
    elif bill is not None and not bill.is_summed:
        hours = [number for number, one in enumerate(loaded.breakpoints) if one.breakpoint.ttl == "1h"]
        decided = dict.fromkeys(hours[-1:] if bill.usage.write_1h else (), "enough")
        decided[len(loaded.breakpoints) - 1] = "enough"
    sized = []
    for number, one in enumerate(loaded.breakpoints):
        tokens = loaded.length(one.prefix)
        state = decided.get(number) or _state_by_count(loaded, one.prefix, tokens)
        sized.append(replace(one, tokens=tokens, state=state))
    return replace(loaded, breakpoints=tuple(sized))


def _state_by_count(loaded: LoadedRequest, prefix: Prefix, tokens: int) -> State:
    if not loaded.sized:
        return "enough"
    error, minimum = loaded.error(tokens), loaded.rules.minimum_tokens
    state = length_state(tokens, error, minimum)
    if state != "short" or not error or loaded.bill is not None:
        return state
    blocks = (node.block for node in path(prefix, 0) if node.block)
    written = (block.content for block in blocks if block.content is not None and block.kind not in UNWRITTEN)
    runs = (match for content in written for _, text in texts(content) for match in REPEATED_LETTER.finditer(text))
    return length_state(tokens, error + sum(len(match[0]) for match in runs), minimum)


BLOCK_PATH = re.compile(r"(messages\.\d+\.content|system|tools)\.\d+")
UNSIZED = "bytes"
"""The counter for recordings without counts: lengths then only give the order."""


class RequestLoader:
    """Loads what is to be linted. Use one for all requests that may share content; `tokens` names the counter."""

    def __init__(self, rules: RuleBook, host: str, tokens: str) -> None:
        self._rules = rules
        self.host = host
        self._tokens = tokens
        self._intake = Intake(keep_content=True)
        self._renderers: dict[tuple[str, str], Renderer] = {}
        self._billed: BilledLengths | None = None
        self._calls = 0

    def body(self, body: Mapping[str, Any], label: str) -> LoadedRequest:
        """A body of the Messages API, or of another, by its keys. Raises InputError where it is none, CannotEvaluate
        for an unknown model and OtherCache for a cache that lint does not support.
        """
        try:
            bare = messages_body(body)
            request = self._intake.body(bare.body)
            faults = tuple(wire_faults(bare.body))
        except NotAMessage as fault:
            api = api_of(body) or "messages"
            where = "" if api == "messages" else f"a request of {APIS[api].name}: "
            raise InputError([Fault(label, f"{where}{fault}")]) from None
        host = bare.host if bare.host and self.host == AUTO_HOST else self.host
        try:
            return size_breakpoints(self._load(label, None, request, self._rules.rules(host, request.model), faults))
        except CannotEvaluate as error:
            if bare.api == "messages":
                raise
            raise type(error)(f"{label}: a request of {APIS[bare.api].name}: {error}") from None

    def call(self, call: Call, label: str, number: int) -> LoadedRequest:
        """A recorded call, the `number`-th of its file; `size` it when all calls of the log are loaded.

        Raises CannotEvaluate for an unknown model.
        """
        request = call.request
        rules = self._rules.rules(host_of(call.host, self.host, request.model), request.model, call.day)
        found = BLOCK_PATH.match(request.fault or "")
        faults = ((found[0] if found else str(Layer.TOOLS), request.fault),) if request.fault else ()
        loaded = self._load(label, number, request, rules, faults, call.workspace)
        bill = bill_of(call)
        if bill is not None and not bill.is_summed and loaded.sized:  # a sum of passes has no lengths
            self._calls += 1
            self._billed = self._billed or BilledLengths()
            self._billed.learn(self._calls, loaded.prompt, bill.usage)
        return replace(loaded, bill=bill, is_batch=call.is_batch, start=call.start if call.timestamp else None)

    def size(self, loaded: LoadedRequest) -> LoadedRequest:
        """A recorded call with its lengths, by all bills of the log."""
        if self._billed is not None and loaded.sized:
            loaded = replace(loaded, sizes=self._billed.all(loaded.prompt))
        return size_breakpoints(loaded)

    def _load(
        self,
        label: str,
        call: int | None,
        request: Request,
        rules: ModelRules,
        faults: tuple[tuple[str, str], ...],
        workspace: str = "",
    ) -> LoadedRequest:
        rules.require_support("lint")
        sent = sent_breakpoints(request)
        good = tuple(
            breakpoint
            for breakpoint in sent.breakpoints
            if accepts_breakpoint(block_at(request, breakpoint))
            and (request.thread.compaction is None or bool(since_compaction(request, (breakpoint,))[1]))
        )
        name = self._tokens
        try:
            prompt = self._renderer(rules.generation, name).render(request, good, rules, workspace)
        except CannotCount:
            name = UNSIZED
            prompt = self._renderer(rules.generation, name).render(request, good, rules, workspace)
        placed = zip(good, prompt.breakpoints, strict=True)
        breakpoints = tuple(  # whether they are long enough is not decided yet
            SizedBreakpoint(one, wire_path(request, one), end.prefix, end.prefix.tokens, "near") for one, end in placed
        )
        is_all_cached = rules.is_automatic or rules.implicit_breakpoint
        if is_all_cached and (last := last_breakpoint_place(request, "5m")):
            breakpoints = (SizedBreakpoint(last, wire_path(request, last), prompt.end, prompt.end.tokens, "near"),)
        error_margin, is_sized = self._renderer(rules.generation, name).counter.error_margin, name == self._tokens
        return LoadedRequest(label, call, request, sent, rules, prompt, breakpoints, faults, error_margin, is_sized)

    def _renderer(self, generation: str, name: str) -> Renderer:
        key = (generation, name)
        if key not in self._renderers:
            self._renderers[key] = Renderer(make_counter(name, generation))
        return self._renderers[key]


def wire_faults(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, words) of every breakpoint in a body that the API refuses for where it stands. Raises NotAMessage."""
    yield from _find_faults(list(body.get("tools") or []), "tools")
    yield from _find_faults(content_blocks(body.get("system") or [], "system"), "system")
    for number, message in enumerate(body.get("messages") or []):
        path = f"messages.{number}.content"
        yield from _find_faults(content_blocks(message.get("content"), path), path)


def _find_faults(items: list[Mapping[str, Any]], path: str) -> Iterator[tuple[str, str]]:
    for number, item in enumerate(items):
        where = f"{path}.{number}"
        ttl, fault = own_breakpoint(item, where)
        if words := fault or (ttl and breakpoint_fault(item, where)):
            yield where, words


def strip_request(request: Request, **fields: Any) -> Request:
    """The request without everything but its blocks that the API could refuse; `fields` put some of it back."""
    nothing: dict[str, Any] = {"breakpoints": (), "automatic": None, "params": {}, "fault": None}
    return replace(request, **{**nothing, "message_thread": None, "answering_model": request.model, **fields})
