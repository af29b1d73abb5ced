"""The verdict on a prediction by its bill, and the rules and claims that the call is evidence for or against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeVar

from cachecost.account.causes import causes
from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import duration
from cachecost.caches.breakpoints import Outcome
from cachecost.caches.reporting import ReadBounds, round_down_to_block
from cachecost.ledger.results import Evidence, Judgement
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import ModelRules, VisibilityLag
from cachecost.providers.usage import SMALLEST_PART, Usage

TOLERANCE = 2
"""Tokens that a read may be off and still be exact (docs/reference/output-formats.md, validate)."""
Skipped = list[tuple[str, str]]
"""(file:line, reason) of each call that was not judged."""


class _HasLine(Protocol):
    @property
    def line(self) -> int: ...


WithLine = TypeVar("WithLine", bound=_HasLine)


class RecordingCheck:
    """One recording while it is checked. `judgements` and `skipped` grow call by call."""

    def __init__(self, source: str, prices: PriceBook) -> None:
        self.source = source
        self.prices = prices
        self.judgements: list[Judgement] = []
        self.skipped: Skipped = []

    def run(self, calls: Iterable[WithLine], check: Callable[[int, WithLine], None]) -> None:
        """Call `check` with each call and its number from 1. A call that raises CannotEvaluate is skipped."""
        for number, call in enumerate(calls, 1):
            try:
                check(number, call)
            except CannotEvaluate as error:
                self.skip(call.line, str(error))

    def skip(self, line: int, reason: str) -> None:
        self.skipped.append((f"{self.source}:{line}", reason))


def input_cost(usage: Usage, quote: Callable[[int], Prices], billed: Usage | None = None) -> Decimal | None:
    """USD of the input side of `usage`. `quote` returns the prices for so many input tokens; None if it cannot.

    Where `billed` says what the call was charged, both its own and a predicted usage are priced in proportion to that.
    """
    is_charged = billed is not None and billed.charged_usd is not None
    try:
        prices = quote(usage.total_input)
        if billed is not None and is_charged:
            prices = prices.in_proportion(quote(billed.total_input).charge_factor(billed))
    except CannotEvaluate:
        return None
    paid = Usage(usage.input_tokens, usage.read, usage.write_5m, usage.write_1h)
    cost = prices.total_cost(paid)
    return cost.quantize(SMALLEST_PART) if is_charged else cost


ESTIMATE = 0.01
"""Share that an estimated length may be off and still count as one that the recording could have written."""


@dataclass(frozen=True, slots=True)
class BillVerdict:
    """`kind`, `exact` and `holds` of a judgement; why it is not right, in words, else "".

    `cause` is the probable one from the closed list of causes, where one is known. `found` is the prefix that the
    bill proves to be alive although the recording cannot tell. `bounds` are those of the read that was judged.
    """

    kind: str
    exact: bool
    reason: str = ""
    holds: bool = False
    cause: str = ""
    found: Prefix | None = None
    bounds: ReadBounds | None = None


@dataclass(frozen=True, slots=True)
class BillComparison:
    """A prediction and the bill. `is_measured`: other bills give the exact length of the predicted hit.

    `first_read` is the billed read of the first of several passes; None if only their sum is billed. `bounds` of the
    read are None where the host's hits are certain. Recorded calls can have written the first `reach` tokens;
    `knowable` is why no call that was not recorded can have written more, in words; "" where one can.
    """

    billed: Usage
    predicted: Usage
    hit: Prefix | None
    is_measured: bool
    passes: int = 1
    first_read: int | None = None
    bounds: ReadBounds | None = None
    reach: int = 0
    knowable: str = ""

    @property
    def is_longer(self) -> bool:
        """Whether more was read than recorded calls can have written."""
        read = self.billed.read
        return read > max(self.reach, self.predicted.read) + _slack(read, False)

    @property
    def is_unknown(self) -> bool:
        """Whether what was read was written by a call that was not recorded, as far as anybody can tell."""
        return self.is_longer and not self.knowable

    @property
    def surplus(self) -> str:
        """Of a longer read that is no unknown one: why, in words that end a reason."""
        return f", more than any recorded call sent of it; {self.knowable}" if self.is_longer else ""

    @property
    def is_in_range(self) -> bool:
        """Whether the billed read lies within the bounds; False where there are none."""
        read = self.billed.read
        return self.bounds is not None and self.bounds.hold(read, _slack(read, False))


@dataclass(frozen=True, slots=True)
class PossibleEntry:
    """An entry that an earlier call of the recording wrote on the way of this prompt, as it stands before the call.

    `read` is what a hit there would read, all passes together; `is_measured`: other bills give it. `age_s` is the time
    since its writer started, `expired_s` since it expired (None: it has not).
    """

    prefix: Prefix
    read: int
    is_measured: bool
    age_s: float
    expired_s: float | None = None


def judge_breakpoint_hit(
    comparison: BillComparison, possible: Sequence[PossibleEntry], lag: VisibilityLag | None = None
) -> BillVerdict:
    """By docs/reference/output-formats.md. `possible`: all entries that could be there; `lag`: that of their model.

    If the first pass read nothing, later passes read no more than was written before each.
    """
    read, predicted = comparison.billed.read, comparison.predicted.read
    first = comparison.first_read
    is_cold = read <= (comparison.passes - 1) * comparison.billed.write if first is None else first == 0
    if is_cold:
        if comparison.hit is None:
            return BillVerdict("cold", True)
        late = _describe_lag(comparison, possible, lag)
        return BillVerdict("cold", False, _describe_miss(predicted, late), cause="visibility_lag" if late else "")
    matching = [one for one in possible if abs(one.read - read) <= _slack(read, one.is_measured)]
    if not matching:
        words = _describe_unknown(read, predicted)
        if comparison.knowable:
            return BillVerdict("hit", False, f"{words}; {comparison.knowable}")
        return BillVerdict("unknown", False, words)
    if abs(predicted - read) <= TOLERANCE:
        return BillVerdict("hit", True)
    if all(one.expired_s is not None for one in matching):
        words = f"read {read:,} tokens {duration(matching[0].expired_s or 0)} after they expired"
        if comparison.knowable:
            return BillVerdict("hit", False, f"{words}; {comparison.knowable}", found=matching[0].prefix)
        words = f"{words}: an unrecorded call may have kept them alive"
        return BillVerdict("unknown", False, words, found=matching[0].prefix)
    late = _describe_lag(comparison, possible, lag) if predicted > read else ""
    words = f"another prefix was hit: {predicted:,} tokens were predicted, {read:,} were read"
    if comparison.hit is None:
        words = f"no hit was predicted, and {read:,} tokens were read that an earlier call could have written"
    elif min(possible, key=lambda one: abs(one.read - read)).prefix is comparison.hit:
        why = "its length is an estimate: no other bill gives it"
        why = "other bills give another length" if comparison.is_measured else why
        words = f"the same prefix, {predicted - read:+,} tokens off; {why}"
    return BillVerdict("hit", False, words + late, cause="visibility_lag" if late else "")


def judge_prefix_hit(comparison: BillComparison) -> BillVerdict:
    """For hosts that keep every prefix."""
    read, predicted = comparison.billed.read, comparison.predicted.read
    holds, bounds = comparison.is_in_range, comparison.bounds
    if read == 0:
        words = "" if predicted == 0 else _describe_miss(predicted)
        return BillVerdict("cold", predicted == 0, words, holds, bounds=bounds)
    if comparison.is_unknown:
        return BillVerdict("unknown", False, _describe_unknown(read, predicted))
    exact = abs(predicted - read) <= TOLERANCE
    is_estimate = not comparison.is_measured and comparison.hit is not None
    why = f"{predicted:,} tokens were predicted, {read:,} were read{comparison.surplus}"
    why += "; the predicted length is an estimate" if is_estimate else ""
    return BillVerdict("hit", exact, "" if exact else why, holds, bounds=bounds)


def judge_range(comparison: BillComparison) -> BillVerdict:
    """For best-effort hosts: the read must lie within the bounds of their rules. Without bounds nothing can be read."""
    read, bounds = comparison.billed.read, comparison.bounds
    if bounds is None:
        return judge_prefix_hit(comparison)
    if comparison.is_unknown:
        return BillVerdict("unknown", False, _describe_unknown(read, comparison.predicted.read))
    if comparison.is_in_range:
        return BillVerdict("range", False, holds=True, bounds=bounds)
    least = f"{bounds.least:,} to " if bounds.least else "at most "
    words = f"{least}{bounds.most:,} tokens were predicted, {read:,} were read{comparison.surplus}"
    return BillVerdict("range", False, words, bounds=bounds)


def _slack(read: int, is_measured: bool) -> float:
    return TOLERANCE if is_measured else max(TOLERANCE, ESTIMATE * read)


def _describe_lag(comparison: BillComparison, possible: Sequence[PossibleEntry], lag: VisibilityLag | None) -> str:
    """The words where the entry that was predicted to be hit was probably not readable yet; "" where it was."""
    entry = next((one for one in possible if one.prefix is comparison.hit), None)
    if lag is None or entry is None or entry.age_s > lag.longest_s:
        return ""
    return f"; probable cause: visibility lag, as the longer entry was written {duration(entry.age_s)} before"


def _describe_unknown(read: int, predicted: int) -> str:
    words = f"; predicted {predicted:,}" if predicted else ""
    return f"read {read:,} tokens that no recorded call can have written{words}"


def _describe_miss(predicted: int, late: str = "") -> str:
    why = late or ": evicted, or not readable yet"
    return f"a hit of {predicted:,} tokens was predicted, and nothing was read{why}"


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call, its first pass's prompt and outcome, its cause, and its predicted and billed usage."""

    request: Request
    rules: ModelRules
    prompt: Prompt
    outcome: Outcome
    cause: str
    passes: int
    timed: bool
    predicted: Usage
    billed: Usage


