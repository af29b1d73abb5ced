"""What a bill says of a prediction: right or wrong, or not to be known, and why.

On hosts with breakpoints a read must equal an entry that the recording can have written. Where such an entry had
expired by the recording's own times, a call that nobody recorded may have kept it alive, so that this read is not to be
known either. Hosts that cache by themselves keep every prefix, so any read up to what an earlier call sent can be one
of the recording's; a hit is exact if it is the very number that was predicted, on the host's grid as it is told. A host
that promises nothing gets a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachecost.analysis.fidelity.recording_check import TOLERANCE
from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import VisibilityLag
from cachecost.providers.usage import Usage

ESTIMATE = 0.01
"""Share that an estimated length may be off and still count as one that the recording could have written."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kind`, `exact` and `holds` of a judgement; why it is not right, in words, else "".

    `cause` is the probable one from the closed list of causes, where one is known. `found` is the prefix that the
    bill proves to be alive although the recording cannot tell.
    """

    kind: str
    exact: bool
    reason: str = ""
    holds: bool = False
    cause: str = ""
    found: Prefix | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A prediction held against a bill. `is_told`: other bills tell how long the predicted hit is, exactly.

    `first_read` is what the first of several passes was billed to read; None where only their sum is told.
    """

    billed: Usage
    predicted: Usage
    hit: Prefix | None
    is_told: bool
    passes: int = 1
    first_read: int | None = None


@dataclass(frozen=True, slots=True)
class Possible:
    """An entry that an earlier call of the recording wrote on the way of this prompt, as it stands before the call.

    `read` is what a hit there would read, all passes together; `is_told`: other bills tell it. `age_s` is the time
    since its writer started, `expired_s` since it expired (None: it has not).
    """

    prefix: Prefix
    read: int
    is_told: bool
    age_s: float
    expired_s: float | None = None

    def is_read_by(self, billed: int) -> bool:
        return abs(self.read - billed) <= _slack(billed, self.is_told)


def of_marks(held: Held, possible: Sequence[Possible], lag: VisibilityLag | None = None) -> Verdict:
    """By docs/output-formats.md. `possible` are all entries that could be there, `lag` is that of their model."""
    read, predicted = held.billed.read, held.predicted.read
    if _is_cold(held):
        missed = held.hit is not None
        late = _late(held, possible, lag) if missed else ""
        return Verdict("cold", not missed, _not_read(predicted, late) if missed else "", cause=_named(late))
    matching = [one for one in possible if one.is_read_by(read)]
    if not matching:
        return Verdict("unknown", False, _unknown(read, predicted))
    exact = abs(predicted - read) <= TOLERANCE
    if not exact and all(one.expired_s is not None for one in matching):
        return Verdict("unknown", False, _kept_alive(read, matching[0]), found=matching[0].prefix)
    late = _late(held, possible, lag) if predicted > read else ""
    return Verdict("hit", exact, "" if exact else _another(held, possible) + late, cause="" if exact else _named(late))


def of_prefixes(held: Held, reach: int) -> Verdict:
    """Of a host that keeps every prefix: an earlier call sent `reach` tokens of this prompt."""
    read, predicted = held.billed.read, held.predicted.read
    if read == 0:
        return Verdict("cold", predicted == 0, "" if predicted == 0 else _not_read(predicted))
    if read > reach + _slack(read, False):
        return Verdict("unknown", False, _unknown(read, predicted))
    exact = abs(predicted - read) <= TOLERANCE
    return Verdict("hit", exact, "" if exact else _other_length(held))


def of_range(held: Held, reach: int) -> Verdict:
    """Of a host that promises nothing: the read is to lie between nothing and what was predicted."""
    read, most = held.billed.read, held.predicted.read
    if read > reach + _slack(read, False):
        return Verdict("unknown", False, _unknown(read, most))
    if read <= most + _slack(read, False):
        return Verdict("range", False, holds=True)
    return Verdict("range", False, f"at most {most:,} tokens were predicted, {read:,} were read")


def _is_cold(held: Held) -> bool:
    """Did the first pass read nothing? Then later passes read no more than was written before each."""
    if held.first_read is not None:
        return held.first_read == 0
    return held.billed.read <= (held.passes - 1) * held.billed.write


def _slack(read: int, is_told: bool) -> float:
    return TOLERANCE if is_told else max(TOLERANCE, ESTIMATE * read)


def _late(held: Held, possible: Sequence[Possible], lag: VisibilityLag | None) -> str:
    """The words where the entry that was predicted to be hit was probably not readable yet; "" where it was."""
    entry = next((one for one in possible if one.prefix is held.hit), None)
    if lag is None or entry is None or entry.age_s > lag.longest_s:
        return ""
    return f"; probable cause: visibility lag, as the longer entry was written {entry.age_s:.1f} s before"


def _named(late: str) -> str:
    return "visibility_lag" if late else ""


def _unknown(read: int, predicted: int) -> str:
    told = f"; predicted {predicted:,}" if predicted else ""
    return f"read {read:,} tokens that no recorded call can have written{told}"


def _kept_alive(read: int, entry: Possible) -> str:
    since = f"{entry.expired_s or 0:,.0f} s after they expired"
    return f"read {read:,} tokens {since}: an unrecorded call may have kept them alive"


def _not_read(predicted: int, late: str = "") -> str:
    why = late or ": evicted, or not readable yet"
    return f"a hit of {predicted:,} tokens was predicted, and nothing was read{why}"


def _other_length(held: Held) -> str:
    told = "" if held.is_told or held.hit is None else "; the predicted length is an estimate"
    return f"{held.predicted.read:,} tokens were predicted, {held.billed.read:,} were read{told}"


def _another(held: Held, possible: Sequence[Possible]) -> str:
    predicted, read = held.predicted.read, held.billed.read
    if held.hit is None:
        return f"no hit was predicted, and {read:,} tokens were read that an earlier call could have written"
    nearest = min(possible, key=lambda one: abs(one.read - read))
    if nearest.prefix is held.hit:
        told = (
            "other bills tell another length" if held.is_told else "its length is an estimate: no other bill tells it"
        )
        return f"the same prefix, {predicted - read:+,} tokens off; {told}"
    return f"another prefix was hit: {predicted:,} tokens were predicted, {read:,} were read"
