"""What the checks of request logs and of transcripts share: the loop over a recording, what it skips, dollars.

What the rules of hosts without breakpoints claim, and which recorded calls confirm or refute it.

The cache state that the bills of a chain imply: after each step, what is cached, with which TTL and since when.

Which rules of the rulebook were seen in recorded calls, which are contradicted, which rest on documents alone.

For each dated row of the rules: in how many recorded calls it was seen to hold, and to fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple, Protocol, TypeVar

from cachecost.base.errors import CannotEvaluate
from cachecost.caches.reporting import round_down_to_block
from cachecost.conversations.json_object import TranscriptStep
from cachecost.ledger.results import Evidence, Judgement
from cachecost.providers.listing import Sighting
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import SMALLEST_PART, Usage

TOLERANCE = 2
"""Tokens that a read may be off and still be exact (docs/reference/output-formats.md, validate)."""
Skipped = list[tuple[str, str]]
"""(file:line, reason) of each call that was not judged."""


class _HasLine(Protocol):
    @property
    def line(self) -> int: ...


Call = TypeVar("Call", bound=_HasLine)


class RecordingCheck:
    """One recording while it is checked. `judgements` and `skipped` grow call by call."""

    def __init__(self, source: str, prices: PriceBook) -> None:
        self.source = source
        self.prices = prices
        self.judgements: list[Judgement] = []
        self.skipped: Skipped = []

    def run(self, calls: Iterable[Call], check: Callable[[int, Call], None]) -> None:
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
    """The claims that the size of a read refutes."""
    if billed.read and billed.read != _longest_reported(billed.read, rules):
        yield "step"
    if 0 < billed.read <= rules.minimum_tokens - rules.reported_step_tokens:
        yield "minimum"


def _longest_reported(read: int, rules: ModelRules) -> int:
    """The longest read up to `read` that ends at a block boundary and that usage can report."""
    point = round_down_to_block(read + rules.reported_step_tokens - 1, rules)
    return point - point % rules.reported_step_tokens


class TimeRange(NamedTuple):
    """The earliest and the latest second at which a request can have begun."""

    earliest: float
    latest: float


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """The longest cached prefix with a TTL, as implied by a bill."""

    tokens: int
    ttl: str
    touched: TimeRange | None


@dataclass(frozen=True, slots=True)
class ChainState:
    """What is known after a step: entries, longest first; whether thinking came since a person spoke; its growth."""

    step: TranscriptStep
    entries: tuple[ChainEntry, ...]
    thought: bool
    growth: int


def states_of(steps: Iterable[TranscriptStep]) -> dict[int, ChainState]:
    """The state after each step, by its number."""
    states: dict[int, ChainState] = {}
    for step in steps:
        before = states[step.before] if step.before else None
        thought = bool(before and before.thought and "human" not in step.between)
        cached = step.usage.read + step.usage.write
        earlier = before.step.usage.read + before.step.usage.write if before else cached
        states[step.number] = ChainState(
            step, _entries(step, before), thought or step.thinking, max(0, cached - earlier)
        )
    return states


def _entries(step: TranscriptStep, before: ChainState | None) -> tuple[ChainEntry, ...]:
    """What is cached after this bill, by TTL: reads refresh an entry, writes create one."""
    if step.summed:
        return ()
    usage, now = step.usage, request_time(step, before)
    ends = {entry.ttl: entry.tokens for entry in (before.entries if before else ()) if entry.tokens <= usage.read}
    if usage.read:
        ends[_ttl_read(usage, before)] = usage.read
    if usage.write_1h:
        ends["1h"] = usage.read + usage.write_1h
    if usage.write_5m:
        ends["5m"] = usage.read + usage.write
    entries = (ChainEntry(tokens, ttl, now) for ttl, tokens in ends.items())
    return tuple(sorted(entries, key=lambda entry: (-entry.tokens, entry.ttl)))


def _ttl_read(usage: Usage, before: ChainState | None) -> str:
    """The TTL of what was read: that of the shortest entry that is long enough, else that of what is written."""
    reaching = [entry for entry in (before.entries if before else ()) if entry.tokens >= usage.read - TOLERANCE]
    if reaching:
        return reaching[-1].ttl
    longest = before.entries[0].ttl if before and before.entries else "5m"
    return ("1h" if usage.write_1h else "5m") if usage.write else longest


def request_time(step: TranscriptStep, before: ChainState | None) -> TimeRange | None:
    """When the request began: no earlier than the record before it, no later than the first of its answer."""
    if step.answered is None:
        return None
    earliest = step.after if step.after is not None else before.step.ended if before else None
    return TimeRange(float("-inf") if earliest is None else min(earliest, step.answered), step.answered)


def in_loop(step: TranscriptStep) -> bool:
    """Whether only the answer before and the results of its tools lie between, and perhaps an API error."""
    return step.before is not None and set(step.between) <= {"error"}


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


IN_TRANSCRIPTS = ", in transcripts"


def evidence_of(judgements: Sequence[Judgement]) -> list[Evidence]:
    """A row for each rule: the calls that exercise it and came out right, and those that did not.

    Steps of transcripts have rows of their own: of them only usages are known, not what was sent.
    """
    requests = [one for one in judgements if not one.is_identity]
    steps = [one for one in judgements if one.is_identity]
    rows = [_row(rule, words, requests) for rule, words in RULES.items()]
    identities = (_row(rule, words, steps, f"{rule}{IN_TRANSCRIPTS}") for rule, words in RULES.items())
    return [*rows, *(row for row in identities if row.seen or row.contradicted)]


def evidence_of_hosts(judgements: Sequence[Judgement]) -> list[Evidence]:
    """As `evidence_of`, of what the rules of hosts with other caches claim: a row for each host and claim."""
    hosts = sorted({one.host for one in judgements})
    rows = (_published_figure(claim_name(host, claim), claim, judgements) for host in hosts for claim in CLAIMS)
    return [row for row in rows if row.seen or row.contradicted]


def _published_figure(rule: str, claim: str, judgements: Sequence[Judgement]) -> Evidence:
    about = [one for one in judgements if rule in one.rules]
    by_number = claim in OF_EACH_READ
    wrong = [one for one in about if (rule in one.broken if by_number else not one.is_right)]
    return _evidence(rule, CLAIMS[claim], [one for one in about if one not in wrong], wrong)


def _row(rule: str, words: str, judgements: Sequence[Judgement], name: str = "") -> Evidence:
    about = [one for one in judgements if rule in one.rules and one.kind != "unknown"]
    wrong = [one for one in about if not one.exact or rule in one.broken]
    return _evidence(name or rule, words, [one for one in about if one not in wrong], wrong)


def _evidence(rule: str, words: str, right: Sequence[Judgement], wrong: Sequence[Judgement]) -> Evidence:
    places = tuple(f"{one.source}:{one.line}" for one in wrong)
    models, clients = {one.model_name for one in right}, {one.client for one in right}
    return Evidence(rule, words, len(right), places, tuple(sorted(models)), tuple(sorted(clients)))


TESTED: Mapping[str, tuple[str, ...]] = {
    "2 thinking": ("default_thinking",),
    "2 effort": ("default_effort", "effort_layer"),
    "3 stripped": ("keeps_thinking",),
    "3 kept": ("keeps_thinking",),
    "4": ("frame",),
    "8 below": ("minimum_tokens",),
    "8 reached": ("minimum_tokens",),
    "9 lookback": ("lookback_positions",),
    "11": ("visibility",),
    "12 alive": ("ttl_s",),
    "12 expired": ("ttl_s",),
    "step": ("step_tokens", "reported_step_tokens"),
    "minimum": ("minimum_tokens",),
    "kept": ("matching",),
    "nothing else": ("matching",),
    "range": ("matching",),
}
"""The rules of the rule data that a rule of the rulebook, or a claim of a host, tests. No bill tests the others."""


def find_sightings(judgements: Iterable[Judgement]) -> list[Sighting]:
    """A row for each host, model, day and rule. A call counts once for a rule: it fails if one of its claims does."""
    held: Counter[tuple[str, str, str, str]] = Counter()
    failed: Counter[tuple[str, str, str, str]] = Counter()
    for one in judgements:
        for rule, fails in _tested_rules(one).items():
            key = (one.host, one.model_row, str(one.day), rule)
            (failed if fails else held)[key] += 1
    return [Sighting(*key, held[key], failed[key]) for key in sorted({*held, *failed})]


def _tested_rules(one: Judgement) -> dict[str, bool]:
    """The rules that a call tests, and whether it refutes them."""
    tested: dict[str, bool] = {}
    for claim, fails in _tested_claims(one):
        for rule in TESTED.get(claim, ()):
            tested[rule] = tested.get(rule, False) or fails
    return tested


def _tested_claims(one: Judgement) -> Iterator[tuple[str, bool]]:
    """(rule of the rulebook, or claim of a host; whether the call refutes it), as the evidence page counts them."""
    prefix = claim_name(one.host, "")
    for rule in one.rules:
        if rule.startswith(prefix):
            claim = rule.removeprefix(prefix)
            yield claim, rule in one.broken if claim in OF_EACH_READ else not one.is_right
        elif one.kind != "unknown":
            yield rule, rule in one.broken or not one.exact
