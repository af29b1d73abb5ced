"""What a bill says of a prediction: right or wrong, or not to be known, and why.

On hosts with marks a read must equal an entry that the recording can have written. Hosts that cache by themselves
keep every prefix, so any read up to what an earlier call sent can be one of the recording's; a hit is exact if it is
the very number that was predicted, on the host's grid as it is told. A host that promises nothing gets a range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cachecost.prompts.blocks import Prefix
from cachecost.providers.usage import Usage

TOLERANCE = 2
"""Tokens that a read may be off and still be exact (contract, `validate`)."""
ESTIMATE = 0.01
"""Share that an estimated length may be off and still count as one that the recording could have written."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kind`, `exact` and `holds` of a judgement; why it is not right, in words, else ""."""

    kind: str
    exact: bool
    reason: str = ""
    holds: bool = False


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


def of_marks(held: Held, possible: Sequence[tuple[int, bool]]) -> Verdict:
    """By the contract's definitions. `possible`: reads of entries that could be there, and whether they are told."""
    read, predicted = held.billed.read, held.predicted.read
    if _is_cold(held):
        return Verdict("cold", held.hit is None, "" if held.hit is None else _not_read(predicted))
    if not any(abs(size - read) <= _slack(read, is_told) for size, is_told in possible):
        return Verdict("unknown", False, _unknown(read, predicted))
    exact = abs(predicted - read) <= TOLERANCE
    return Verdict("hit", exact, "" if exact else _another(held))


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


def _unknown(read: int, predicted: int) -> str:
    told = f"; predicted {predicted:,}" if predicted else ""
    return f"read {read:,} tokens that no recorded call can have written{told}"


def _not_read(predicted: int) -> str:
    return f"a hit of {predicted:,} tokens was predicted, and nothing was read: evicted, or not readable yet"


def _other_length(held: Held) -> str:
    told = "" if held.is_told or held.hit is None else "; the predicted length is an estimate"
    return f"{held.predicted.read:,} tokens were predicted, {held.billed.read:,} were read{told}"


def _another(held: Held) -> str:
    predicted, read = held.predicted.read, held.billed.read
    if held.hit is None:
        return f"no hit was predicted, and {read:,} tokens were read that an earlier call could have written"
    if abs(predicted - read) <= ESTIMATE * read and not held.is_told:
        return f"the same prefix; its length is an estimate, {predicted - read:+,} tokens off: no other bill tells it"
    return f"another prefix was hit: {predicted:,} tokens were predicted, {read:,} were read"
