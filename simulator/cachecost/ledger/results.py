"""The results of commands, which are all that views read: the ledger of a strategy (what each call used, what it cost,
and why), comparisons of strategies, what they take for granted, prompt timelines, and judgements of a validation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import takewhile
from operator import attrgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from cachecost.base.errors import Fault
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Outcome
from cachecost.ledger.rows import CallRow as CallRow
from cachecost.ledger.rows import CallSize, LessInput, less_input, sizes_by_call
from cachecost.ledger.rows import Cost as Cost
from cachecost.ledger.rows import LayerTokens as LayerTokens
from cachecost.prompts.blocks import Layer
from cachecost.prompts.compare import path, prefixes_back
from cachecost.prompts.render import PrefixSizes, Prompt
from cachecost.providers.usage import COST_CLASSES as COST_CLASSES
from cachecost.providers.usage import TOKEN_CLASSES as TOKEN_CLASSES
from cachecost.providers.usage import ZERO as ZERO
from cachecost.providers.usage import ToolUses, Usage, add_uses, usage_of

if TYPE_CHECKING:
    from cachecost.ledger.findings import Explanation


@dataclass(frozen=True, slots=True)
class TriedValue:
    """The answer at another value: the cheapest strategy, and what the strategies cost that the assumption is about.

    Costs are what strategies are ranked by (USD; without prices, tokens to compute) by name, `questions` USD of one
    side question.
    """

    value: Any
    best: str
    costs: dict[str, Decimal]
    questions: dict[str, Decimal]


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where an answer changes: it holds as far as `holds_to`, and is another one from `changes_at` on.

    `claim` is what holds, `instead` what comes in its place.
    """

    claim: str
    instead: str
    holds_to: Any
    changes_at: Any


@dataclass(frozen=True, slots=True)
class Assumption:
    """Something that an answer takes for granted.

    `changes` says whether it would change the answer within the values tried; None: it was not tried. `effect` is what
    was found, in a sentence.
    """

    name: str
    why: str = ""
    source: str = ""
    value: Any = None
    changes: bool | None = None
    effect: str = ""
    tried: tuple[TriedValue, ...] = ()
    impact: Decimal = Decimal(0)
    """How much the cost of the cheapest strategy changes at the values tried, at most, as a ratio."""
    break_evens: tuple[BreakEven, ...] = ()


class BreakpointAt(msgspec.Struct, frozen=True):
    """A breakpoint that reached the minimum: the tokens up to it, and its TTL."""

    tokens: int
    ttl: str


class CallTimeline(msgspec.Struct, frozen=True):
    """One call of a prompt timeline. `fresh` counts the blocks that were not read, by kind, in prompt order.

    `is_human`: its last message is a human message and not only tool results (rule 3).
    """

    breakpoints: tuple[BreakpointAt, ...] = ()
    fresh: tuple[tuple[str, int], ...] = ()
    is_human: bool = False


EMPTY_TIMELINE = CallTimeline()
"""The timeline of a call without usage."""


def build_timeline(prompt: Prompt, sizes: PrefixSizes, outcome: Outcome) -> CallTimeline:
    """The timeline of a call, from its first pass."""
    breakpoints = tuple(BreakpointAt(sizes.of(breakpoint.prefix), breakpoint.ttl) for breakpoint in outcome.breakpoints)
    unread = path(prompt.end, outcome.hit.depth if outcome.hit else 0)
    kinds = Counter(node.block.kind for node in reversed(unread) if node.block)
    last = takewhile(lambda node: node.block is not None and node.block.role == "user", prefixes_back(prompt.end))
    spoken = next((node for node in last if node.block and node.block.kind != "tool_result"), None)
    is_human = spoken is not None and spoken.layer is Layer.MESSAGES
    return CallTimeline(breakpoints, tuple(reversed(kinds.items())), is_human)


USAGE_FIELDS = ("input_tokens", "read", "write_5m", "write_1h", "output_tokens")


