"""Predicted against billed, call by call; a call's own bill never sizes its own prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise

from cachecost.analysis.fidelity.earlier import Earlier
from cachecost.analysis.fidelity.exercised_rules import Facts, broken, exercised
from cachecost.analysis.fidelity.features import features_of
from cachecost.analysis.fidelity.rule_claims import claimed, named, refused
from cachecost.analysis.fidelity.verdicts import Held, Possible, Verdict, of_marks, of_prefixes, of_range
from cachecost.base.errors import CannotEvaluate
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.hosts import Hosts
from cachecost.caches.warm_starts import SentBefore, SentCall
from cachecost.conversations.readers.request_log.reader import LoggedCall
from cachecost.ledger.results import ZERO, Judgement
from cachecost.ledger.rows import WARM_START
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.counting import TokenCounter
from cachecost.prompts.refusals import refusal
from cachecost.prompts.render import Prompt
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import Usage
from cachecost.replay.simulation import logged, request_prices
from cachecost.tokens.anchored import AnchoredSizes, Anchors, Estimates

KnownSizes = AnchoredSizes | Estimates
VERDICTS = {"grid": of_prefixes, "units": of_prefixes, "best_effort": of_range}
"""By what the rules of a host without marks state as `matching`."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A call, rendered: one prompt a pass. Without a bill it only takes part in the cache."""

    number: int
    call: LoggedCall
    bill: Usage | None
    rules: ModelRules
    prompts: tuple[Prompt, ...]

    @property
    def pass_bills(self) -> tuple[Usage, ...]:
        """The bill of each prompt; empty where only their sum is told."""
        bills = self.call.pass_bills or ((self.bill,) if self.bill else ())
        return bills if len(bills) == len(self.prompts) else ()

    @property
    def billed(self) -> Usage:
        return self.bill or Usage()


@dataclass(frozen=True, slots=True)
class _Prediction:
    outcomes: tuple[Outcome, ...]
    cause: str

    @property
    def usage(self) -> Usage:
        return sum((one.usage for one in self.outcomes), Usage())

    @property
    def hit(self) -> Prefix | None:
        return self.outcomes[0].hit

    def held(self, case: _Case, sizes: KnownSizes) -> Held:
        """Beside the bill of its call, where that has one."""
        is_told = self.hit is not None and (
            sizes.told_as_end(self.hit) if case.rules.is_unmarked else sizes.told(self.hit) is not None
        )
        first_read = case.pass_bills[0].read if case.pass_bills else None
        return Held(case.billed, self.usage, self.hit, is_told, len(case.prompts), first_read)


class Judge:
    """Judges recordings, each a cache of its own. `counter_for` makes the estimates between what bills tell."""

    def __init__(
        self,
        rules: RuleBook,
        prices: PriceBook,
        counter_for: Callable[[str], TokenCounter],
        host: str = "anthropic",
        anchored: bool = True,
    ) -> None:
        self.anchored = anchored
        self.rules = rules
        self.prices = prices
        self.counter_for = counter_for
        self.host = host

    def judge(self, source: str, calls: Sequence[LoggedCall]) -> tuple[list[Judgement], list[tuple[str, str]]]:
        """(judgements, what could not be judged) of one recording, in its order."""
        room = _Room(self, source)
        for number, call in enumerate(calls, 1):
            room.take(number, call)
        judgements = filter(None, [room.judgement(case) for case in room.cases])
        return sorted(judgements, key=lambda judgement: judgement.call), room.not_judged


