"""Requests in time order -> a ledger: rules, cache, prices and causes, one call after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from cachecost.base.structs import replace, value
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.caches.hosts import SimulatedHosts
from cachecost.caches.losses import Loss
from cachecost.caches.machine_ranges import MachineRanges
from cachecost.caches.read_ranges import least_read, with_shared_prefix
from cachecost.conversations.calls import Call, RecordedCall
from cachecost.ledger.layers import DollarsByLayer, Spans, TokensByLayer
from cachecost.ledger.margin import estimated_usd
from cachecost.ledger.rows import WARM_START, ZERO, CallRow, Cost
from cachecost.ledger.timelines import EMPTY_TIMELINE, CallTimeline, build_timeline
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.simulation.call_preparer import CallPreparer, PreparedCall, has_no_output, output_tokens

if TYPE_CHECKING:
    from cachecost.simulation.setup import ReplaySetup

AS_RECORDED = "as recorded"


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

    def learn(self, number: int, call: Call, billed: Usage) -> None:
        """Learn from the bill of the `number`-th call (from 1)."""
        self._preparer.learn(number, call, billed)

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
        made = self._preparer.prepare(call)
        if made.notes:
            self.notes.update(dict.fromkeys(made.notes))
        if isinstance(made, PreparedCall):
            return self._make(call, made)
        return self._without_usage(call, made.cause, made.error, made.kind)

    def note_answer(self, simulated: SimulatedCall) -> None:
        """The answer to the latest call was sent as it is billed: some hosts read it where it comes back as long."""
        if simulated.rules is not None and simulated.passes:
            output = simulated.row.usage.output_tokens
            self._hosts.note_answer(simulated.passes[-1].prompt, simulated.rules, output)

    def pass_over(self) -> int:
        """Count a call that is not made here, since it is known; returns its number."""
        self._number += 1
        return self._number

    def _make(self, call: Call, made: PreparedCall) -> SimulatedCall:
        """Make a call against the cache."""
        rules, prompts, sizes = made.rules, made.prompts, made.sizes
        times = call.start, call.ready_s
        warm = self._start_warm(prompts[0], rules, call.start)
        if call.most_read is not None:
            self._hosts.forget_longer(prompts[0], call.most_read, rules, sizes[0])
        looked = self._hosts.inspect(
            call.request, prompts, rules, call.workspace, times, sizes, call.file, self._number
        )
        outcomes, cause = looked.outcomes, looked.cause
        if isinstance(call, RecordedCall) and call.billed is not None:
            if rules.shared_prefix_most_tokens:
                outcomes = [with_shared_prefix(one, rules) for one in outcomes]
            if call.billed.output_tokens:
                self._hosts.note_answer(prompts[-1], rules, call.billed.output_tokens)
        if call.most_read is not None:
            outcomes[0] = outcomes[0].with_read(call.most_read)
        if warm and not looked.losses and (hit := outcomes[0].hit) and hit.depth <= warm.depth:
            cause = WARM_START
        passed = tuple(map(Pass, prompts, sizes, outcomes, (looked.losses, *[()] * (len(prompts) - 1))))
        row = self._with_usage(call, passed, made, cause, self._least_read(call, rules, passed))
        return SimulatedCall(row, passed, rules, made.prices)

    def _least_read(self, call: Call, rules: ModelRules, passed: Sequence[Pass]) -> int | None:
        """The tokens that a call reads at least where its hits are not certain; None: they are."""
        read = sum(one.outcome.read for one in passed)
        least = least_read(rules, read)
        if rules.varies_by_machine:
            first = passed[0]
            bounds = self._machines.range_of(first.prompt, first.sizes, rules, read)
            self._machines.add(first.prompt, read)
            least = bounds.least if bounds else read
        return 0 if call.is_batch else least

    def _with_usage(
        self,
        call: Call,
        passed: Sequence[Pass],
        made: PreparedCall,
        cause: str,
        least: int | None,
    ) -> CallRow:
        prices = made.prices
        usage = passed[0].outcome.usage_with(output_tokens(call, made.counter))
        is_recorded = call.output_tokens is not None or has_no_output(call)
        for later in passed[1:]:
            usage += later.outcome.usage
        return CallRow(
            self._number,
            call.start,
            call.timestamp,
            self._strategy,
            call.request.model,
            usage,
            Cost(*prices.amounts(usage)),
            cause,
            output_is_recorded=is_recorded,
            cost_if_missed=if_missed(usage, prices, least) if least is not None and prices.are_known else None,
            is_priced=prices.are_known,
            error_margin=made.error_margin,
            **self._details(call, passed, prices, is_recorded),
        )

    def _details(self, call: Call, passed: Sequence[Pass], prices: Prices, is_recorded: bool) -> dict[str, Any]:
        """The fields of a row that say more than what the call costs: its layers, what is estimated, where it is from.

        `is_recorded`: the length of its output is.
        """
        spans = [_spans(one) for one in passed]
        by_layer = TokensByLayer(spans)
        is_estimated = bool(self._preparer.lengths) and is_recorded
        return {
            "by_layer": by_layer,
            "cost_by_layer": DollarsByLayer(by_layer, prices),
            "purpose": call.purpose,
            "turn": call.turn,
            "inquiry": call.inquiry,
            "estimated_usd": self._estimate_error(passed, spans, prices) if is_estimated else None,
            "session": call.session,
            "project": call.project,
            "agent": call.agent,
            "file": call.file,
            "line": call.line,
        }

    @staticmethod
    def _estimate_error(passed: Sequence[Pass], spans: Sequence[Spans], prices: Prices) -> Decimal:
        each = zip(passed, spans, strict=True)
        usd = [estimated_usd(one.prompt, where, one.sizes, prices) for one, where in each]
        return usd[0] if len(usd) == 1 else sum(usd, ZERO)

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


def if_missed(usage: Usage, prices: Prices, least: int = 0) -> Decimal:
    """Dollars if what was read, but `least` tokens of it, had to be written again, for five minutes."""
    written = replace(usage, read=least, write_5m=usage.write_5m + usage.read - least)
    return prices.total_cost(written)


def _spans(one: Pass) -> Spans:
    """Where a pass's prompt divides: the spans of rule 15, and the ends of the layers."""
    prompt, sizes, outcome = one.prompt, one.sizes, one.outcome
    b = outcome.read + outcome.write_1h
    ends = sizes.at(prompt.tools_tokens), sizes.at(prompt.system_tokens)
    return Spans(outcome.read, b, b + outcome.write_5m, *ends, outcome.total)
