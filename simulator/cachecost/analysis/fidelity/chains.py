"""Transcripts against their bills: a chain of usages must obey the rules although no request is known.

On one chain a prompt is the prompt before, its answer, and what followed. So a step reads all that the step before
it read and wrote (its *whole* prefix) while that lives, and nothing of it once it has expired (of mixed TTLs, the
1h part). What is predicted rests on the bills of other steps only; so does the length of the prompt: the next step
of a tool loop reads it, else the prompt is taken to grow as it last did.

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
person speaks it may also call on the side (a longer read: the answer was carried on) or change tools, system prompt
or thinking (a shorter one); a transcript shows none of that, so a read that ends where no recorded write did is
"unknown" there, and stands among the mismatches. An expired step that reads nothing is evidence weaker than an
alive one that reads all: a changed prompt reads nothing either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from cachecost.analysis.fidelity.recording_check import TOLERANCE, RecordingCheck, input_cost
from cachecost.base.times import day_of, iso
from cachecost.caches.expiry import has_expired
from cachecost.conversations.json_object import TranscriptStep
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
WRITTEN_BY_OTHERS = "read {0:,} tokens that no recorded step can have written"


@dataclass(frozen=True, slots=True)
class _StepPrediction:
    """How many tokens a step reads, and why (`standing`); the length (`whole`) and TTL of the prefix before it.

    `doubt` is why the step is not knowable, "" if it is.
    """

    read: int
    standing: str
    whole: int = 0
    ttl: str = ""
    doubt: str = ""


def check_steps(
    steps: Sequence[TranscriptStep], source: str, rules: RuleBook, prices: PriceBook, host: str = AUTO_HOST
) -> tuple[list[Judgement], list[tuple[str, str]]]:
    """(judgements, what could not be judged: file:line and words) of a transcript or its content-free form."""
    check = _TranscriptCheck(steps, source, rules, prices, host)
    check.run(steps, check.check_step)
    return check.judgements, check.skipped


class _TranscriptCheck(RecordingCheck):
    """A transcript while it is checked, step by step."""

    def __init__(
        self, steps: Sequence[TranscriptStep], source: str, rules: RuleBook, prices: PriceBook, host: str
    ) -> None:
        super().__init__(source, prices)
        self.rules = rules
        self.host = host
        self.states = states_of(steps)
        self.next = {step.before: step for step in reversed(steps) if in_loop(step)}
        self.written: dict[str, set[int]] = {}

    def check_step(self, number: int, step: TranscriptStep) -> None:
        """Predict a step from other bills, then compare with its own. Raises CannotEvaluate for an unknown model."""
        day = None if step.answered is None else day_of(step.answered)
        host = host_of(host_of_message(step.id), self.host, step.model)
        rules = self.rules.rules(host, step.model, day)
        before = self.states[step.before] if step.before else None
        prediction = _predict(step, before, rules)
        usage = _usage(prediction, before, self.next.get(step.number))
        written = self.written.setdefault(step.chain, set())
        if step.usage.read == step.usage.write == prediction.read == 0:
            self.skip(step.line, "nothing was cached, and nothing could have been read")
        elif usage is None:
            self.skip(step.line, "the first step of its chain, and no later one gives its length")
        else:
            self.judgements.append(self._judgement(step, rules, prediction, usage, written))
        if {"compaction", "edit"} & set(step.between):
            written.clear()
        if step.usage.write and not step.summed:
            written.update(entry.tokens for entry in self.states[step.number].entries)

    def _judgement(
        self, step: TranscriptStep, rules: ModelRules, prediction: _StepPrediction, usage: Usage, written: set[int]
    ) -> Judgement:
        kind, exact = _verdict(step, prediction, written)
        knowable = not prediction.doubt and (in_loop(step) or prediction.standing == EXPIRED)
        features = {
            "transcript": True,
            prediction.ttl: bool(prediction.ttl),
            prediction.standing: True,
            "tool loop": in_loop(step),
            "after a person's words": "human" in step.between and step.before is not None,
            "side chain": step.chain.startswith("side"),
        }
        return Judgement(
            self.source,
            step.number,
            step.line,
            step.model,
            kind,
            exact,
            usage,
            step.usage,
            self._dollars(step, rules, usage),
            self._dollars(step, rules, step.usage),
            _reason(step, prediction, kind, exact),
            features=tuple(sorted(name for name, holds in features.items() if holds)),
            rules=RULES.get(prediction.standing, ()) if knowable else (),
            host=rules.host,
            way=rules.matching,
            cause=WARM_START if kind == "unknown" and prediction.standing == FIRST and step.usage.read else "",
            is_identity=True,
            session=step.session,
            agent=step.agent,
            folder=step.project,
            timestamp=None if step.answered is None else iso(step.answered),
            model_row=rules.model,
            day=rules.day,
        )

    def _dollars(self, step: TranscriptStep, rules: ModelRules, usage: Usage) -> Decimal | None:
        start = step.answered if step.after is None else step.after
        moment, terms = moment_of(start, rules.day), CallTerms.of_modes(step.modes)
        return input_cost(usage, lambda tokens: self.prices.quote(rules.host, rules.model, moment, terms).of(tokens))


def _predict(step: TranscriptStep, before: ChainState | None, rules: ModelRules) -> _StepPrediction:
    if before is None or not (before.entries or before.step.summed):
        return _StepPrediction(0, FIRST, doubt="it sums several passes" if step.summed else "")
    whole = before.entries[0] if before.entries else ChainEntry(0, "", None)
    doubt = _doubt(step, before, rules)
    if doubt:
        return _StepPrediction(whole.tokens, UNCLEAR, whole.tokens, whole.ttl, doubt)
    for entry in before.entries:
        lives = _lives(entry, request_time(step, before), rules.ttl_s)
        if lives is None:
            return _StepPrediction(entry.tokens, UNCLEAR, whole.tokens, whole.ttl, AGE)
        if lives:
            return _StepPrediction(entry.tokens, ALIVE if entry is whole else EXPIRED, whole.tokens, whole.ttl)
    return _StepPrediction(0, EXPIRED, whole.tokens, whole.ttl)


def _doubt(step: TranscriptStep, before: ChainState, rules: ModelRules) -> str:
    """Why the step is not knowable, its age apart."""
    named = next((words for name, words in DOUBTS.items() if name in step.between), "")
    if named:
        return named
    if step.summed or before.step.summed:
        return "it, or the step before it, sums several passes"
    if before.thought and not rules.keeps_thinking and "human" in step.between:
        return "earlier thinking was stripped, because a person spoke"
    if step.blocks >= rules.lookback_positions:
        return f"{step.blocks} blocks were added, and a breakpoint may not look back that far"
    return ""


def _lives(entry: ChainEntry, now: TimeRange | None, ttl_s: Mapping[str, float]) -> bool | None:
    """Whether an entry is alive; None if the times allow both."""
    if entry.touched is None or now is None:
        return None
    if not has_expired(now.latest, entry.touched.earliest, ttl_s[entry.ttl]):
        return True
    return False if has_expired(now.earliest, entry.touched.latest, ttl_s[entry.ttl]) else None


def _usage(prediction: _StepPrediction, before: ChainState | None, after: TranscriptStep | None) -> Usage | None:
    """The predicted usage, sized by other steps' bills; None if none gives the length of the prompt."""
    length = _length(prediction, before, after)
    neighbour = before.step if before else after
    if length is None or neighbour is None:
        return None
    read = min(prediction.read, length)
    hour = _hour_part(read, length - read, before, after)
    return Usage(neighbour.usage.input_tokens, read, length - read - hour, hour)


