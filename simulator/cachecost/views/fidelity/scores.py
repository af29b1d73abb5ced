"""The scores of a validation, added up once for every rendering, and host by host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePath
from statistics import median

from cachecost.analysis.fidelity.validation import is_held_out
from cachecost.base.formatting import count_text, margin_text, percent
from cachecost.base.structs import replace
from cachecost.ledger.results import Fidelity, Judgement, is_thin
from cachecost.providers.usage import ZERO

Key = Callable[[Judgement], Iterable[str]]
GROUPS: dict[str, Key] = {
    "project": lambda one: [one.client],
    "model": lambda one: [one.model],
    "feature": lambda one: one.features,
}
"""The ways a summary is broken down; a call counts under each of its features."""
FITTED, HELD_OUT = "fitted", "held out"
PARTS: dict[str, bool] = {FITTED: False, HELD_OUT: True}
"""Whether a recording of this part is held out."""


@dataclass(frozen=True, slots=True)
class Dollars:
    """Dollars of the input side; None where no price is known."""

    predicted: Decimal | None = None
    billed: Decimal | None = None


class Score:
    """Calls of a group: how many hits and cold starts were knowable, and exactly right.

    Errors are shares of the billed input tokens; dollars are of the input side, of calls whose price is known; None if
    that is none. `known` leaves out the calls that are unknown. `ranges` are calls on hosts that do not promise their
    hits, `held` those whose range holds, `coverage` the mean share of them in which it is to hold. In none of these are
    the `spanning`, whose range is as wide as the prompt; `width` is the median one of all, as a share of the prompt.
    `late` are misses that the visibility lag probably caused, `warm` those of the unknown that read what was cached
    before the recording began, `cold_written` cold starts that were billed a write.
    """

    def __init__(self, name: str, judgements: Sequence[Judgement]) -> None:
        hits, cold, unknown = ([one for one in judgements if one.kind == kind] for kind in ("hit", "cold", "unknown"))
        widths = sorted(one.range_width for one in judgements if one.has_range)
        ranges = [one for one in judgements if one.has_range and not one.spans_prompt]
        errors = sorted(one.token_error for one in judgements)
        self.name, self.calls, self.unknown = name, len(judgements), len(unknown)
        self.hits, self.exact_hits = len(hits), sum(one.exact for one in hits)
        self.cold, self.exact_cold = len(cold), sum(one.exact for one in cold)
        self.cold_written = sum(one.billed.write > 0 for one in cold)
        self.median, self.p95 = percentile(errors, 50), percentile(errors, 95)
        self.ranges, self.held = len(ranges), sum(one.holds for one in ranges)
        self.coverage = sum(one.coverage for one in ranges) / len(ranges) if ranges else 0.0
        self.spanning, self.width = len(widths) - len(ranges), percentile(widths, 50)
        self.late = sum(one.cause == "visibility_lag" for one in judgements)
        self.warm = sum(one.cause == "warm_start" for one in unknown)
        whole = _dollars(judgements)
        self.predicted_usd, self.billed_usd = whole.predicted, whole.billed
        self.not_known = _dollars(unknown)
        self.known = _dollars([one for one in judgements if one.kind != "unknown"])

    @property
    def knowable(self) -> int:
        return self.hits + self.cold

    @property
    def right(self) -> int:
        return self.exact_hits + self.exact_cold

    @property
    def ranges_in_words(self) -> str:
        """Of how many calls the range holds, and the share of which it is to: "9 of 10 (90%)"."""
        return f"{self.held:,} of {self.ranges:,} ({percent(self.coverage)})" if self.ranges else ""

    @property
    def width_in_words(self) -> str:
        """How wide ranges are, and how many as wide as the prompt: "43%, 2 all"; "" where there are none."""
        spanning = f", {self.spanning:,} all" if self.spanning else ""
        return f"{percent(self.width)}{spanning}" if self.ranges or self.spanning else ""

    @property
    def off_usd(self) -> Decimal | None:
        """Predicted minus billed, of knowable calls: positive where the prediction was too expensive."""
        if self.known.predicted is None or self.known.billed is None:
            return None
        return self.known.predicted - self.known.billed


def basis_in_words(judgements: Sequence[Judgement]) -> str:
    """How much a score rests on: "7 models, 5 clients, 40 recordings"."""
    named = {"model_name": "model", "client": "client", "source": "recording"}
    kinds = {noun: {getattr(one, name) for one in judgements} for name, noun in named.items()}
    return ", ".join(count_text(len(found), noun) for noun, found in kinds.items())


def first_cold_starts(judgements: Sequence[Judgement]) -> int:
    """How many cold starts are the first call of their recording: of these no read can be predicted."""
    first: dict[str, Judgement] = {}
    for one in judgements:
        if one.source not in first or one.line < first[one.source].line:
            first[one.source] = one
    return sum(one.kind == "cold" for one in first.values())


def scores(fidelity: Fidelity, key: Key) -> list[Score]:
    """A score for each group, the largest group first, equals by name. Transcripts are groups of their own."""
    groups: dict[str, list[Judgement]] = {}
    is_mixed = bool(fidelity.requests and fidelity.transcripts)
    for one in fidelity.judgements:
        for name in key(one):
            groups.setdefault(f"{name}, transcripts" if is_mixed and one.is_identity else name, []).append(one)
    made = [Score(name, group) for name, group in groups.items()]
    return sorted(made, key=lambda each: (-each.calls, each.name))


def percentile(ordered: Sequence[float], rank: int) -> float:
    """The smallest value that at least `rank` percent of all do not exceed; 0 of none."""
    return ordered[max(0, -(-len(ordered) * rank // 100) - 1)] if ordered else 0.0


def _dollars(judgements: Sequence[Judgement]) -> Dollars:
    return Dollars(_sum(one.predicted_usd for one in judgements), _sum(one.billed_usd for one in judgements))


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, ZERO) if known else None


@dataclass(frozen=True, slots=True)
class HostPart:
    """A host's recordings of one part: how many files of how many clients, and their scores."""

    host: str
    part: str
    files: int
    clients: int
    score: Score
    is_identity: bool = False

    @property
    def is_thin(self) -> bool:
        return is_thin(self.score.calls - self.score.unknown, self.clients)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often a range or an error margin holds, by part: (calls where it holds, calls). `width` is that of ranges."""

    what: str
    stated: str
    fitted: tuple[int, int]
    held_out: tuple[int, int]
    clients: int
    width: str = ""

    @property
    def is_thin(self) -> bool:
        return is_thin(self.fitted[1] + self.held_out[1], self.clients)


def select_part(judgements: Iterable[Judgement], part: str) -> list[Judgement]:
    return [one for one in judgements if is_held_out(PurePath(one.source).name) == PARTS[part]]


def host_parts(fidelity: Fidelity) -> list[HostPart]:
    """Two rows for each host that was recorded, fitted and held out; transcripts have rows of their own."""
    rows = []
    for host, is_identity in sorted({(one.host, one.is_identity) for one in fidelity.judgements}):
        judgements = [one for one in fidelity.judgements if (one.host, one.is_identity) == (host, is_identity)]
        for part in PARTS:
            own = select_part(judgements, part)
            files, clients = {one.source for one in own}, {one.client for one in own}
            rows.append(HostPart(host, part, len(files), len(clients), Score(host, own), is_identity))
    return rows


def coverages(fidelity: Fidelity) -> list[Coverage]:
    """The coverage of the range of each host that has one, then that of each tokenizer's error margin: of calls of one
    pass, counted without any bill, and without what no request holds (results of server tools, explicit cache
    objects)."""
    found = []
    ranged = [one for one in fidelity.judgements if one.has_range]
    for host, share in sorted({(one.host, one.coverage) for one in ranged}):
        own = [one for one in ranged if (one.host, one.coverage) == (host, share)]
        stated = f"{percent(share)} of calls" if 0 < share < 1 else "from nothing to the ideal"
        narrow = [one for one in own if not one.spans_prompt]
        made = _coverage(f"{host}: tokens read", stated, narrow, lambda one: one.holds)
        found.append(replace(made, width=Score(host, own).width_in_words))
    measured = [
        one
        for one in fidelity.estimates
        if one.error_margin and one.way != "named" and "server tools" not in one.features
    ]
    for tokenizer in sorted({one.tokenizer for one in measured}):
        own = [one for one in measured if one.tokenizer == tokenizer]
        stated = f"{margin_text(median(one.error_margin for one in own))} (median) in 9 of 10"
        what = f"{tokenizer}: tokens of a prompt"
        found.append(_coverage(what, stated, own, lambda one: one.token_error <= one.error_margin))
    return found


def _coverage(what: str, stated: str, judgements: Sequence[Judgement], holds: Callable[[Judgement], bool]) -> Coverage:
    parts = {part: select_part(judgements, part) for part in PARTS}
    fitted, held_out = ((sum(map(holds, parts[part])), len(parts[part])) for part in (FITTED, HELD_OUT))
    return Coverage(what, stated, fitted, held_out, len({one.client for one in judgements}))