@dataclass(frozen=True, slots=True)
class Ledger:
    """All calls of one strategy, in order, and what a reader needs to assess them.

    `notes` are sentences for people: what the strategy could not do, what was assumed. `error_margin` is the relative
    error of the token counts. `lower_bound` is in USD, over all choices of breakpoints and TTLs for these requests;
    None if it was not requested, or a call was refused. `timelines` has one a row if they were requested, else none.
    `ttls` are the host's names of its short and long TTL.
    """

    strategy: str
    rows: list[CallRow]
    notes: list[str] = field(default_factory=list)
    token_source: str = ""
    error_margin: float = 0.0
    lower_bound: Decimal | None = None
    timelines: list[CallTimeline] = field(default_factory=list)
    ttls: tuple[str, str] = ("5m", "1h")
    sizes: list[CallSize] = field(default_factory=list)
    """How much of the conversation each row sends, if that was requested."""
    leaves_out: str = ""
    """What it leaves out of the conversation, in the scenario's words."""
    ranked: bool | None = None
    """Whether the scenario lets it be the cheapest all the same, or never; None: as its sizes and assumptions say."""
    described_in: str = ""
    """Where somebody describes the strategy, as the scenario says."""
    assumes: str = ""
    """Assumptions of its own, other than those of the comparison, as NAME=VALUE."""

    @property
    def most(self) -> Decimal | None:
        """USD without any best-effort hit (batches, hosts that promise no hits); None: all hits are certain."""
        return None if all(row.cost_if_missed is None for row in self.rows) else most_of(self.rows)

    @property
    def is_priced(self) -> bool:
        """Whether all prices are known. If not, `cost` must not be shown: a self-hosted server without a price."""
        return all(row.is_priced for row in self.rows)

    @property
    def errors(self) -> int:
        return sum(row.error is not None for row in self.rows)

    @property
    def usage(self) -> Usage:
        usages = [row.usage for row in self.rows]
        uses: ToolUses = ()
        for usage in usages:
            uses = add_uses(uses, usage.tool_uses)
        return usage_of((sum(map(attrgetter(name), usages)) for name in USAGE_FIELDS), uses)

    @property
    def cost(self) -> Cost:
        costs = [row.cost for row in self.rows]
        return Cost(*(sum(map(attrgetter(name), costs), ZERO) for name in COST_CLASSES))

    def cost_of(self, rows: Iterable[CallRow]) -> Decimal:
        return sum((row.cost.total for row in rows), ZERO)

    @property
    def cost_by_layer(self) -> dict[Layer, Decimal]:
        return {layer: sum((row.cost_by_layer.get(layer, ZERO) for row in self.rows), ZERO) for layer in Layer}

    @property
    def inquiries(self) -> list[CallRow]:
        """The rows of side questions, retries included."""
        return [row for row in self.rows if row.inquiry is not None]

    def per_inquiry(self) -> Decimal | None:
        """Dollars of one side question, all its calls together; None without questions or without a known price."""
        asked = {row.inquiry for row in self.inquiries}
        return self.cost_of(self.inquiries) / len(asked) if asked and self.is_priced else None