class _Room:
    """One recording: its prompts, its bills, its caches."""

    def __init__(self, judge: Judge, source: str) -> None:
        self.judge = judge
        self.source = source
        self.cases: list[_Case] = []
        self.not_judged: list[tuple[str, str]] = []
        self.anchors = Anchors()
        self.hosts = Hosts(judge.counter_for)
        self.written: set[Prefix] = set()
        self.sent = SentBefore()
        self.earlier = Earlier()

    def take(self, number: int, call: LoggedCall) -> None:
        """Render a call, and learn what its bill tells; calls without a bill only take part in the cache."""
        try:
            rules = self.judge.rules.rules(call.host or self.judge.host, call.request.model, call.day)
            case = self._case(number, call, rules)
        except CannotEvaluate as error:
            self.not_judged.append((f"{self.source}:{call.line}", str(error)))
            return
        if case is None:
            return
        self.cases.append(case)
        for prompt, bill in zip(case.prompts, case.pass_bills, strict=False):
            self.anchors.learn(number, prompt, bill)

    def _case(self, number: int, call: LoggedCall, rules: ModelRules) -> _Case | None:
        if call.failed or call.billed is None:
            self.not_judged.append((f"{self.source}:{call.line}", "it failed" if call.failed else "it has no usage"))
        if call.why_unknown and not call.failed:
            self.not_judged.append((f"{self.source}:{call.line}", call.why_unknown))
        if call.failed or call.why_unknown:
            return None
        sent = self.hosts.sent(call.request, rules)
        if why := refusal(sent.told.request, sent.marks, rules):
            self.not_judged.append((f"{self.source}:{call.line}", f"the API would refuse it: {why}"))
            return None
        prompts = self.hosts.prompts(sent, logged(call).response, rules, call.workspace)
        bill = sum(call.pass_bills, Usage()) if call.pass_bills else call.billed
        return _Case(number, call, bill, rules, tuple(prompts))

    def judgement(self, case: _Case) -> Judgement | None:
        """Predict the call from what came before it, then look at its bill; None where it has none."""
        sizes = [self._sizes(case, prompt) for prompt in case.prompts]
        possible = [] if case.rules.is_unmarked else list(self._possible(case, sizes))
        reach = self._reach(case, sizes[0])
        prediction = self._predict(case, sizes)
        self.written.update(mark.prefix for prompt in case.prompts for mark in prompt.marks)
        if case.bill is None:
            self.sent.add(case.prompts[0])
            return None
        held = prediction.held(case, sizes[0])
        if case.rules.is_unmarked:
            verdict = VERDICTS[case.rules.matching](held, reach)
        else:
            verdict = self._seen_alive(case, sizes[0], of_marks(held, possible, case.rules.visibility_lag))
        self.sent.add(case.prompts[0])
        if not case.pass_bills and len(case.prompts) > 1 and verdict.kind != "unknown":
            self._learn_passes(case, prediction)
        return self._judged(case, prediction, verdict)

    def _seen_alive(self, case: _Case, sizes: KnownSizes, verdict: Verdict) -> Verdict:
        """What a bill proves to be in the cache although nobody recorded it is there for the calls that come after.

        It was written before the recording began, or kept alive by others.
        """
        marks = case.prompts[0].marks
        found, ttl = verdict.found, str(marks[-1].ttl) if marks else "5m"
        if verdict.kind == "unknown" and found is None and case.rules.switches.warm_start == "as_billed":
            billed = case.bill if len(case.prompts) == 1 else None
            sent = SentCall(case.number, case.call.start, case.prompts[0], case.rules, billed)
            if warm := self.sent.warm_start(sent, sizes):
                self.anchors.learn_prefix(case.number, warm.prefix, warm.tokens)
                verdict, found, ttl = replace(verdict, cause=WARM_START), warm.prefix, warm.ttl
        if found is not None:
            self.hosts.warm(case.prompts[0], found, ttl, case.rules, case.call.start)
        return verdict

    def _judged(self, case: _Case, prediction: _Prediction, verdict: Verdict) -> Judgement:
        facts = _facts(case, prediction)
        proves, breaks = _evidence(facts, verdict)
        return Judgement(
            self.source,
            case.call.number or case.number,
            case.call.line,
            case.call.request.model,
            verdict.kind,
            verdict.exact,
            facts.predicted,
            facts.billed,
            self._dollars(case, facts.predicted),
            self._dollars(case, facts.billed),
            verdict.reason,
            case.call.source,
            features_of(case.call.request, facts.passes),
            proves,
            breaks,
            case.rules.host,
            case.rules.matching,
            verdict.holds,
            verdict.cause,
        )

    def _sizes(self, case: _Case, prompt: Prompt) -> KnownSizes:
        return self.anchors.without(case.number, prompt) if self.judge.anchored else Estimates()

    def _possible(self, case: _Case, sizes: Sequence[KnownSizes]) -> Iterator[Possible]:
        """Each entry that could be there, the longest first."""
        now, is_single = case.call.start, len(case.prompts) == 1
        node: Prefix | None = case.prompts[0].end
        while node is not None:
            if node in self.written:
                read, is_told = self._read_after(case, sizes, node), sizes[0].told(node) is not None and is_single
                entry = self.hosts.entry(node, case.rules)
                age = now - entry.started if entry else math.inf
                expired = now - entry.touched - entry.ttl_s if entry and entry.state(now) == "expired" else None
                yield Possible(node, read, is_told, age, expired)
            node = node.parent

    def _reach(self, case: _Case, sizes: KnownSizes) -> int:
        """How much of its prompt earlier calls sent, in tokens; 0 where that is of no matter."""
        sent = self.earlier.reach(case.prompts[0].end, case.call.start) if case.rules.is_unmarked else None
        return sizes.of(sent) if sent is not None else 0

    def _read_after(self, case: _Case, sizes: Sequence[KnownSizes], hit: Prefix) -> int:
        """What the passes of a call read together when the first one reads `hit`."""
        later = (_shared(before, after) for before, after in pairwise(case.prompts))
        read = sum(size.of(prefix) for prefix, size in zip(later, sizes[1:], strict=True) if prefix is not None)
        return sizes[0].of(hit) + read

    def _learn_passes(self, case: _Case, prediction: _Prediction) -> None:
        """What a sum over passes tells, if the first one read what was predicted, and earlier bills tell how much."""
        read = self.anchors.told_before(case.number, prediction.hit) if prediction.hit else 0
        marked = [prompt.marks[-1].prefix for prompt in case.prompts if prompt.marks]
        if read is None or not marked:
            return
        self.anchors.learn_prefix(case.number, marked[-1], case.billed.write + read)
        if len(marked) == 2:
            self.anchors.learn_prefix(case.number, marked[0], case.billed.read - read)

    def _predict(self, case: _Case, sizes: Sequence[KnownSizes]) -> _Prediction:
        call = case.call
        times = call.start, call.first_token_s
        outcomes, cause = self.hosts.answers(call.request, case.prompts, case.rules, call.workspace, times, sizes)
        return _Prediction(tuple(outcomes), cause)

    def _dollars(self, case: _Case, usage: Usage) -> Decimal | None:
        try:
            prices = request_prices(
                self.judge.prices, case.call.request, case.rules, usage.total_input, case.call.is_batch
            )
        except CannotEvaluate:
            return None
        paid = Usage(usage.input_tokens, usage.read, usage.write_5m, usage.write_1h)
        return sum(prices.cost(paid).values(), ZERO)


def _shared(before: Prompt, after: Prompt) -> Prefix | None:
    """The longest prefix that one pass marks and the next one begins with."""
    marked = {mark.prefix for mark in before.marks}
    node: Prefix | None = after.end
    while node is not None and node not in marked:
        node = node.parent
    return node


def _facts(case: _Case, prediction: _Prediction) -> Facts:
    return Facts(
        case.call.request,
        case.rules,
        case.prompts[0],
        prediction.outcomes[0],
        prediction.cause,
        len(case.prompts),
        case.call.timestamp is not None,
        prediction.usage,
        case.billed,
    )


def _evidence(facts: Facts, verdict: Verdict) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(rules that the call is evidence for or against, those that its bill refuses): the rulebook's, or its host's."""
    rules = facts.rules
    if rules.speaks_marks:
        return exercised(facts), broken(facts)
    told = claimed(rules, verdict.kind, facts.predicted, facts.billed), refused(rules, facts.billed)
    proves, breaks = (tuple(named(rules.host, claim) for claim in claims) for claims in told)
    return proves, breaks
