"""Requests in time order -> a ledger: rules, cache, prices and causes, one call after another.

Calls as they are before any cache sees them are prepared once for all replays of a setup: rendered, counted, priced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cachecost.base.atomic_files import current_work_check
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.caches.fixed_blocks import lacks_room
from cachecost.caches.hosts import SimulatedHosts
from cachecost.caches.losses import Loss
from cachecost.caches.reporting import MachineRanges, with_least_read, with_shared_prefix
from cachecost.caches.warm_starts import SentCall, WarmPrefixes, WarmStart, billed_reads, late_answers
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import DollarsByLayer, Spans, TokensByLayer, estimated_usd
from cachecost.ledger.results import EMPTY_TIMELINE, CallTimeline, build_timeline
from cachecost.ledger.rows import NOT_EVALUATED, REFUSED, WARM_START, CallRow, Cost
from cachecost.prompts.compare import prefixes_back
from cachecost.prompts.passes import HostPrompts, PreparedRequest
from cachecost.prompts.render import (
    AS_COUNTED,
    UNCOUNTED_WEIGHT,
    BreakpointPrefix,
    CannotCount,
    PrefixSizes,
    Prompt,
    Renderer,
    TokenCounter,
)
from cachecost.prompts.request import Request, lacking_feature, refusal, sent_breakpoints, too_long
from cachecost.providers.prices import NoPrice, PriceBook, Prices, moment_of, terms_of
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import UNPRICED, ZERO, Quote, Usage
from cachecost.tokens.margins import LAYER_ERROR, PromptMargins

if TYPE_CHECKING:
    from cachecost.simulation.setup import ReplaySetup
    from cachecost.tokens.calibrated import AnswerLengths, BilledLengths


MOST_QUOTES = 4096
"""Quotes that are kept."""
CallKey = tuple[int, int, int, str, float, bool, int, bool]
"""Request, response and rules by identity; workspace, start and whether it is known, line, and whether in a batch."""


def request_quote(book: PriceBook, call: Call, rules: ModelRules) -> Quote:
    """Prices of a call for prompts of any length, by the terms of its request. Raises CannotEvaluate."""
    moment = moment_of(None if call.timestamp is None else call.start, rules.day)
    return book.quote(rules.host, rules.model, moment, terms_of(call.request.params, call.is_batch))


def has_no_output(call: Call) -> bool:
    """Whether the call only writes the cache."""
    return call.request.params.get("max_tokens") == 0


def output_tokens(call: Call, counter: TokenCounter) -> int:
    """Tokens of the answer: as recorded, else as counted."""
    if has_no_output(call):
        return 0
    return call.output_tokens if call.output_tokens is not None else sum(map(counter.block, call.output))


class PreparedCall(msgspec.Struct, frozen=True):
    """A call before it is made: the prompt and the lengths of each pass, and the prices.

    `error_margin` is the relative error of its token counts, without bills. `notes` are sentences on what its host does
    not support or has no price for.
    """

    rules: ModelRules
    prompts: list[Prompt]
    sizes: Sequence[PrefixSizes]
    prices: Prices
    counter: TokenCounter
    notes: tuple[str, ...] = ()
    error_margin: float = 0.0


class UnpreparedCall(msgspec.Struct, frozen=True):
    """A call that has no usage: it failed, would be refused, or cannot be evaluated. `notes` as of a prepared call."""

    cause: str | None
    error: str | None
    kind: str | None
    notes: tuple[str, ...] = ()


class _RenderedCall(msgspec.Struct, frozen=True):
    """A call as rendered, and what its key names by identity. `refused` is why its host refuses it at any length,
    `notes` are those on its request; `is_as_sent`: the host receives the request as it is."""

    call: Call
    rules: ModelRules
    prompts: list[Prompt]
    refused: str | None
    notes: tuple[str, ...]
    is_as_sent: bool


@dataclass(slots=True)
class CallPreparer:
    """Prepares calls under one setup; all share one tree of prefixes.

    What bills tell is learned before: `lengths` (None: no bill is known), in `warm` what was cached before the first
    call, and in `late_answers` by number of a call after how many seconds its answer had not begun yet.
    """

    setup: ReplaySetup
    prompts: HostPrompts
    lengths: BilledLengths | None = None
    warm: WarmPrefixes = field(default_factory=WarmPrefixes)
    late_answers: Mapping[int, float] = field(default_factory=dict)
    _kept: dict[CallKey, _RenderedCall] = field(default_factory=dict)
    _prepared: dict[CallKey, PreparedCall] = field(default_factory=dict)
    """Calls that are kept, as prepared since a bill was learned last."""
    _quotes: dict[tuple[int, int, bool], tuple[Quote, Mapping[str, Any], ModelRules]] = field(default_factory=dict)
    """Quotes, and what their keys name by identity: parameters and rules."""
    _contents: Mapping[int, Call] = field(default_factory=dict)
    """By id of a call, one that differs from it in its breakpoints only."""
    _margins: dict[int, PromptMargins] = field(default_factory=dict)
    """By id of a counter."""

    @classmethod
    def of(cls, setup: ReplaySetup) -> CallPreparer:
        """A preparer that has learned nothing."""
        return cls(setup, HostPrompts(setup.counter))

    def fork(self) -> CallPreparer:
        """A preparer on the same tree, which goes on to learn by itself."""
        lengths = self.lengths.copy() if self.lengths else None
        return CallPreparer(self.setup, self.prompts, lengths, self.warm, _kept=self._kept, _margins=self._margins)

    def with_contents(self, contents: Mapping[int, Call]) -> CallPreparer:
        """This preparer for calls that are known by their ids to differ from others in their breakpoints only.

        These calls must exist as long as it does. It is not to learn any more.
        """
        made = CallPreparer(
            self.setup, self.prompts, self.lengths, self.warm, _contents=contents, _margins=self._margins
        )
        made._kept, made._prepared, made._quotes = self._kept, self._prepared, self._quotes
        return made

    def fork_for(self, calls: Iterable[Call]) -> CallPreparer:
        """As `fork`; it also keeps these calls as rendered, by itself."""
        made = self.fork()
        made._kept = self._kept.copy()
        for call in calls:
            made.keep(call)
        return made

    def prompt_as_sent(self, call: Call) -> Prompt | None:
        """The prompt of a kept call, where its host receives the request as it is; else None. Raises CannotEvaluate."""
        kept = self._kept.get(_key(call, self.setup.rules_for(call)))
        return kept.prompts[0] if kept and kept.is_as_sent else None

    def keep(self, call: Call) -> None:
        """Keep a call as rendered, for all replays that send it again."""
        if call.has_failed or call.why_unknown:
            return
        try:
            rules = self.setup.rules_for(call)
            key = _key(call, rules)
            if key not in self._kept:
                sent = self.prompts.prepare_request(call.request, rules)
                refused = refusal(sent.told.request, sent.breakpoints, rules, is_batch=call.is_batch)
                is_as_sent = sent.told.request is call.request and sent.told.looks_at is None
                self._kept[key] = _RenderedCall(
                    call, rules, self._render(call, sent, rules), refused, sent.told.notes, is_as_sent
                )
        except CannotEvaluate:
            return

    def learn_all(self, calls: Sequence[Call], may_start_warm: bool = True) -> None:
        """Learn from all bills of a recording before any call is simulated: lengths (rule 17), and what was cached
        before the recording began (assumption `warm_start`), unless all is to start cold."""
        may_be_warm = may_start_warm and self.setup.rules.assumptions.warm_start == "as_billed"
        has_reads = any(call.billed is not None and call.billed.read for call in calls)
        sent = self._learn_bills(calls, has_reads)
        if self._render_sized(sent):
            sent = self._learn_bills(calls, has_reads)
        for number, call in enumerate(calls, 1):
            if call.lengths is not None and call.has_known_length:
                sized = replace(call.request, breakpoints=call.lengths.breakpoints(call.request), automatic=None)
                self.learn(number, replace(call, request=sized), call.lengths.usage)
        if self.lengths:
            known = [call for call in sent if call]
            for found in billed_reads(known, self.lengths.all, self.lengths.told, may_be_warm):
                self.lengths.learn_prefix(found.call, found.prefix, found.tokens)
                if isinstance(found, WarmStart):
                    self.warm.learn(found)
            self.late_answers = late_answers(known, self.lengths.all)

    def _learn_bills(self, calls: Sequence[Call], has_reads: bool) -> list[SentCall | None]:
        """The calls as rendered, their bills learned; those without one only where any call read."""
        sent: list[SentCall | None] = []
        answers: AnswerLengths | None = None
        check = current_work_check()
        for number, call in enumerate(calls, 1):
            if check is not None:
                check()
            if not call.billed and not has_reads:
                continue
            self.keep(call)
            sent.append(made := self.learn(number, call, call.billed))
            if made and made.rules.bills_reasoning and self.lengths:
                from cachecost.tokens.calibrated import AnswerLengths

                answers = answers or AnswerLengths(self.lengths)
                answers.learn(number, made.prompt, made.rules, made.billed, call.simulated_response)
        return sent

    def learn(self, number: int, call: Call, billed: Usage | None) -> SentCall | None:
        """The call as rendered, its bill learnt if it is that of each pass; None: it takes no part in any cache."""
        if call.has_failed or call.why_unknown:
            return None
        try:
            rules = self.setup.rules_for(call)
            kept = self._kept.get(_key(call, rules))
            prompts = (
                kept.prompts if kept else self._render(call, self.prompts.prepare_request(call.request, rules), rules)
            )
        except CannotEvaluate:
            return None
        self._prepared.clear()
        bills = call.pass_bills or ((billed,) if billed else ())
        if len(bills) != len(prompts):
            return SentCall(number, call.start, prompts[0], rules, is_timed=call.timestamp is not None)
        if self.lengths is None:
            from cachecost.tokens.calibrated import BilledLengths

            self.lengths = BilledLengths()
        for prompt, bill in zip(prompts, bills, strict=True):
            self.lengths.learn(number, prompt, bill, () if call.pass_bills else call.simulated_response)
        margin = self._margin(prompts, self.prompts.renderer(rules.generation).counter)
        times = call.timestamp is not None, call.first_token_s, call.rounding_s
        return SentCall(number, call.start, prompts[0], rules, bills[0], margin, *times)

    def _render_sized(self, sent: Iterable[SentCall | None]) -> bool:
        """Begin anew with the tokens of blocks that only bills give, the earliest bill first: other prompts may hold
        these, too. False: there are none."""
        prompts, is_any = HostPrompts(self.setup.counter), False
        for made in sent:
            if self.lengths is None or made is None or made.billed is None or not made.prompt.uncounted:
                continue
            sizes, billed = self.lengths.all(made.prompt), prompts.renderer(made.rules.generation).billed
            for node in prefixes_back(made.prompt.end):
                if node.parent and node.block and node.block.digest in made.prompt.uncounted:
                    frame = node.tokens - node.parent.tokens - UNCOUNTED_WEIGHT
                    billed.setdefault(node.block.digest, max(0, sizes.of(node) - sizes.of(node.parent) - frame))
                    is_any = True
        if is_any:
            self.prompts, self.lengths = prompts, None
            self._kept.clear()
        return is_any

    def prepare(self, call: Call) -> PreparedCall | UnpreparedCall:
        """The call as its host receives it, or why it has no usage."""
        content = self._contents.get(id(call))
        return (content and self._marked(call, content)) or self._prepare_any(call)

    def prepare_marked(self, call: Call, content: Call) -> PreparedCall | UnpreparedCall:
        """As `prepare`; the call differs from `content` in its breakpoints only."""
        return self._marked(call, content) or self._prepare_any(call)

    def _marked(self, call: Call, content: Call) -> PreparedCall | UnpreparedCall | None:
        """The call as `content` was prepared, with its own breakpoints; None: it must be rendered by itself."""
        try:
            rules = self.setup.rules_for(content)
            kept = self._kept.get(_key(content, rules))
            before = self._prepare(content, rules) if kept and kept.is_as_sent and len(kept.prompts) == 1 else None
        except CannotEvaluate:
            return None
        if not isinstance(before, PreparedCall):
            return None
        sent = self.prompts.prepare_request(call.request, rules)
        breakpoints = _moved_breakpoints(sent, content.request, before.prompts[0])
        if breakpoints is None or sent.told.request is not call.request or sent.told.looks_at is not None:
            return None
        if refused := refusal(call.request, sent.breakpoints, rules, is_batch=call.is_batch):
            return UnpreparedCall(None, refused, REFUSED)
        return replace(before, prompts=[replace(before.prompts[0], breakpoints=breakpoints)])

    def _prepare_any(self, call: Call) -> PreparedCall | UnpreparedCall:
        why = "" if call.has_failed else call.why_unknown
        if why and not call.may_be_refused:
            return UnpreparedCall(None, why, NOT_EVALUATED)
        try:
            rules = self.setup.rules_for(call)
            if why:
                refused = lacking_feature(call.request, rules)
                return UnpreparedCall(None, refused or why, REFUSED if refused else NOT_EVALUATED)
            return self._prepare(call, rules)
        except CannotEvaluate as error:
            return UnpreparedCall(None, str(error), NOT_EVALUATED)

    def _prepare(self, call: Call, rules: ModelRules) -> PreparedCall | UnpreparedCall:
        if call.has_failed:
            return UnpreparedCall("unknown", None, None)
        key = _key(call, rules)
        kept = self._kept.get(key)
        if kept is None:
            return self._prepare_anew(call, rules, None)
        made = self._prepared.get(key)
        if made is None:
            anew = self._prepare_anew(call, rules, kept)
            if isinstance(anew, UnpreparedCall):
                return anew
            made = self._prepared[key] = anew
        return made

    def _prepare_anew(self, call: Call, rules: ModelRules, kept: _RenderedCall | None) -> PreparedCall | UnpreparedCall:
        if kept:
            notes, refused = kept.notes, kept.refused
        else:
            sent = self.prompts.prepare_request(call.request, rules)
            notes = sent.told.notes
            refused = refusal(sent.told.request, sent.breakpoints, rules, is_batch=call.is_batch)
        if refused:
            return UnpreparedCall(None, refused, REFUSED, notes)
        try:
            prompts = kept.prompts if kept else self._render(call, sent, rules)
            renderer = self.prompts.renderer(rules.generation)
            counter = renderer.counter
            if call.output_tokens is None:
                output_tokens(call, counter)  # which a file in the answer may make impossible
            sizes = self._sizes_of(prompts, renderer)
            tokens = sizes[0].total(prompts[0])
            late = too_long(tokens, rules) if counter.name != "bytes" else None
            if late := late or lacks_room(prompts[0].total_tokens, rules):
                return UnpreparedCall(None, late, REFUSED, notes)
            prices, unpriced = self._prices_of(call, rules, tokens)
            ranges = (rules.range_in_words,) if rules.range_in_words else ()
            margin = self._margin(prompts, counter)
            return PreparedCall(rules, prompts, sizes, prices, counter, (*notes, *unpriced, *ranges), margin)
        except CannotEvaluate as error:
            return UnpreparedCall(None, str(error), NOT_EVALUATED, notes)

    def _sizes_of(self, prompts: Sequence[Prompt], renderer: Renderer) -> Sequence[PrefixSizes]:
        """The lengths of prompts. Raises CannotCount where neither counts nor bills give one."""
        lengths = self.lengths
        tells = lengths.tells_length if lengths else None
        unbilled = (prompt for prompt in prompts if lengths is None or not lengths.tells_total(prompt))
        if why := next(filter(None, (renderer.why_unsized(prompt, tells) for prompt in unbilled)), ""):
            raise CannotCount(why)
        return [lengths.all(prompt) for prompt in prompts] if lengths else [AS_COUNTED] * len(prompts)

    def _margin(self, prompts: Sequence[Prompt], counter: TokenCounter) -> float:
        margins = self._margins.get(id(counter))
        if margins is None:
            margins = self._margins[id(counter)] = PromptMargins(counter)
        return margins.of(prompts)

    def _prices_of(self, call: Call, rules: ModelRules, tokens: int) -> tuple[Prices, tuple[str, ...]]:
        """Prices of a call, whose quote is found once for all with the same parameters; none, with a note, where that
        may be. Raises CannotEvaluate."""
        book, request = self.setup.prices, call.request
        try:
            if book.has_hours(rules.host):
                return request_quote(book, call, rules).of(tokens), ()
            key = request.params_id, id(rules), call.is_batch
            found = self._quotes.get(key)
            if found is None:
                if len(self._quotes) >= MOST_QUOTES:
                    self._quotes.clear()
                found = self._quotes[key] = request_quote(book, call, rules), request.params, rules
            return found[0].of(tokens), ()
        except NoPrice as error:
            if not self.setup.may_lack_prices:
                raise
            return UNPRICED, (str(error),)

    def _render(self, call: Call, sent: PreparedRequest, rules: ModelRules) -> list[Prompt]:
        return self.prompts.render_prompts(sent, call.simulated_response, rules, call.workspace)


def _moved_breakpoints(sent: PreparedRequest, content: Request, prompt: Prompt) -> tuple[BreakpointPrefix, ...] | None:
    """The breakpoints as rendered, where `prompt` has some at the same places: that of `content`; None: it has not."""
    wanted = sent.breakpoints.breakpoints
    if not wanted:
        return ()
    there = sent_breakpoints(content).breakpoints
    if len(there) != len(prompt.breakpoints):
        return None
    known = {one.block_key: rendered.prefix for one, rendered in zip(there, prompt.breakpoints, strict=True)}
    if not all(one.block_key in known for one in wanted):
        return None
    return tuple([BreakpointPrefix(known[one.block_key], one.ttl) for one in wanted])


def _key(call: Call, rules: ModelRules) -> CallKey:
    """What a prompt depends on. An answer that is not known follows from the place of the call."""
    where = call.workspace, call.start, call.timestamp is None, call.line, call.is_batch
    return id(call.request), id(call.response), id(rules), *where


AS_RECORDED = "as recorded"


class Pass(msgspec.Struct, frozen=True):
    """One pass of a call: what was sent, how long that is, what the cache did with it.

    `losses` are what the first pass paid for again although an earlier call had sent it, `cut` what changed where it
    paid nothing.
    """

    prompt: Prompt
    sizes: PrefixSizes
    outcome: Outcome
    losses: tuple[Loss, ...] = ()
    cut: Loss | None = None

    @property
    def spans(self) -> Spans:
        """Where the prompt divides: the spans of rule 15, and the ends of the layers."""
        prompt, sizes, outcome = self.prompt, self.sizes, self.outcome
        hour_end = outcome.read + outcome.write_1h
        ends = sizes.at(prompt.tools_tokens), sizes.at(prompt.system_tokens)
        return Spans(outcome.read, hour_end, hour_end + outcome.write_5m, *ends, outcome.total)


class SimulatedCall(NamedTuple):
    """A call's row, and how it came about: one pass, or more with server tools; none where the row has no usage."""

    row: CallRow
    passes: tuple[Pass, ...] = ()
    rules: ModelRules | None = None
    prices: Prices | None = None

    def at(self, number: int) -> SimulatedCall:
        """The same as the `number`-th call; 0 leaves it as it is."""
        return self._replace(row=replace(self.row, call=number)) if number else self

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What the call paid for again although an earlier call had sent it."""
        return self.passes[0].losses if self.passes else ()

    @property
    def has_changed(self) -> bool:
        """Whether what the call before it sent has changed, or expired, on a host that finds it by itself: its bill may
        show that more was lost by it than here."""
        finds_by_itself = self.rules is not None and self.rules.finds_without_lookback
        return finds_by_itself and bool(self.passes) and bool(self.losses or self.passes[0].cut)

    @property
    def read_margin(self) -> float:
        """Tokens by which its read may be miscounted: the error margin of its counts, on what no bill tells, and a step
        of the host's, at whose end it may be."""
        doubt = self.passes[0].sizes.doubt(self.row.usage.read) if self.passes else 0
        if not (doubt and self.row.error_margin and self.rules):
            return 0.0
        step = max(self.rules.step_tokens, self.rules.reported_step_tokens)
        return max(self.row.error_margin, LAYER_ERROR) * doubt + step - 1

    @property
    def timeline(self) -> CallTimeline:
        """What the picture of the call needs besides its row."""
        if not self.passes:
            return EMPTY_TIMELINE
        first = self.passes[0]
        return build_timeline(first.prompt, first.sizes, first.outcome)