def most_of(rows: Iterable[CallRow]) -> Decimal:
    """USD of the calls without any best-effort hit."""
    return sum((row.cost.total if row.cost_if_missed is None else row.cost_if_missed for row in rows), ZERO)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The strategies of a scenario under one model, day and set of assumptions.

    `variant` names it ("" is the scenario as written); `first` is the strategy that all others are compared with.
    Ledgers are in the scenario's order.
    """

    variant: str
    host: str
    model: str
    as_of: date
    rules: dict[str, str]
    """Assumptions that differ from their default, by name."""
    ledgers: list[Ledger]
    first: str

    @property
    def best(self) -> Ledger:
        """The cheapest strategy that is compared with the others and had no refused call; the earlier of equals."""
        complete = [ledger for ledger in self.ledgers if not ledger.errors] or self.ledgers
        apart = self.apart
        ranked = [ledger for ledger in complete if ledger.strategy not in apart]
        return min(ranked or complete, key=self.effort)

    @property
    def apart(self) -> frozenset[str]:
        """The strategies that are not compared with the others: they send less, or make assumptions of their own."""
        less = self.less
        return frozenset(
            ledger.strategy
            for ledger in self.ledgers
            if ledger.ranked is False or (ledger.ranked is None and (ledger.strategy in less or ledger.assumes))
        )

    @property
    def less(self) -> dict[str, LessInput]:
        """The strategies that send less of the conversation than the compared one, or are said to."""
        base = next((ledger for ledger in self.ledgers if ledger.strategy == self.first), None)
        compared = sizes_by_call(base.rows, base.sizes) if base and base.sizes else {}
        found: dict[str, LessInput] = {}
        for ledger in self.ledgers:
            is_measured = ledger is not base and ledger.sizes and compared
            less = less_input(ledger.rows, ledger.sizes, compared) if is_measured else None
            if less is not None or ledger.leaves_out:
                found[ledger.strategy] = replace(less or LessInput(), words=ledger.leaves_out)
        return found

    @property
    def is_priced(self) -> bool:
        """Whether the dollars of all strategies are known."""
        return all(ledger.is_priced for ledger in self.ledgers)

    def effort(self, ledger: Ledger) -> Decimal:
        """What strategies are ranked by: USD, or without prices the input tokens that must be computed."""
        return ledger.cost.total if self.is_priced else Decimal(ledger.usage.unread)

    @property
    def base(self) -> Ledger:
        return next(ledger for ledger in self.ledgers if ledger.strategy == self.first)


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """A published figure and its exact value: dollars, or with `is_share` a share that is saved."""

    source: str
    says: str
    exact: Decimal
    how: str
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of `cachecost run`: everything in a report. The first comparison is the scenario as written."""

    scenario: str
    question: str
    about: str
    verdict: str
    comparisons: list[Comparison]
    assumptions: list[Assumption]
    published_figures: list[PublishedFigure] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    """Versions that fix the figures: cachecost, rules data, prices data, tiktoken …"""
    seeds: list[Comparison] = field(default_factory=list)
    """The first comparison with other seeds, where the conversation is drawn at random."""
    explanations: list[Explanation] = field(default_factory=list)
    """The avoidable costs of the first and the best strategy, if a report was requested."""

    @property
    def main(self) -> Comparison:
        return self.comparisons[0]


SPANNING = 0.9
"""Of a prompt: from this width on a range counts as one as wide as the prompt."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One recorded call: the usage predicted without its own bill, and the billed usage.

    `kind` is "hit" (the recording could have written what was read), "cold" (nothing was read), "unknown" (what was
    read can only have been written before the recording began), "range" (the host promises no hits, so the prediction
    is a range) or "refused" (the simulator expects the API to refuse it). `exact`: the same prefix was hit, and the
    read is right within 2 tokens; a range is never exact, it `holds` or not. A hit or a cold start may have a range,
    too, where the host does not promise its hits. `way` is how the host caches: a `matching`
    of its rules. Dollars are None where no price is known.
    """

    source: str
    call: int
    line: int
    model: str
    kind: str
    exact: bool
    predicted: Usage
    billed: Usage
    predicted_usd: Decimal | None
    billed_usd: Decimal | None
    reason: str
    project: str = ""
    features: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Rules of the rulebook that the call exercises; `broken` are those that its bill contradicts."""
    broken: tuple[str, ...] = ()
    host: str = "anthropic"
    way: str = "breakpoint"
    holds: bool = False
    cause: str = ""
    """The probable cause of a difference, from the closed list of causes; "" if unknown."""
    is_identity: bool = False
    """Whether the request is unknown (a transcript): only that usages follow from each other was checked."""
    session: str = ""
    agent: str = ""
    folder: str = ""
    """The folder that the agent worked in: the `project` of the recorded call."""
    timestamp: str | None = None
    coverage: float = 0.0
    """In which share of such calls the range is to hold (1: in all of them); 0: the call has none."""
    bounds: tuple[int, int] | None = None
    """The least and the most tokens that the range lets it read; None: it has none."""
    model_row: str = ""
    """The model's row in the rules, and the day whose rules were used."""
    day: date | None = None
    tokenizer: str = ""
    """The generation of the tokenizer, and the error margin of the counter that estimates its tokens."""
    error_margin: float = 0.0

    @property
    def model_name(self) -> str:
        """The model, one name for all ids of it that logs use; Bedrock's ids name an endpoint before it."""
        return (self.model_row or self.model).rpartition("anthropic.")[2]

    @property
    def has_range(self) -> bool:
        return self.kind == "range" or self.bounds is not None

    @property
    def range_width(self) -> float:
        """The width of the range as a share of the billed prompt; 0 without one."""
        billed = self.billed.total_input
        return min(1.0, (self.bounds[1] - self.bounds[0]) / billed) if self.bounds and billed else 0.0

    @property
    def spans_prompt(self) -> bool:
        """Whether the range is as wide as the prompt, so that it predicts nothing: whether it holds is no success."""
        return self.range_width >= SPANNING

    @property
    def is_right(self) -> bool:
        return self.holds if self.kind == "range" else self.exact

    @property
    def client(self) -> str:
        """The client that recorded the call: the project that the recording names, else its folder."""
        return self.project or str(PurePath(self.source).parent)

    @property
    def token_error(self) -> float:
        """Relative error of the total input tokens."""
        billed = self.billed.total_input
        return abs(self.predicted.total_input - billed) / billed if billed else 0.0


