"""Predicted against billed, call by call; a call's own bill never sizes its own prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.exercised import Facts, broken, exercised
from cachecost.analysis.features import features_of
from cachecost.cache import Outcome, PrefixCache
from cachecost.causes import CauseFinder, cause_of
from cachecost.conversations.readers.request_log import LoggedCall
from cachecost.faults import CannotEvaluate
from cachecost.ledger import ZERO, Judgement
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.counting import TokenCounter
from cachecost.prompts.passes import passes
from cachecost.prompts.refusals import marks_sent, refusal
from cachecost.prompts.render import Prompt, Renderer
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation import BILL_ONLY, SECONDS_BETWEEN_PASSES, quoted
from cachecost.tokens.anchored import AnchoredSizes, Anchors, Estimates

KnownSizes = AnchoredSizes | Estimates
TOLERANCE = 2
"""Tokens that a read may be off and still be exact (contract, `validate`)."""
ESTIMATE = 0.01
"""Share that an estimated length may be off and still count as one that the recording could have written."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A call, rendered: one prompt a pass. Without a bill it only takes part in the cache."""

    number: int
    call: LoggedCall
    bill: Usage | None
    rules: ModelRules
    prompts: tuple[Prompt, ...]

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
        judgements = [room.judgement(case) for case in room.cases]
        return [judgement for judgement in judgements if judgement is not None], room.not_judged


class _Room:
    """One recording: its prompts, its bills, its cache."""

    def __init__(self, judge: Judge, source: str) -> None:
        self.judge = judge
        self.source = source
        self.cases: list[_Case] = []
        self.not_judged: list[tuple[str, str]] = []
        self.anchors = Anchors()
        self.cache = PrefixCache()
        self.causes = CauseFinder(self.cache)
        self.written: dict[Prefix, int] = {}
        self._renderers: dict[str, Renderer] = {}

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
        if len(case.prompts) == 1 and case.bill is not None:
            self.anchors.learn(number, case.prompts[0], case.bill)

    def _case(self, number: int, call: LoggedCall, rules: ModelRules) -> _Case | None:
        if call.failed or call.billed is None:
            self.not_judged.append((f"{self.source}:{call.line}", "it failed" if call.failed else "it has no usage"))
        if call.is_bill_only:
            self.not_judged.append((f"{self.source}:{call.line}", BILL_ONLY))
        if call.failed or call.is_bill_only:
            return None
        sent = marks_sent(call.request)
        if why := refusal(call.request, sent, rules):
            self.not_judged.append((f"{self.source}:{call.line}", f"the API would refuse it: {why}"))
            return None
        renderer = self._renderer(rules.generation)
        requests = passes(call.request, call.response)
        prompts = tuple(renderer.render(one, marks_sent(one).marks, rules, call.workspace) for one in requests)
        return _Case(number, call, call.billed, rules, prompts)

    def _renderer(self, generation: str) -> Renderer:
        if generation not in self._renderers:
            self._renderers[generation] = Renderer(self.judge.counter_for(generation))
        return self._renderers[generation]

    def judgement(self, case: _Case) -> Judgement | None:
        """Predict the call from what came before it, then look at its bill; None where it has none."""
        sizes = [self._sizes(case, prompt) for prompt in case.prompts]
        possible = list(self._possible(case, sizes[0]))
        prediction = self._predict(case, sizes)
        for mark in (mark for prompt in case.prompts for mark in prompt.marks):
            self.written.setdefault(mark.prefix, case.number)
        if case.bill is None:
            return None
        kind, exact = _verdict(case, prediction, possible)
        if len(case.prompts) > 1 and kind != "unknown":
            self._learn_passes(case, prediction)
        return self._judged(case, prediction, kind, exact, _reason(kind, exact, case, prediction, sizes[0]))

    def _judged(self, case: _Case, prediction: _Prediction, kind: str, exact: bool, reason: str) -> Judgement:
        facts = _facts(case, prediction)
        return Judgement(
            self.source,
            case.number,
            case.call.line,
            case.call.request.model,
            kind,
            exact,
            facts.predicted,
            facts.billed,
            self._dollars(case, facts.predicted),
            self._dollars(case, facts.billed),
            reason,
            case.call.source,
            features_of(case.call.request, facts.passes),
            exercised(facts),
            broken(facts),
        )

    def _sizes(self, case: _Case, prompt: Prompt) -> KnownSizes:
        return self.anchors.without(case.number, prompt) if self.judge.anchored else Estimates()

    def _possible(self, case: _Case, sizes: KnownSizes) -> Iterator[tuple[int, bool]]:
        """(billed read that a hit there would give, is it exactly known) of each entry that could be there."""
        node: Prefix | None = case.prompts[0].end
        while node is not None:
            if node in self.written:
                yield self._read_after(case, sizes, node), sizes.told(node) is not None and len(case.prompts) == 1
            node = node.parent

    def _read_after(self, case: _Case, sizes: KnownSizes, hit: Prefix) -> int:
        """What the passes of a call read together when the first one reads `hit`."""
        later = (prompt.marks[-1].prefix for prompt in case.prompts[:-1] if prompt.marks)
        return sizes.of(hit) + sum(sizes.of(prefix) for prefix in later)

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
        request, start, space = case.call.request, case.call.start, case.rules.pool(case.call.workspace)
        lost = self.causes.before(request, case.prompts[0], case.rules, start, space)
        outcomes = [
            self.cache.call(prompt, case.rules, start + number * SECONDS_BETWEEN_PASSES, case.call.first_token_s, size)
            for number, (prompt, size) in enumerate(zip(case.prompts, sizes, strict=True))
        ]
        self.causes.remember(request, case.prompts[0], case.rules, outcomes[0], space)
        cause = cause_of(request, case.prompts[0], outcomes[0], lost, case.rules)
        return _Prediction(tuple(outcomes), cause)

    def _dollars(self, case: _Case, usage: Usage) -> Decimal | None:
        try:
            prices = quoted(self.judge.prices, case.call.request, case.rules, usage.total_input, case.call.is_batch)
        except CannotEvaluate:
            return None
        paid = Usage(usage.input_tokens, usage.read, usage.write_5m, usage.write_1h)
        return sum(prices.cost(paid).values(), ZERO)


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