class Simulation:
    """One strategy's calls against one cache. Rows come out in the order calls go in.

    All calls of a tokenizer generation share one tree of prefixes. Calls to a self-hosted model without a price have
    rows that are not `is_priced` where the setup `may_lack_prices`; else they are not evaluated.
    """

    def __init__(
        self,
        setup: ReplaySetup,
        strategy: str = AS_RECORDED,
        cache: PrefixCache | None = None,
        preparer: CallPreparer | None = None,
        hosts: SimulatedHosts | None = None,
    ) -> None:
        """`preparer` has prepared calls of this setup before, and has learned from their bills. `hosts` have seen no
        call; `cache` is theirs if they are not given."""
        self._strategy = strategy
        self._hosts = hosts or SimulatedHosts(cache)
        self._preparer = preparer or CallPreparer.of(setup)
        self._warm = self._preparer.warm.copy()
        self._machines = MachineRanges()
        self.notes: dict[str, None] = {}
        """Sentences on what a host does not support or has no price for, each once."""
        self._number = 0
        self._check = current_work_check()

    def learn(self, number: int, call: Call, billed: Usage) -> None:
        """Learn from the bill of the `number`-th call (from 1)."""
        self._preparer.learn(number, call, billed)

    def rows(self, calls: Iterable[Call]) -> Iterator[CallRow]:
        """The ledger row of each call."""
        for call in calls:
            yield self.row(call)

    def row(self, call: Call) -> CallRow:
        """Simulate one call. What cannot be evaluated or is refused is a row with its error."""
        return self.simulate(call).row

    def simulate(self, call: Call) -> SimulatedCall:
        """As `row`, with what the cache did."""
        if self._check is not None:
            self._check()
        self._number += 1
        made = self._preparer.prepare(call)
        if made.notes:
            self.notes.update(dict.fromkeys(made.notes))
        if isinstance(made, UnpreparedCall):
            error = {"error": made.error, "error_type": made.kind}
            return SimulatedCall(self._row(call, Usage(), Cost(), made.cause, by_layer={}, cost_by_layer={}, **error))
        return self._make_call(call, made)

    def _make_call(self, call: Call, made: PreparedCall) -> SimulatedCall:
        rules, prompts, sizes = made.rules, made.prompts, made.sizes
        warm = self._warm.pop(prompts[0])  # cached before the recording began: this is the first call that sends it
        if warm:
            self._hosts.warm_prefix(prompts[0], warm.prefix, warm.ttl, rules, call.start)
        if call.most_read is not None:
            self._hosts.forget_longer(prompts[0], call.most_read, rules, sizes[0])
        times = call.start, call.ready_s
        looked = self._hosts.inspect(call.request, prompts, rules, call.workspace, times, sizes, self._number)
        outcomes, cause = looked.outcomes, looked.cause
        shared = rules.shared_by_all(bool(call.request.tools.blocks))
        if call.billed is not None and call.billed.read and shared.usual:
            outcomes = [with_shared_prefix(one, shared) for one in outcomes]
        self._hosts.note_answer(prompts[-1], rules, call.billed.output_tokens if call.billed else 0, call.response)
        losses, change = looked.losses, max(looked.losses, key=lambda loss: loss.tokens, default=looked.cut)
        if call.most_read is not None and not rules.finds_without_lookback:
            outcomes[0] = outcomes[0].with_read(call.most_read)
        elif call.most_read is not None and (change or not call.is_lost_by_change):
            lost = outcomes[0].read - call.most_read
            if lost > 0:
                outcomes[0] = replace(outcomes[0], read=call.most_read, uncached=outcomes[0].uncached + lost)
            if change and lost > 0:
                more = lost + change.tokens if change in losses else max(lost, change.tokens - call.most_read)
                losses, cause = (replace(change, tokens=more),), change.cause
        if call.least_read is not None and (change or outcomes[0].hit or self._preparer.setup.is_warm_as_billed):
            outcomes[0] = with_least_read(outcomes[0], call.least_read)
        if warm and not looked.losses and (hit := outcomes[0].hit) and hit.depth <= warm.prefix.depth:
            cause = WARM_START
        first = Pass(prompts[0], sizes[0], outcomes[0], losses, looked.cut)
        passed = (first, *map(Pass, prompts[1:], sizes[1:], outcomes[1:]))
        return SimulatedCall(self._row_with_usage(call, passed, made, cause), passed, rules, made.prices)

    def note_answer(self, simulated: SimulatedCall) -> None:
        """The answer to the latest call was sent as it is billed: some hosts read it where it comes back as long."""
        if simulated.rules is not None and simulated.passes:
            output = simulated.row.usage.output_tokens
            self._hosts.note_answer(simulated.passes[-1].prompt, simulated.rules, output)

    def pass_over(self) -> int:
        """Count a call that is not made here, since it is known; returns its number."""
        self._number += 1
        return self._number

    def _least_read(self, call: Call, rules: ModelRules, passed: Sequence[Pass]) -> int | None:
        """The tokens that a call reads at least where its hits are not certain; None: they are."""
        read = sum(one.outcome.read for one in passed)
        least = None if rules.read_range is None else ceil(rules.read_range.least * read)
        if rules.varies_by_machine:
            first = passed[0]
            bounds = self._machines.range_of(first.prompt, first.sizes, rules, read)
            self._machines.add(first.prompt, read)
            least = bounds.least if bounds else read
        return 0 if call.is_batch else least

    def _row_with_usage(self, call: Call, passed: Sequence[Pass], made: PreparedCall, cause: str) -> CallRow:
        prices, is_recorded = made.prices, call.output_tokens is not None or has_no_output(call)
        usage = passed[0].outcome.usage_with(output_tokens(call, made.counter))
        for later in passed[1:]:
            usage += later.outcome.usage
        if uses := call.tool_uses:
            usage = replace(usage, tool_uses=uses)
        spans = [one.spans for one in passed]
        estimated = None
        if is_recorded and self._preparer.lengths:
            pairs = zip(passed, spans, strict=True)
            usd = [estimated_usd(one.prompt, where, one.sizes, prices) for one, where in pairs]
            estimated = usd[0] if len(usd) == 1 else sum(usd, ZERO)
        least, by_layer, if_missed = self._least_read(call, made.rules, passed), TokensByLayer(spans), None
        if least is not None and prices.are_known:  # what was read but this had to be written again
            name = "write_1h" if made.rules.charged_ttl == "1h" else "write_5m"
            more = {name: getattr(usage, name) + usage.read - least}
            written = replace(usage, read=least, **more)
            if_missed = prices.total_cost(written)
        return self._row(
            call,
            usage,
            Cost(*prices.amounts(usage)),
            cause,
            by_layer=by_layer,
            cost_by_layer=DollarsByLayer(by_layer, prices),
            output_is_recorded=is_recorded,
            cost_if_missed=if_missed,
            is_priced=prices.are_known,
            estimated_usd=estimated,
            error_margin=made.error_margin,
        )

    def _row(self, call: Call, usage: Usage, cost: Cost, cause: str | None, **more: Any) -> CallRow:
        return CallRow(
            self._number,
            call.start,
            call.timestamp,
            self._strategy,
            call.request.model,
            usage,
            cost,
            cause,
            purpose=call.purpose,
            turn=call.turn,
            inquiry=call.inquiry,
            session=call.session,
            project=call.project,
            agent=call.agent,
            file=call.file,
            line=call.line,
            **more,
        )