FEW_CALLS = 5


def is_thin(calls: int, clients: int) -> bool:
    """Whether evidence rests on few calls, or on the calls of one client, which may all be alike."""
    return calls < FEW_CALLS or clients < 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """A rule: how many recorded calls confirm it, of which models and clients, and which calls contradict it."""

    rule: str
    words: str
    seen: int
    contradicted: tuple[str, ...]
    models: tuple[str, ...]
    clients: tuple[str, ...]

    @property
    def standing(self) -> str:
        """ "seen n times, m models, k clients", before that how many calls contradict it; or "documented only".

        Ends with "(thin)" where `is_thin` says so.
        """
        of = f"{count_text(len(self.models), 'model')}, {count_text(len(self.clients), 'client')}"
        thin = " (thin)" if is_thin(self.seen, len(self.clients)) else ""
        seen = f"seen {count_text(self.seen, 'time')}, {of}{thin}" if self.seen else ""
        against = f"contradicted by {count_text(len(self.contradicted), 'call')}" if self.contradicted else ""
        return "; ".join(filter(None, (against, seen))) or "documented only"


@dataclass(frozen=True, slots=True)
class AssumptionSupport:
    """A value of an assumption, and how many of the knowable calls are predicted exactly with it."""

    switch: str
    reading: str
    exact: int
    knowable: int


@dataclass(frozen=True, slots=True)
class Fidelity:
    """All judgements of a validation, in order, and what could not be checked (file and reason)."""

    judgements: list[Judgement]
    token_source: str
    not_judged: list[tuple[str, str]] = field(default_factory=list)
    readings: list[AssumptionSupport] = field(default_factory=list)
    """Filled if the values of the assumptions were compared; the first value of each is its default."""
    faults: list[Fault] = field(default_factory=list)
    """The errors of files that could not be read; also in `not_judged`."""
    estimates: list[Judgement] = field(default_factory=list)
    """The same calls with all lengths estimated, none from a bill, if the error margins were checked."""

    @property
    def is_evidence(self) -> bool:
        """Whether this is about the rules and the counters, whose fits hold recordings out, and not about one log."""
        return bool(self.estimates)

    def of(self, kind: str) -> list[Judgement]:
        return [one for one in self.judgements if one.kind == kind]

    @property
    def requests(self) -> list[Judgement]:
        """Calls whose request was rendered and simulated."""
        return [one for one in self.judgements if not one.is_identity]

    @property
    def transcripts(self) -> list[Judgement]:
        """Steps of transcripts: only that their usages follow from each other was checked."""
        return [one for one in self.judgements if one.is_identity]

    @property
    def main(self) -> list[Judgement]:
        """The basis of the first totals: the requests, or the transcripts if there is nothing else."""
        return self.requests or self.transcripts

    @property
    def mismatches(self) -> list[Judgement]:
        return [one for one in self.judgements if not one.is_right]
