"""Predicted against billed, call by call; a call's own bill never sizes its own prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from cachecost.analysis.fidelity.judging import (
    TOLERANCE,
    BillComparison,
    BillVerdict,
    CallFacts,
    PossibleEntry,
    RecordingCheck,
    claim_name,
    find_broken_rules,
    find_claims,
    find_exercised_rules,
    find_refuted_claims,
    input_cost,
    judge_breakpoint_hit,
    judge_prefix_hit,
    judge_range,
)
from cachecost.base.structs import replace
from cachecost.caches.block_starts import BlockStarts, SharedTokens
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.fixed_blocks import lacks_room
from cachecost.caches.hosts import SimulatedHosts
from cachecost.caches.reporting import MachineRanges, PromptHistory, read_bounds, reported_read, with_shared_prefix
from cachecost.caches.warm_starts import SentCall, SentPrefixes
from cachecost.conversations.calls import Call
from cachecost.ledger.results import Judgement
from cachecost.ledger.rows import WARM_START
from cachecost.prompts.blocks import Block, Prefix
from cachecost.prompts.compare import new_prefixes, prefixes_back
from cachecost.prompts.exact_json import has_content
from cachecost.prompts.output_format import output_format
from cachecost.prompts.passes import HostPrompts
from cachecost.prompts.render import Prompt, TokenCounter
from cachecost.prompts.request import Request, refusal
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import request_quote
from cachecost.tokens.calibrated import AnswerLengths, BilledLengths, BilledSizes, EstimatedSizes
from cachecost.tokens.margins import PromptMargins

GONE_S = 7 * 86_400.0
"""No host says that it keeps an entry for longer than a few days after its last use, in seconds."""


BlockKind = tuple[Prefix, str, str]
"""What a block follows, its role and its kind."""


class EarlierPrompts:
    """Prompts of a recording, with the answers that came back in later ones."""

    def __init__(self) -> None:
        self._answers = PromptHistory()
        self._sent: dict[Prefix, float] = {}
        self._starts = BlockStarts(self._sent)
        self._longest: dict[BlockKind, tuple[int, float]] = {}
        """Of blocks without content: the tokens of the longest, and when one was last sent."""
        self._ends: dict[Prefix, tuple[float, bool]] = {}
        """Where prompts ended: when last, and whether a call that was not recorded had sent all of one before."""

    def reach(self, end: Prefix, start: float, shares: SharedTokens | None) -> tuple[Prefix, int] | None:
        """The longest beginning of the prompt that ends at `end` that an earlier call sent or got, not too long ago:
        the last prefix on its way, and how many tokens of the block after it are the same, or may be without content.

        Records the prompt, too. `start` is in seconds.
        """
        new, _ = new_prefixes(end, self._sent)
        inside = self._begun(new[-1], start, shares) if new else 0
        shared, answer, *_ = self._answers.add_call(end)
        nodes = prefixes_back(shared) if shared is not None else ()
        found = next((node for node in nodes if start - self._sent[node] <= GONE_S), None)
        self._sent.update(dict.fromkeys(prefixes_back(end), start))
        for node in new:
            if node.block is not None and node.parent is not None and not has_content(node.block):
                kind = node.parent, node.block.role, node.block.kind
                tokens = max(node.tokens - node.parent.tokens, self._longest.get(kind, (0, 0.0))[0])
                self._longest[kind] = tokens, start
        if found is not None and found is shared:
            return (answer, 0) if answer is not None else (found, inside)
        return (found, 0) if found is not None else None

    def _begun(self, new: Prefix, start: float, shares: SharedTokens | None) -> int:
        """How many tokens of the block that is new in a prompt an earlier one can begin with in its place."""
        node, block = new.parent, new.block
        if node is None or block is None:
            return 0
        if not has_content(block):
            tokens, sent = self._longest.get((node, block.role, block.kind), (0, start))
            return min(tokens, new.tokens - node.tokens) if start - sent <= GONE_S else 0
        begun = self._starts.add(new, shares) if shares else None
        return begun[0] - node.tokens if begun and start - self._sent[begun[1]] <= GONE_S else 0

    def is_known(self, end: Prefix, start: float) -> bool:
        """Whether a prompt goes on from a recorded one, not too long ago and not itself sent before the recording."""
        ended = next((node for node in prefixes_back(end) if node in self._ends), None)
        sent, is_repeated = self._ends[ended] if ended is not None else (-math.inf, True)
        return not is_repeated and start - sent <= GONE_S

    def add_end(self, end: Prefix, start: float, is_repeated: bool) -> None:
        """Record where a prompt ends; `is_repeated`: its bill shows that all of it had been sent before."""
        self._ends[end] = start, is_repeated or (end in self._ends and self._ends[end][1])


def features_of(request: Request, passes: int = 1) -> tuple[str, ...]:
    """Names of the features in a request, sorted."""
    params = request.params
    ttls = {breakpoint.ttl for breakpoint in request.breakpoints} | (
        {request.automatic} if request.automatic else set()
    )
    choice = (params.get("tool_choice") or {}).get("type")
    found = {
        "automatic": request.automatic is not None,
        "explicit breakpoints": bool(request.breakpoints),
        "no breakpoints": not request.breakpoints and request.automatic is None,
        "1h": "1h" in ttls,
        "mixed TTLs": len(ttls) == 2,
        "tools": bool(request.tools.blocks),
        "forced tool choice": choice in ("any", "tool"),
        "thinking": (params.get("thinking") or {}).get("type") in ("enabled", "adaptive"),
        "structured output": bool(output_format(params)),
        "images": request.thread.has_image,
        "citations": request.thread.has_citations,
        "server tools": passes > 1,
    }
    return tuple(sorted(name for name, holds in found.items() if holds))


KnownSizes = BilledSizes | EstimatedSizes
VERDICTS = {"grid": judge_prefix_hit, "units": judge_prefix_hit, "best_effort": judge_range, "none": judge_prefix_hit}
"""By what the rules of a host without breakpoints state as `matching`."""


@dataclass(frozen=True, slots=True)
class _Case:
    """A call, rendered: one prompt a pass. Without a bill it only takes part in the cache."""

    number: int
    call: Call
    bill: Usage | None
    rules: ModelRules
    prompts: tuple[Prompt, ...]

    @property
    def pass_bills(self) -> tuple[Usage, ...]:
        """The bill of each prompt; empty if only their sum is billed."""
        bills = self.call.pass_bills or ((self.bill,) if self.bill else ())
        return bills if len(bills) == len(self.prompts) else ()

    @property
    def answer(self) -> tuple[Block, ...]:
        """The blocks that its bill may count in its input, where it is that of a single pass."""
        return () if self.call.pass_bills else self.call.simulated_response

    @property
    def bill_usage(self) -> Usage:
        return self.bill or Usage()


@dataclass(frozen=True, slots=True)
class _CallPrediction:
    outcomes: tuple[Outcome, ...]
    cause: str

    @property
    def usage(self) -> Usage:
        return sum((one.usage for one in self.outcomes), Usage())

    @property
    def hit(self) -> Prefix | None:
        return self.outcomes[0].hit


class FidelityChecker:
    """Checks recordings, each with a cache of its own. `counter_for` estimates lengths that no bill gives."""

    def __init__(
        self,
        rules: RuleBook,
        prices: PriceBook,
        counter_for: Callable[[str], TokenCounter],
        host: str = AUTO_HOST,
        calibrated: bool = True,
    ) -> None:
        self.calibrated = calibrated
        self._margins: dict[str, PromptMargins] = {}
        self.rules = rules
        self.prices = prices
        self.counter_for = counter_for
        self.host = host

    def margins_for(self, generation: str) -> PromptMargins:
        """The error margins of prompts, as counted for this generation of the tokenizer."""
        if generation not in self._margins:
            self._margins[generation] = PromptMargins(self.counter_for(generation))
        return self._margins[generation]

    def check_calls(self, source: str, calls: Sequence[Call]) -> tuple[list[Judgement], list[tuple[str, str]]]:
        """(judgements, what could not be judged) of one recording, in its order."""
        check = _LogCheck(self, source)
        check.run(calls, check.add)
        judgements = filter(None, [check.judgement(case) for case in check.cases])
        return sorted(judgements, key=lambda judgement: judgement.call), check.skipped


class _LogCheck(RecordingCheck):
    def __init__(self, checker: FidelityChecker, source: str) -> None:
        super().__init__(source, checker.prices)
        self.checker = checker
        self.cases: list[_Case] = []
        self.anchors = BilledLengths()
        self.answers = AnswerLengths(self.anchors)
        self.prompts = HostPrompts(checker.counter_for)
        self.hosts = SimulatedHosts()
        self.written: set[Prefix] = set()
        self.sent = SentPrefixes()
        self.earlier = EarlierPrompts()
        self.machines = MachineRanges()

    def add(self, number: int, call: Call) -> None:
        """Render a call and learn lengths from its bill, if it has one. Raises CannotEvaluate for an unknown model."""
        host = host_of(call.host, self.checker.host, call.request.model)
        rules = self.checker.rules.rules(host, call.request.model, call.day)
        if call.has_failed or call.billed is None:
            without = "it has no usage" if call.output_billed is None else "its usage has no input tokens"
            self.skip(call.line, "it failed" if call.has_failed else without)
        if call.why_unknown and not call.has_failed:
            self.skip(call.line, call.why_unknown)
        if call.has_failed or call.why_unknown:
            return
        sent = self.prompts.prepare_request(call.request, rules)
        if why := refusal(sent.told.request, sent.breakpoints, rules):
            self.skip(call.line, f"the API would refuse it: {why}")
            return
        prompts = self.prompts.render_prompts(sent, call.simulated_response, rules, call.workspace)
        if why := lacks_room(prompts[0].total_tokens, rules):
            self.skip(call.line, why)
            return
        bill = sum(call.pass_bills, Usage()) if call.pass_bills else call.billed
        case = _Case(number, call, bill, rules, tuple(prompts))
        self.cases.append(case)
        for prompt, billed in zip(case.prompts, case.pass_bills, strict=False):
            self.anchors.learn(number, prompt, billed, case.answer)
        self.answers.learn(number, case.prompts[0], rules, case.bill, case.answer)

    def judgement(self, case: _Case) -> Judgement | None:
        """Predict the call from what came before it, then look at its bill; None where it has none."""
        call, rules, first, is_calibrated = case.call, case.rules, case.prompts[0], self.checker.calibrated
        sizes: list[KnownSizes] = [
            self.anchors.without(case.number, prompt) if is_calibrated else EstimatedSizes() for prompt in case.prompts
        ]
        possible = [] if rules.is_automatic else list(self._find_possible_entries(case, sizes))
        shares = first.counter.shared if first.counter else None
        earlier = self.earlier.reach(first.end, call.start, shares) if rules.is_automatic else None
        # How many tokens of its prompt earlier calls sent, those of others included; 0 where that is of no matter.
        shared = rules.shared_by_all(bool(call.request.tools.blocks))
        reach = min(shared.most, sizes[0].total(first))
        if earlier is not None:
            reach = max(reach, sizes[0].of(earlier[0]) + earlier[1])
        times = call.start, call.ready_s
        looked = self.hosts.inspect(call.request, case.prompts, rules, call.workspace, times, sizes)
        if case.bill is not None and case.bill.output_tokens:
            self.hosts.note_answer(case.prompts[-1], rules, case.bill.output_tokens)
        prediction = _CallPrediction(tuple(with_shared_prefix(one, shared) for one in looked.outcomes), looked.cause)
        self.written.update(breakpoint.prefix for prompt in case.prompts for breakpoint in prompt.breakpoints)
        unknown = self.anchors.unknown_part(case.number, first, case.answer)
        if case.bill is None or unknown:
            if case.bill:
                self.skip(call.line, f"its bill counts {unknown}, and nothing else tells how many tokens that is")
            self._remember(case, prediction)
            return None
        comparison = self._compare(case, prediction, sizes[0], reach)
        if rules.is_automatic:
            verdict = VERDICTS[rules.matching](comparison)
        else:
            verdict = judge_breakpoint_hit(comparison, possible, rules.visibility_lag)
            verdict = self._keep_found_prefix(case, sizes[0], verdict)
        self._remember(case, prediction, verdict)
        if not case.pass_bills and len(case.prompts) > 1 and verdict.kind != "unknown":
            self._learn_passes(case, prediction)
        return self._build_judgement(case, prediction, verdict)

    def _compare(self, case: _Case, prediction: _CallPrediction, sizes: KnownSizes, reach: int) -> BillComparison:
        prompt, rules, hit, read = case.prompts[0], case.rules, prediction.hit, prediction.usage.read
        bounds = self.machines.range_of(prompt, sizes, rules, read, reach)
        shared = rules.shared_by_all(bool(case.call.request.tools.blocks))
        bounds = bounds or read_bounds(rules, shared, read, reach, sizes.total(prompt))
        is_measured = hit is not None and (
            sizes.told_as_end(hit) if rules.is_automatic else sizes.told(hit) is not None
        )
        first_read = case.pass_bills[0].read if case.pass_bills else None
        known = "the call continues a recorded one" if self.earlier.is_known(prompt.end, case.call.start) else ""
        if rules.is_automatic and list(find_refuted_claims(rules, case.bill_usage)):
            known = f"by the rules of {rules.host} no read is that long"
        return BillComparison(
            case.bill_usage, prediction.usage, hit, is_measured, len(case.prompts), first_read, bounds, reach, known
        )

    def _remember(self, case: _Case, prediction: _CallPrediction, verdict: BillVerdict | None = None) -> None:
        self.sent.add(case.prompts[0])
        read, total = case.bill_usage.read, case.bill_usage.total_input
        most = reported_read(total, total, case.rules) if case.rules.is_automatic else read + case.bill_usage.write
        step = max(case.rules.step_tokens, case.rules.reported_step_tokens, TOLERANCE)  # the last one may be left
        is_repeated = verdict is not None and verdict.kind == "unknown" and most - read <= step
        if most:  # where nothing can be read or written, no bill shows whether it had been sent before
            self.earlier.add_end(case.prompts[0].end, case.call.start, is_repeated)
        if case.rules.is_automatic:
            usage = case.bill or prediction.usage
            self.machines.add(case.prompts[0], usage.read, case.bill_usage.output_tokens)

    def _keep_found_prefix(self, case: _Case, sizes: KnownSizes, verdict: BillVerdict) -> BillVerdict:
        """Keep what a bill proves to be cached: written before the recording, or kept alive by others."""
        breakpoints = case.prompts[0].breakpoints
        found, ttl = verdict.found, str(breakpoints[-1].ttl) if breakpoints else "5m"
        if verdict.kind == "unknown" and found is None and case.rules.assumptions.warm_start == "as_billed":
            billed = case.bill if len(case.prompts) == 1 else None
            sent = SentCall(case.number, case.call.start, case.prompts[0], case.rules, billed)
            if warm := self.sent.warm_start(sent, sizes):
                self.anchors.learn_prefix(case.number, warm.prefix, warm.tokens)
                verdict, found, ttl = replace(verdict, cause=WARM_START), warm.prefix, warm.ttl
        if found is not None:
            self.hosts.warm_prefix(case.prompts[0], found, ttl, case.rules, case.call.start)
        return verdict

    def _build_judgement(self, case: _Case, prediction: _CallPrediction, verdict: BillVerdict) -> Judgement:
        facts = CallFacts(
            case.call.request,
            case.rules,
            case.prompts[0],
            prediction.outcomes[0],
            prediction.cause,
            len(case.prompts),
            case.call.timestamp is not None,
            prediction.usage,
            case.bill_usage,
        )
        rules = case.rules  # what the call is evidence for or against: rules of the rulebook, else claims of its host
        if rules.uses_breakpoints:
            proves, breaks = find_exercised_rules(facts), find_broken_rules(facts)
        else:
            held = find_claims(rules, verdict.kind, facts.predicted, facts.billed)
            proves = tuple(claim_name(rules.host, one) for one in held)
            breaks = tuple(claim_name(rules.host, one) for one in find_refuted_claims(rules, facts.billed))
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
            session=case.call.session,
            agent=case.call.agent,
            folder=case.call.project,
            timestamp=case.call.timestamp,
            coverage=verdict.bounds.coverage if verdict.bounds else 0.0,
            bounds=(verdict.bounds.least, verdict.bounds.most) if verdict.bounds else None,
            model_row=case.rules.model,
            day=case.rules.day,
            tokenizer=case.rules.generation,
            error_margin=self.checker.margins_for(case.rules.generation).of(case.prompts),
        )

    def _find_possible_entries(self, case: _Case, sizes: Sequence[KnownSizes]) -> Iterator[PossibleEntry]:
        """Each entry that could be there, the longest first, and what all passes read together with a hit there."""
        now, is_single, later = case.call.start, len(case.prompts) == 1, 0
        for (before, after), size in zip(pairwise(case.prompts), sizes[1:], strict=True):
            marked = {breakpoint.prefix for breakpoint in before.breakpoints}
            shared = next((node for node in prefixes_back(after.end) if node in marked), None)
            later += size.of(shared) if shared is not None else 0
        for node in prefixes_back(case.prompts[0].end):
            if node in self.written:
                is_measured, entry = sizes[0].told(node) is not None and is_single, self.hosts.entry(node, case.rules)
                age = now - entry.started if entry else math.inf
                expired = entry.expired_s(now) if entry else None
                yield PossibleEntry(node, sizes[0].of(node) + later, is_measured, age, expired)

    def _learn_passes(self, case: _Case, prediction: _CallPrediction) -> None:
        """Learn lengths from a sum over passes, if earlier bills give the length of what the first pass read."""
        read = self.anchors.told_before(case.number, prediction.hit) if prediction.hit else 0
        marked = [prompt.breakpoints[-1].prefix for prompt in case.prompts if prompt.breakpoints]
        if read is None or not marked:
            return
        self.anchors.learn_prefix(case.number, marked[-1], case.bill_usage.write + read)
        if len(marked) == 2:
            self.anchors.learn_prefix(case.number, marked[0], case.bill_usage.read - read)

    def _dollars(self, case: _Case, usage: Usage) -> Decimal | None:
        call = case.call
        return input_cost(
            usage, lambda tokens: request_quote(self.prices, call, case.rules).of(tokens), case.call.billed
        )
