"""Transcripts against their bills: a chain of usages must obey the rules although no request is known.

On one chain a prompt is the prompt before, its answer, and what followed. So a step reads all that the step before
it read and wrote (its *whole* prefix) while that lives, and nothing of it once it has expired (of mixed TTLs, the
1h part). What is predicted rests on the bills of other steps only; so does the length of the prompt: the next step
of a tool loop reads it, else the prompt is taken to grow as it did at the median of the steps before.

Knowable, regardless of the step's bill, is a step
- that goes on from a recorded step of the same model and client version, no other step having gone on from that one,
- with no compaction and no context edit between,
- where no thinking was stripped: that a person spoke on a last-turn-only model, after thinking, changes the prefix,
- with fewer blocks between than a breakpoint looks back (a transcript does not say where breakpoints are),
- whose bill, and that of the step before, is of one pass (no server tools),
- whose age is surely to one side of the TTL. A request began between the record before it and its answer's
  first record, and the entry was touched in such a span too: the TTL must lie outside of what they allow.
Every other step is "unknown", with that reason. An unmarked tail (`input_tokens` of more than a few) and an API error
change nothing: the next step still reads what was marked.

Then docs/reference/output-formats.md defines the verdicts. Nothing read: "cold". The read ends where a recorded step's
write ended: "hit". Within a tool loop a client only adds, so a read that stops earlier is a missed hit. When a
person speaks it may also call on the side (a longer read: the answer was carried on, by a call that no transcript
has): that is "unknown", and stands among the mismatches. A shorter read is a missed hit there, too, although no
transcript shows what changed (tools, system prompt, thinking): the recorded steps sent it. An expired step that reads
nothing is evidence weaker than an alive one that reads all: a changed prompt reads nothing either.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from cachecost.analysis.fidelity.judging import TOLERANCE, RecordingCheck, input_cost
from cachecost.base.times import day_of, iso
from cachecost.caches.expiry import has_expired
from cachecost.conversations.input_files import BilledCall
from cachecost.conversations.readers.claude_code.content_free import BETWEEN
from cachecost.conversations.readers.common.session_calls import SessionCall
from cachecost.ledger.results import Judgement
from cachecost.ledger.rows import WARM_START
from cachecost.providers.hosts import AUTO_HOST, host_of, host_of_message
from cachecost.providers.prices import CallTerms, PriceBook, moment_of
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import Usage

FIRST, ALIVE, EXPIRED, UNCLEAR = "first step", "alive", "expired", "unclear"
DOUBTS = {
    "compaction": "the conversation was compacted before it",
    "edit": "old tool results were taken out before it",
    "model": "the step before it was of another model",
    "client": "the step before it was by another version of the client",
    "fork": "another step continues from the same one",
}
AGE = "its age may be on either side of the TTL"
RULES = {ALIVE: ("12 alive",), EXPIRED: ("12 expired",)}
"""The rule that a knowable step is evidence for or against: an alive one only within a tool loop."""


@dataclass(frozen=True, slots=True)
class _StepPrediction:
    """What a step reads, and why; length and TTL of the prefix before it. `doubt`: why it is not knowable, or ""."""

    read: int
    standing: str
    whole: int = 0
    ttl: str = ""
    doubt: str = ""


def check_steps(
    steps: Sequence[SessionCall], source: str, rules: RuleBook, prices: PriceBook, host: str = AUTO_HOST
) -> tuple[list[Judgement], list[tuple[str, str]]]:
    """(judgements, what could not be judged: file:line and words) of a transcript or its content-free form."""
    check = _TranscriptCheck(steps, source, rules, prices, host)
    check.run([step.bill for step in steps], check.check_step)
    return check.judgements, check.skipped


class _TranscriptCheck(RecordingCheck):
    def __init__(
        self, steps: Sequence[SessionCall], source: str, rules: RuleBook, prices: PriceBook, host: str
    ) -> None:
        super().__init__(source, prices)
        self.rules = rules
        self.host = host
        self.steps = steps
        self.states = states_of(steps)
        self.next = {step.bill.before: step for step in reversed(steps) if in_loop(step)}
        self.written: dict[str, set[int]] = {}

    def check_step(self, number: int, bill: BilledCall) -> None:
        """Predict a step from other bills, then compare with its own. Raises CannotEvaluate for an unknown model."""
        step = self.steps[number - 1]
        day = None if bill.answered is None else day_of(bill.answered)
        host = host_of(host_of_message(bill.id), self.host, bill.model)
        rules = self.rules.rules(host, bill.model, day)
        before = self.states[bill.before] if bill.before else None
        prediction = _predict(step, before, rules)
        usage = _predict_usage(prediction, before, self.next.get(bill.number))
        written = self.written.setdefault(step.thread, set())
        if bill.usage.read == bill.usage.write == prediction.read == 0:
            self.skip(bill.line, "nothing was cached, and nothing could have been read")
        elif usage is None:
            self.skip(bill.line, "the first step of its chain, and no later one gives its length")
        else:
            self.judgements.append(self._build_judgement(step, rules, prediction, usage, written))
        if {"compaction", "edit"} & set(bill.events):
            written.clear()
        if bill.usage.write and not bill.is_summed:
            written.update(entry.tokens for entry in self.states[bill.number].entries)

    def _build_judgement(
        self, step: SessionCall, rules: ModelRules, prediction: _StepPrediction, usage: Usage, written: set[int]
    ) -> Judgement:
        kind, exact, reason = _judge(step, prediction, written)
        is_knowable = not prediction.doubt and (in_loop(step) or prediction.standing == EXPIRED)
        features = {
            "transcript": True,
            prediction.ttl: bool(prediction.ttl),
            prediction.standing: True,
            "tool loop": in_loop(step),
            "after a person's words": "human" in step.bill.events and bool(step.bill.before),
            "side chain": step.thread.startswith("side"),
        }
        return Judgement(
            self.source,
            step.bill.number,
            step.bill.line,
            step.bill.model,
            kind,
            exact,
            usage,
            step.bill.usage,
            self._dollars(step, rules, usage),
            self._dollars(step, rules, step.bill.usage),
            reason,
            features=tuple(sorted(name for name, holds in features.items() if holds)),
            rules=RULES.get(prediction.standing, ()) if is_knowable else (),
            host=rules.host,
            way=rules.matching,
            cause=WARM_START if kind == "unknown" and prediction.standing == FIRST and step.bill.usage.read else "",
            is_identity=True,
            session=step.bill.session,
            agent=step.agent,
            folder=step.project,
            timestamp=None if step.bill.answered is None else iso(step.bill.answered),
            model_row=rules.model,
            day=rules.day,
        )

    def _dollars(self, step: SessionCall, rules: ModelRules, usage: Usage) -> Decimal | None:
        start = step.bill.answered if step.after is None else step.after
        moment, terms = moment_of(start, rules.day), CallTerms.of_modes(step.bill.modes)
        return input_cost(usage, lambda tokens: self.prices.quote(rules.host, rules.model, moment, terms).of(tokens))


def _predict(step: SessionCall, before: ChainState | None, rules: ModelRules) -> _StepPrediction:
    if before is None or not (before.entries or before.step.bill.is_summed):
        return _StepPrediction(0, FIRST, doubt="it sums several passes" if step.bill.is_summed else "")
    whole = before.entries[0] if before.entries else ChainEntry(0, "", None)
    now = request_time(step, before)
    doubt = next((words for name, words in DOUBTS.items() if name in step.bill.events), "")  # not of its age
    if not doubt and (step.bill.is_summed or before.step.bill.is_summed):
        doubt = "it, or the step before it, sums several passes"
    elif not doubt and before.thought and not rules.keeps_thinking and "human" in step.bill.events:
        doubt = "earlier thinking was stripped, because a person spoke"
    elif not doubt and step.bill.blocks >= rules.lookback_positions:
        doubt = f"{step.bill.blocks} blocks were added, and a breakpoint may not look back that far"
    if doubt:
        return _StepPrediction(whole.tokens, UNCLEAR, whole.tokens, whole.ttl, doubt)
    for entry in before.entries:
        ttl_s, touched = rules.ttl_s[entry.ttl], entry.touched
        if touched and now and not has_expired(now.latest, touched.earliest, ttl_s):
            return _StepPrediction(entry.tokens, ALIVE if entry is whole else EXPIRED, whole.tokens, whole.ttl)
        if not (touched and now and has_expired(now.earliest, touched.latest, ttl_s)):
            return _StepPrediction(entry.tokens, UNCLEAR, whole.tokens, whole.ttl, AGE)
    return _StepPrediction(0, EXPIRED, whole.tokens, whole.ttl)


def _predict_usage(prediction: _StepPrediction, before: ChainState | None, after: SessionCall | None) -> Usage | None:
    """The predicted usage, sized by other steps' bills; None if none gives the length of the prompt.

    That is what the next step of the loop reads, else as if the prompt grew as at the median of the steps so far. What
    is written has the TTL that the step before wrote with, else the one after.
    """
    least = 1 if prediction.doubt else max(1, prediction.read)
    if after is not None and not after.bill.is_summed and after.bill.usage.read >= least:
        length, neighbour = after.bill.usage.read, before.step if before else after
    elif before is not None:
        length, neighbour = before.step.bill.usage.read + before.step.bill.usage.write + before.growth, before.step
    else:
        return None
    read = min(prediction.read, length)
    written, entries = length - read, before.entries if before else ()
    hour = 0
    if not entries:
        hour = written if after and after.bill.usage.write_1h else 0
    elif entries[0].ttl == "1h":
        hour = written
    elif ends := [entry.tokens for entry in entries if entry.ttl == "1h"]:
        hour = min(written, max(0, ends[0] - read))
    return Usage(neighbour.bill.usage.input_tokens, read, written - hour, hour)


def _judge(step: SessionCall, prediction: _StepPrediction, written: set[int]) -> tuple[str, bool, str]:
    """(kind, exact, why it is wrong) by the definitions at the top of this file."""
    read, predicted, standing = step.bill.usage.read, prediction.read, prediction.standing
    exact = abs(predicted - read) <= TOLERANCE
    if prediction.doubt:
        return "unknown", exact, f"not knowable: {prediction.doubt}"
    if exact:
        return "hit" if read else "cold", True, ""
    if read == 0:
        words = f"a hit of {predicted:,} tokens was predicted, and nothing was read: evicted, or the prompt was changed"
        return "cold", False, words
    missed = standing == ALIVE and read < predicted
    nearby = range(read - TOLERANCE, read + TOLERANCE + 1)
    if missed or (read <= prediction.whole + TOLERANCE and any(tokens in written for tokens in nearby)):
        words = f"read {read:,} of {predicted:,} tokens: evicted early, or the prompt was changed"
        if standing == EXPIRED:
            words = f"read {read:,} tokens that had expired; predicted {predicted:,}"
        return "hit", False, words
    why = ""
    if standing != FIRST:  # what may explain a read that ends where no recorded write did
        may_have = "the client may have made a side call"
        may_have = may_have if read > prediction.whole else "others may have kept it alive"
        why = f"; predicted {predicted:,}: {may_have}"
    return "unknown", False, f"read {read:,} tokens that no recorded step can have written{why}"


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
    """What is known after a step: entries, longest first; whether thinking came since a person spoke; by how many
    tokens the prompts of its chain grew so far, at the median."""

    step: SessionCall
    entries: tuple[ChainEntry, ...]
    thought: bool
    growth: int


def states_of(steps: Iterable[SessionCall]) -> dict[int, ChainState]:
    """The state after each step, by its number: reads refresh an entry, writes create one, by TTL."""
    states: dict[int, ChainState] = {}
    grown: dict[str, list[int]] = {}
    for step in steps:
        before, usage, ends = states[step.bill.before] if step.bill.before else None, step.bill.usage, dict[str, int]()
        known = before.entries if before else ()
        if not step.bill.is_summed:
            ends = {entry.ttl: entry.tokens for entry in known if entry.tokens <= usage.read}
            if usage.read:  # of the shortest entry that is long enough, else with the TTL of what is written
                reaching = [entry.ttl for entry in known if entry.tokens >= usage.read - TOLERANCE]
                written = "1h" if usage.write_1h else "5m" if usage.write else known[0].ttl if known else "5m"
                ends[reaching[-1] if reaching else written] = usage.read
            if usage.write_1h:
                ends["1h"] = usage.read + usage.write_1h
            if usage.write_5m:
                ends["5m"] = usage.read + usage.write
        now = request_time(step, before)
        ordered = sorted(ends.items(), key=lambda end: (-end[1], end[0]))
        entries = tuple(ChainEntry(tokens, ttl, now) for ttl, tokens in ordered)
        has_thinking = bool(before and before.thought and "human" not in step.bill.events) or step.bill.has_thinking
        growths = grown.setdefault(step.thread, [])
        if before:
            earlier = before.step.bill.usage.read + before.step.bill.usage.write
            insort(growths, max(0, usage.read + usage.write - earlier))
        growth = growths[(len(growths) - 1) // 2] if growths else 0
        states[step.bill.number] = ChainState(step, entries, has_thinking, growth)
    return states


def request_time(step: SessionCall, before: ChainState | None) -> TimeRange | None:
    """When the request began: no earlier than the record before it, no later than the first of its answer."""
    if step.bill.answered is None:
        return None
    earliest = step.after if step.after is not None else before.step.bill.end if before else None
    return TimeRange(float("-inf") if earliest is None else min(earliest, step.bill.answered), step.bill.answered)


def in_loop(step: SessionCall) -> bool:
    """Whether only the answer before and the results of its tools lie between, and perhaps an API error."""
    return bool(step.bill.before) and {"error"}.issuperset(name for name in BETWEEN if name in step.bill.events)