def find_exercised_rules(facts: CallFacts) -> tuple[str, ...]:
    """The rules that this call is evidence for or against."""
    row = causes().get(facts.cause)
    human, hit, counted = facts.request.thread.human, facts.outcome.hit, facts.outcome.breakpoints
    has_thought = human is not None and human.parent is not None and human.parent.has_thinking
    is_at_breakpoint = any(breakpoint.prefix is hit for breakpoint in facts.prompt.breakpoints)
    ttls = {breakpoint.ttl for breakpoint in counted}
    found = {
        "3 kept": has_thought and facts.rules.keeps_thinking,
        "3 stripped": has_thought and not facts.rules.keeps_thinking,
        "5": bool(facts.request.automatic),
        "10 server tools": facts.passes > 1,
        "8 reached": bool(facts.prompt.breakpoints and counted),
        "8 below": bool(facts.prompt.breakpoints and not counted),
        row.tested_as if row else "": bool(row and row.tested_as),
        "10 nothing else": hit is None,
        "1": hit is not None,
        "9 breakpoint": hit is not None and is_at_breakpoint,
        "9 lookback": hit is not None and not is_at_breakpoint,
        "12 alive": hit is not None and facts.timed,
        "4": bool(counted) and counted[-1].prefix is facts.prompt.end,
        "15 split": bool(facts.billed.write) and len(ttls) == 2,
        "15 one TTL": bool(facts.billed.write) and len(ttls) != 2,
    }
    return tuple(sorted(rule for rule, is_exercised in found.items() if is_exercised))