def _length(prediction: _StepPrediction, before: ChainState | None, after: TranscriptStep | None) -> int | None:
    """Tokens up to the last breakpoint: what the next step of the loop reads, else as if the prompt grew as it last
    did.
    """
    least = 1 if prediction.doubt else max(1, prediction.read)
    if after is not None and not after.summed and after.usage.read >= least:
        return after.usage.read
    return before.step.usage.read + before.step.usage.write + before.growth if before else None


def _hour_part(read: int, written: int, before: ChainState | None, after: TranscriptStep | None) -> int:
    """How much of what is written has a TTL of 1h, going by the step before, else by the one after."""
    if before is None or not before.entries:
        return written if after and after.usage.write_1h else 0
    if before.entries[0].ttl == "1h":
        return written
    ends = [entry.tokens for entry in before.entries if entry.ttl == "1h"]
    return min(written, max(0, ends[0] - read)) if ends else 0


def _verdict(step: TranscriptStep, prediction: _StepPrediction, written: set[int]) -> tuple[str, bool]:
    """(kind, exact) by the definitions at the top of this file."""
    read = step.usage.read
    exact = abs(prediction.read - read) <= TOLERANCE
    if prediction.doubt:
        return "unknown", exact
    if read == 0:
        return "cold", exact
    missed = prediction.standing == ALIVE and in_loop(step) and read < prediction.read
    nearby = range(read - TOLERANCE, read + TOLERANCE + 1)
    ends_at_write = read <= prediction.whole + TOLERANCE and any(tokens in written for tokens in nearby)
    return "hit" if exact or missed or ends_at_write else "unknown", exact


def _reason(step: TranscriptStep, prediction: _StepPrediction, kind: str, exact: bool) -> str:
    read, predicted = step.usage.read, prediction.read
    if prediction.doubt:
        return f"not knowable: {prediction.doubt}"
    if exact:
        return ""
    if kind == "cold":
        return f"a hit of {predicted:,} tokens was predicted, and nothing was read: evicted, or the prompt was changed"
    if kind == "hit" and prediction.standing == EXPIRED:
        return f"read {read:,} tokens that had expired; predicted {predicted:,}"
    if kind == "hit":
        return f"read {read:,} of {predicted:,} tokens: evicted early, or the prompt was changed"
    return WRITTEN_BY_OTHERS.format(read) + _where(step, prediction)


def _where(step: TranscriptStep, prediction: _StepPrediction) -> str:
    """What may explain a read that ends where no recorded write did."""
    if prediction.standing == FIRST:
        return ""
    if step.usage.read > prediction.whole:
        return f"; predicted {prediction.read:,}: the client may have made a side call"
    if prediction.standing == EXPIRED:
        return f"; predicted {prediction.read:,}: others may have kept it alive"
    return f"; predicted {prediction.read:,}: the client may have changed what comes after them"


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