def _verdict(case: _Case, prediction: _Prediction, possible: Sequence[tuple[int, bool]]) -> tuple[str, bool]:
    """(kind, exact) of a call, by the contract's definitions."""
    read, predicted = case.billed.read, prediction.usage.read
    if _is_cold(case):
        return "cold", prediction.hit is None
    if any(abs(size - read) <= _slack(read, is_told) for size, is_told in possible):
        return "hit", abs(predicted - read) <= TOLERANCE
    return "unknown", False


def _is_cold(case: _Case) -> bool:
    """Did the first pass read nothing? Then later passes read no more than was written before each."""
    later = len(case.prompts) - 1
    return case.billed.read <= later * case.billed.write


def _slack(read: int, is_told: bool) -> float:
    return TOLERANCE if is_told else max(TOLERANCE, ESTIMATE * read)


def _reason(kind: str, exact: bool, case: _Case, prediction: _Prediction, sizes: KnownSizes) -> str:
    predicted, read = prediction.usage.read, case.billed.read
    if exact:
        return ""
    if kind == "unknown":
        told = f"; predicted {predicted:,}" if predicted else ""
        return f"read {read:,} tokens that no recorded call can have written{told}"
    if kind == "cold":
        return f"a hit of {predicted:,} tokens was predicted, and nothing was read: evicted, or not readable yet"
    if prediction.hit is None:
        return f"no hit was predicted, and {read:,} tokens were read that an earlier call could have written"
    if abs(predicted - read) <= ESTIMATE * read and sizes.told(prediction.hit) is None:
        return f"the same prefix; its length is an estimate, {predicted - read:+,} tokens off: no other bill tells it"
    return f"another prefix was hit: {predicted:,} tokens were predicted, {read:,} were read"
