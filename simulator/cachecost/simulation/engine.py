"""Requests in time order -> a ledger: rules, cache, prices and causes, one call after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import value
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.caches.hosts import SimulatedHosts
from cachecost.caches.losses import Loss
from cachecost.caches.warm_starts import SentCall, WarmPrefixes, warm_starts
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.ledger.layers import DollarsByLayer, Spans, TokensByLayer
from cachecost.ledger.margin import estimated_usd
from cachecost.ledger.rows import WARM_START, ZERO, CallRow, Cost
from cachecost.ledger.timelines import EMPTY_TIMELINE, CallTimeline, build_timeline
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.counting import TokenCounter
from cachecost.prompts.refusals import lacking_feature, refusal
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.prices import NoPrice, PriceBook, Prices, ways_of
from cachecost.providers.quotes import UNPRICED
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage

if TYPE_CHECKING:
    from cachecost.simulation.setup import ReplaySetup
    from cachecost.tokens.calibrated import BilledLengths

AS_RECORDED = "as recorded"
REFUSED = "invalid_request_error"
NOT_EVALUATED = "not_evaluated"
BEST_EFFORT = "best_effort"


def request_prices(
    book: PriceBook, request: Request, rules: ModelRules, tokens: int, is_batch: bool, start: float | None = None
) -> Prices:
    """Prices of `request` on the day of its rules, for a prompt of `tokens`. Raises CannotEvaluate.

    `start` is when it was made (seconds since the epoch), where that is known: some hosts have hours that cost more.
    """
    return book.prices(
        rules.host,
        rules.model,
        rules.day,
        tokens,
        batch=is_batch,
        **ways_of(request.params),
        moment=datetime.fromtimestamp(start, UTC) if start is not None and book.has_hours(rules.host) else None,
    )


@value
class Pass:
    """One pass of a call: what was sent, how long that is, what the cache did with it.

    `losses` are what the first pass paid for again although an earlier call had sent it, on hosts with a lookback.
    """

    prompt: Prompt
    sizes: PrefixSizes
    outcome: Outcome
    losses: tuple[Loss, ...] = ()


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
    def strip(self) -> CallTimeline:
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

    def __init__(self, setup: ReplaySetup, strategy: str = AS_RECORDED, cache: PrefixCache | None = None) -> None:
        self._setup = setup
        self._strategy = strategy
        self._hosts = SimulatedHosts(setup.counter, cache)
        self.notes: dict[str, None] = {}
        """Sentences on what a host does not support or has no price for, each once."""
        self._number = 0
        self._anchors: BilledLengths | None = None
        self._warm = WarmPrefixes()

    def learn_all(self, calls: Sequence[RecordedCall], may_start_warm: bool = True) -> None:
        """Learn from all bills of a recording before any row is made: lengths (rule 17), and what was cached before
        the recording began (assumption `warm_start`), unless all is to start cold."""
        is_asked = may_start_warm and self._setup.rules.assumptions.warm_start == "as_billed"
        may_be_warm = is_asked and any(call.billed is not None and call.billed.read for call in calls)
        sent = [
            self._learn(number, call, call.billed) for number, call in enumerate(calls, 1) if call.billed or may_be_warm
        ]
        for number, call in enumerate(calls, 1):
            if call.lengths is not None and call.has_known_length:
                sized = replace(call.request, breakpoints=call.lengths.breakpoints(call.request), automatic=None)
                self._learn(number, replace(call, request=sized), call.lengths.usage)
        if may_be_warm and self._anchors:
            self._find_warm_starts([call for call in sent if call], self._anchors)

    def learn(self, number: int, call: Call, billed: Usage) -> None:
        """Learn from the bill of the `number`-th call (from 1)."""
        self._learn(number, call, billed)

    def _learn(self, number: int, call: Call, billed: Usage | None) -> SentCall | None:
        """The call as rendered, its bill learnt if it is that of each pass; None: it takes no part in any cache."""
        if call.has_failed or call.why_unknown:
            return None
        try:
            rules = self._setup.rules_for(call)
            prompts = self._hosts.render_prompts(
                self._hosts.prepare_request(call.request, rules), call.simulated_response, rules, call.workspace
            )
        except CannotEvaluate:
            return None
        bills = call.pass_bills or ((billed,) if billed else ())
        if len(bills) != len(prompts):
            return SentCall(number, call.start, prompts[0], rules)
        if self._anchors is None:
            from cachecost.tokens.calibrated import BilledLengths

            self._anchors = BilledLengths()
        for prompt, bill in zip(prompts, bills, strict=True):
            self._anchors.learn(number, prompt, bill)
        return SentCall(number, call.start, prompts[0], rules, bills[0])

    def _find_warm_starts(self, sent: Sequence[SentCall], anchors: BilledLengths) -> None:
        for found in list(warm_starts(sent, anchors.all, anchors.told)):
            anchors.learn_prefix(found.call, found.prefix, found.tokens)
            self._warm.learn(found)

    @property
    def warm_prefixes(self) -> WarmPrefixes:
        """What was cached before the recording began and no simulated call has sent yet."""
        return self._warm.copy()

    def _start_warm(self, prompt: Prompt, rules: ModelRules, start: float) -> Prefix | None:
        """Put what was cached before the recording began into the cache, before the first call that sends it."""
        found = self._warm.take(prompt)
        if found is None:
            return None
        self._hosts.warm_prefix(prompt, found.prefix, found.ttl, rules, start)
        return found.prefix

    def rows(self, calls: Iterable[Call]) -> Iterator[CallRow]:
        """The ledger row of each call."""
        for call in calls:
            yield self.row(call)

    def row(self, call: Call) -> CallRow:
        """Simulate one call. What cannot be evaluated or is refused is a row with its error."""
        return self.simulate(call).row

    def simulate(self, call: Call) -> SimulatedCall:
        """As `row`, with what the cache did."""
        self._number += 1
        why = "" if call.has_failed else call.why_unknown
        if why and not call.may_be_refused:
            return self._without_usage(call, None, why, NOT_EVALUATED)
        try:
            rules = self._setup.rules_for(call)
            if why:
                refused = lacking_feature(call.request, rules)
                return self._without_usage(call, None, refused or why, REFUSED if refused else NOT_EVALUATED)
            return self._evaluate(call, rules)
        except CannotEvaluate as error:
            return self._without_usage(call, None, str(error), NOT_EVALUATED)

    def _evaluate(self, call: Call, rules: ModelRules) -> SimulatedCall:
        if call.has_failed:
            return self._without_usage(call, "unknown", None, None)
        sent = self._hosts.prepare_request(call.request, rules)
        told, breakpoints = sent.told.request, sent.breakpoints
        self.notes.update(dict.fromkeys(sent.told.notes))
        if early := refusal(told, breakpoints, rules):
            return self._without_usage(call, None, early, REFUSED)
        counter = self._hosts.renderer(rules.generation).counter
        prompts = self._hosts.render_prompts(sent, call.simulated_response, rules, call.workspace)
        sizes = [self._anchors.all(prompt) if self._anchors else AS_COUNTED for prompt in prompts]
        tokens = sizes[0].total(prompts[0])
        length = 0 if counter.name == "bytes" else tokens
        if length and (late := refusal(told, breakpoints, rules, length)):
            return self._without_usage(call, None, late, REFUSED)
        start = None if call.timestamp is None else call.start
        prices = self._prices_of(call, rules, tokens, start)
        times = call.start, call.first_token_s
        warm = self._start_warm(prompts[0], rules, call.start)
        if call.most_read is not None:
            self._hosts.forget_longer(prompts[0], call.most_read, rules, sizes[0])
        looked = self._hosts.inspect(
            call.request, prompts, rules, call.workspace, times, sizes, call.file, self._number
        )
        outcomes, cause = looked.outcomes, looked.cause
        if call.most_read is not None:
            outcomes[0] = outcomes[0].with_read(call.most_read)
        if warm and not looked.losses and (hit := outcomes[0].hit) and hit.depth <= warm.depth:
            cause = WARM_START
        passed = tuple(map(Pass, prompts, sizes, outcomes, (looked.losses, *[()] * (len(prompts) - 1))))
        may_miss = call.is_batch or rules.matching == BEST_EFFORT
        row = self._with_usage(call, passed, prices, cause, counter, may_miss)
        return SimulatedCall(row, passed, rules, prices)

    def _prices_of(self, call: Call, rules: ModelRules, tokens: int, start: float | None) -> Prices:
        """Prices of a call; none, with a note, where that may be. Raises CannotEvaluate."""
        try:
            return request_prices(self._setup.prices, call.request, rules, tokens, call.is_batch, start)
        except NoPrice as error:
            if not self._setup.may_lack_prices:
                raise
            self.notes[str(error)] = None
            return UNPRICED

    def _with_usage(
        self,
        call: Call,
        passed: Sequence[Pass],
        prices: Prices,
        cause: str,
        counter: TokenCounter,
        may_miss: bool,
    ) -> CallRow:
        output = 0 if call.request.params.get("max_tokens") == 0 else call.output_tokens
        counted = output if output is not None else sum(counter.block(block) for block in call.output)
        usage = passed[0].outcome.usage_with(counted)
        for later in passed[1:]:
            usage += later.outcome.usage
        spans = [_spans(one) for one in passed]
        by_layer = TokensByLayer(spans)
        return CallRow(
            self._number,
            call.start,
            call.timestamp,
            self._strategy,
            call.request.model,
            usage,
            Cost(**prices.cost(usage)),
            cause,
            by_layer,
            DollarsByLayer(by_layer, prices),
            call.purpose,
            call.turn,
            call.inquiry,
            output_is_recorded=output is not None,
            cost_if_missed=_if_missed(usage, prices) if may_miss and prices.are_known else None,
            is_priced=prices.are_known,
            estimated_usd=self._estimate_error(passed, spans, prices) if self._anchors and output is not None else None,
            session=call.session,
            project=call.project,
            agent=call.agent,
            file=call.file,
            line=call.line,
        )

    @staticmethod
    def _estimate_error(passed: Sequence[Pass], spans: Sequence[Spans], prices: Prices) -> Decimal:
        each = zip(passed, spans, strict=True)
        return sum((estimated_usd(one.prompt, where, one.sizes, prices) for one, where in each), ZERO)

    def _without_usage(self, call: Call, cause: str | None, error: str | None, kind: str | None) -> SimulatedCall:
        row = CallRow(
            self._number,
            call.start,
            call.timestamp,
            self._strategy,
            call.request.model,
            Usage(),
            Cost(),
            cause,
            {},
            {},
            call.purpose,
            call.turn,
            call.inquiry,
            error,
            error_type=kind,
            session=call.session,
            project=call.project,
            agent=call.agent,
            file=call.file,
            line=call.line,
        )
        return SimulatedCall(row)


def _if_missed(usage: Usage, prices: Prices) -> Decimal:
    """Dollars if what was read had to be written again, for five minutes."""
    written = replace(usage, read=0, write_5m=usage.write_5m + usage.read)
    return prices.total_cost(written)


def _spans(one: Pass) -> Spans:
    """Where a pass's prompt divides: the spans of rule 15, and the ends of the layers."""
    prompt, sizes, outcome = one.prompt, one.sizes, one.outcome
    b = outcome.read + outcome.write_1h
    ends = sizes.at(prompt.tools_tokens), sizes.at(prompt.system_tokens)
    return Spans(outcome.read, b, b + outcome.write_5m, *ends, outcome.total)