def find_broken_rules(facts: CallFacts) -> tuple[str, ...]:
    """Rules whose own figure is wrong although the right prefix was hit: the split, the tail, the minimum."""
    written = facts.billed.write > 0 or facts.billed.read > 0
    checks = {
        "4": facts.passes > 1 or abs(facts.predicted.input_tokens - facts.billed.input_tokens) <= TOLERANCE,
        "8 below": not written,
        "8 reached": written,
        "15 split": bool(facts.billed.write_1h) == bool(facts.predicted.write_1h)
        and bool(facts.billed.write_5m) == bool(facts.predicted.write_5m),
        "15 one TTL": (facts.billed.write_1h > 0) == (facts.predicted.write_1h > 0) or not facts.billed.write,
    }
    return tuple(rule for rule in find_exercised_rules(facts) if not checks.get(rule, True))


CLAIMS: dict[str, str] = {
    "step": "a read ends at a block boundary of the host, as usage reports it",
    "minimum": "nothing shorter than the minimum is read",
    "kept": "everything that an earlier call cached is read",
    "nothing else": "nothing is read that no call cached",
    "range": "what is read is no more than earlier calls sent",
}
OF_EACH_READ = ("step", "minimum")
"""Claims that the size of a read confirms or refutes by itself, even if the write was not recorded."""


def claim_name(host: str, claim: str) -> str:
    return f"{host}: {claim}"


def find_claims(rules: ModelRules, kind: str, predicted: Usage, billed: Usage) -> Iterator[str]:
    """The claims that a judged call is evidence for or against."""
    if billed.read:
        if rules.step_tokens > 1 or rules.reported_step_tokens > 1:
            yield "step"
        yield "minimum"
    if kind == "range":
        yield "range"
    elif kind in ("hit", "cold"):
        yield "kept" if predicted.read else "nothing else"


