"""The scores of each host on the recordings that fits may use, beside those on the recordings that are held out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import median

from cachecost.analysis.fidelity.holdout import is_held_out
from cachecost.base.formatting import percent
from cachecost.ledger.results import Fidelity, Judgement, is_thin
from cachecost.views.fidelity.scores import Score, score

FITTED, HELD_OUT = "fitted", "held out"
PARTS: dict[str, bool] = {FITTED: False, HELD_OUT: True}
"""Whether a recording of this part is held out."""
SERVER_TOOLS = "server tools"


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
    def judged(self) -> int:
        return self.score.calls - self.score.unknown

    @property
    def is_thin(self) -> bool:
        return is_thin(self.judged, self.clients)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often a range or an error margin holds, by part: (calls where it holds, calls)."""

    what: str
    stated: str
    fitted: tuple[int, int]
    held_out: tuple[int, int]
    clients: int

    @property
    def is_thin(self) -> bool:
        return is_thin(self.fitted[1] + self.held_out[1], self.clients)


def of_part(judgements: Iterable[Judgement], part: str) -> list[Judgement]:
    """The judgements of the recordings in a part (`PARTS`)."""
    return [one for one in judgements if is_held_out(PurePath(one.source).name) == PARTS[part]]


def host_parts(fidelity: Fidelity) -> list[HostPart]:
    """Two rows for each host that was recorded, fitted and held out; transcripts have rows of their own."""
    kinds = sorted({(one.host, one.is_identity) for one in fidelity.judgements})
    return [_host_part(host, part, identity, fidelity.judgements) for host, identity in kinds for part in PARTS]


def _host_part(host: str, part: str, is_identity: bool, judgements: Sequence[Judgement]) -> HostPart:
    own = of_part((one for one in judgements if (one.host, one.is_identity) == (host, is_identity)), part)
    files, clients = {one.source for one in own}, {one.client for one in own}
    return HostPart(host, part, len(files), len(clients), score(host, own), is_identity)


def coverages(fidelity: Fidelity) -> list[Coverage]:
    """The coverage of the range of each host that has one, then that of each tokenizer's error margin.

    Of a margin: calls of one pass whose whole prompt, with no length from a bill, is billed within it. The results of
    server tools and what an explicit cache object holds are in no request: calls with them tell nothing of a counter.
    """
    return [*_ranges(fidelity.judgements), *_margins(fidelity.estimates)]


def _ranges(judgements: Sequence[Judgement]) -> Iterator[Coverage]:
    ranged = [one for one in judgements if one.has_range]
    for host, share in sorted({(one.host, one.coverage) for one in ranged}):
        own = [one for one in ranged if (one.host, one.coverage) == (host, share)]
        stated = f"{percent(share)} of calls" if 0 < share < 1 else "from nothing to the ideal"
        yield _coverage(f"{host}: tokens read", stated, own, lambda one: one.holds)


def _margins(estimates: Sequence[Judgement]) -> Iterator[Coverage]:
    measured = [
        one for one in estimates if one.error_margin and one.way != "named" and SERVER_TOOLS not in one.features
    ]
    for tokenizer in sorted({one.tokenizer for one in measured}):
        own = [one for one in measured if one.tokenizer == tokenizer]
        stated = f"±{percent(median(one.error_margin for one in own))} (median) in 9 of 10"
        yield _coverage(
            f"{tokenizer}: tokens of a prompt", stated, own, lambda one: one.token_error <= one.error_margin
        )


def _coverage(what: str, stated: str, judgements: Sequence[Judgement], holds: Callable[[Judgement], bool]) -> Coverage:
    parts = {part: of_part(judgements, part) for part in PARTS}
    fitted, held_out = ((sum(map(holds, parts[part])), len(parts[part])) for part in (FITTED, HELD_OUT))
    return Coverage(what, stated, fitted, held_out, len({one.client for one in judgements}))