def find_refuted_claims(rules: ModelRules, billed: Usage) -> Iterator[str]:
    """The claims that the size of a read refutes; one of the provider's own text is bound by none."""
    if billed.read <= max(rules.shared_by_all(has_tools).most for has_tools in (False, True)):
        return
    end = round_down_to_block(billed.read + rules.reported_step_tokens - 1, rules)  # of a block, and reportable
    if billed.read and billed.read != end - end % rules.reported_step_tokens:
        yield "step"
    if 0 < billed.read <= rules.minimum_tokens - rules.reported_step_tokens:
        yield "minimum"


RULES: dict[str, str] = {
    "1": "a body renders to tools, system, messages; a moved breakpoint changes nothing",
    "2 tools": "changed tools rewrite everything",
    "2 system": "a changed system prompt rewrites from the system layer on",
    "2 tool_choice": "another class of tool_choice rewrites the messages",
    "2 thinking": "another thinking configuration rewrites the messages",
    "2 effort": "another effort rewrites the messages, or everything: a row by model",
    "2 format": "another output format rewrites from the system layer on",
    "2 images": "the first image rewrites the messages",
    "2 speed": "fast and standard share nothing",
    "2 model": "models share nothing",
    "3 stripped": "last-turn-only models drop earlier thinking when a person speaks",
    "3 kept": "other models keep it, and it is billed",
    "4": "hidden tokens come after the last breakpoint",
    "5": "automatic caching puts its breakpoint on the last block that can carry one",
    "8 below": "a prefix below the minimum is not cached",
    "8 reached": "a prefix of the minimum or more is",
    "9 breakpoint": "a hit at a breakpoint of the request",
    "9 lookback": "a hit some positions before a breakpoint",
    "10 nothing else": "entries are found only where an earlier call wrote one",
    "10 server tools": "server tools: passes are summed, results cached for five minutes",
    "11": "an entry is readable once its writer's response began",
    "12 alive": "an entry younger than its TTL is read",
    "12 expired": "an entry past its TTL is not",
    "13": "a read refreshes",
    "15 split": "1h and 5m writes divide at the last 1h breakpoint",
    "15 one TTL": "what is written is charged at its breakpoint's TTL",
}
"""The rules that a recorded call can exercise, by the rulebook's numbers."""


def evidence_of(judgements: Sequence[Judgement]) -> list[Evidence]:
    """A row for each rule: the calls that exercise it and came out right, and those that did not.

    Steps of transcripts have rows of their own: of them only usages are known, not what was sent.
    """
    requests = [one for one in judgements if not one.is_identity]
    steps = [one for one in judgements if one.is_identity]
    rows = [_build_row(rule, words, requests) for rule, words in RULES.items()]
    identities = (_build_row(rule, words, steps, f"{rule}, in transcripts") for rule, words in RULES.items())
    return [*rows, *(row for row in identities if row.seen or row.contradicted)]


def evidence_of_hosts(judgements: Sequence[Judgement]) -> list[Evidence]:
    """As `evidence_of`, of what the rules of hosts with other caches claim: a row for each host and claim."""
    rows: list[Evidence] = []
    for host in sorted({one.host for one in judgements}):
        for claim, words in CLAIMS.items():
            rule = claim_name(host, claim)
            about = [one for one in judgements if rule in one.rules and not (claim == "range" and one.spans_prompt)]
            wrong = [one for one in about if is_refuted(one, rule, claim)]
            rows += [_build_evidence(rule, words, [one for one in about if one not in wrong], wrong)] if about else []
    return rows


def is_refuted(one: Judgement, rule: str, claim: str) -> bool:
    """Whether a call refutes a claim of its host, which is one of the call's rules."""
    return rule in one.broken if claim in OF_EACH_READ else not one.is_right


def _build_row(rule: str, words: str, judgements: Sequence[Judgement], name: str = "") -> Evidence:
    about = [one for one in judgements if rule in one.rules and one.kind != "unknown"]
    wrong = [one for one in about if not one.exact or rule in one.broken]
    return _build_evidence(name or rule, words, [one for one in about if one not in wrong], wrong)


def _build_evidence(rule: str, words: str, right: Sequence[Judgement], wrong: Sequence[Judgement]) -> Evidence:
    places = tuple(f"{one.source}:{one.line}" for one in wrong)
    models, clients = {one.model_name for one in right}, {one.client for one in right}
    return Evidence(rule, words, len(right), places, tuple(sorted(models)), tuple(sorted(clients)))
