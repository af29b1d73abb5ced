"""Lint of requests: of one alone, and of a request with the one that goes on from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import date
from typing import Any

from cachecost.analysis.lint.blocks import CHANGED, KEY_ORDER
from cachecost.analysis.lint.blocks import VOLATILE as CONFIRMED
from cachecost.analysis.lint.changes import ON_CHANGING, TOOL_ORDER, check_system, check_tools
from cachecost.analysis.lint.finding import LintFinding, merge_findings
from cachecost.analysis.lint.guesses import MAYBE, SURE, Guesser, early_blocks
from cachecost.analysis.lint.lengths import check_lengths
from cachecost.analysis.lint.loaded_request import LoadedRequest
from cachecost.analysis.lint.message_changes import check_messages
from cachecost.analysis.lint.parameters import check_parameters
from cachecost.analysis.lint.refusals import check_refusals
from cachecost.analysis.lint.request_loader import RequestLoader
from cachecost.analysis.lint.settling import settle
from cachecost.analysis.lint.tails import check_last_breakpoint, check_lookback
from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import RuleBook
from cachecost.tokens.factory import AUTO

MARGIN = 3
"""A breakpoint that fewer more positions than these would put out of reach is too near to the end of the lookback."""
NO_BREAKPOINT, HEAD_ONLY = "CC520", "CC522"
NOTHING = frozenset({"CC510", "CC511"})
"""Nothing is cached, or perhaps nothing."""
ACCIDENTS = frozenset({CONFIRMED, KEY_ORDER, TOOL_ORDER})
"""Changes that are never intended."""
REQUEST_CHECKS = (check_refusals, check_lengths)
"""Checks of one request."""
PAIR_CHECKS = (check_parameters, check_tools, check_system, check_messages)
"""Checks of a request with a breakpoint that counts, and the request after it."""
APART_CHECKS = (check_tools, check_system, check_messages)
"""Checks of requests of different conversations."""
CHANGES = frozenset({CONFIRMED, CHANGED, KEY_ORDER, TOOL_ORDER, ON_CHANGING})
"""What differs where the rest is the same; other tools are another agent."""
Index = int
Body = Mapping[str, Any]


class Linter:
    """Takes requests in order; `findings` are what is wrong with them, alone and in pairs."""

    def __init__(self, margin: int = MARGIN) -> None:
        self._margin = margin
        self._guesser = Guesser()
        self._found: list[tuple[Index, LintFinding]] = []
        self._before: list[Index | None] = []
        self._is_live: list[bool] = []
        self._is_log: list[bool] = []
        self._sent_again: set[bytes] = set()
        self._written: set[Prefix] = set()

    def add(
        self,
        loaded: LoadedRequest,
        before: LoadedRequest | None = None,
        before_index: Index | None = None,
        *,
        is_aside: bool = False,
    ) -> Index:
        """Look at a request, and at the step to it from the one before; its number.

        A side call differs on purpose, so only accidental changes are reported for it.
        """
        index = len(self._before)
        self._before.append(before_index)
        self._is_live.append(bool(loaded.live))
        self._is_log.append(loaded.call is not None)
        found = [*_check_request(loaded), *self._guesser.guesses(loaded)]
        if before is not None:
            self._sent_again |= {one.digest for one in found if one.digest} & {
                block.digest for block in early_blocks(before)
            }
            pair = _check_pair(before, loaded, self._margin, {one.code for one in found})
            pair = settle(before, loaded, pair, self._written)
            found += [one for one in pair if not is_aside or one.code in ACCIDENTS]
        self._sent_again |= _read_digests(loaded, {one.digest for one in found if one.digest})
        self._written |= {breakpoint.prefix for breakpoint in loaded.live}
        self._found += [(index, replace(one, request=loaded.label, call=loaded.call)) for one in found]
        return index

    def add_apart(self, other: LoadedRequest, loaded: LoadedRequest, index: Index) -> None:
        """Look at what the request `index` shares with one of another conversation, behind what differs."""
        found = [one for check in APART_CHECKS for one in check(other, loaded) if one.code in CHANGES]
        settled = settle(other, loaded, found, self._written)
        self._found += [(index, replace(one, request=loaded.label, call=loaded.call)) for one in settled]

    @property
    def findings(self) -> list[LintFinding]:
        """All findings, the worst first, without repeats."""
        continued, in_pair = self._find_continued(), self._in_pairs()
        kept = [
            one
            for index, one in self._found
            if not (one.code in NOTHING and index in continued)
            and not (one.code == NO_BREAKPOINT and self._is_log[index] and index not in in_pair)
        ]
        return merge_findings(_drop_settled(kept, self._sent_again, self._guesser))

    def _find_continued(self) -> set[Index]:
        """Requests that a later one with a breakpoint that counts goes on from: their conversation was only short
        yet.
        """
        continued: set[Index] = set()
        for index in range(len(self._before) - 1, -1, -1):
            before = self._before[index]
            if before is not None and (self._is_live[index] or index in continued):
                continued.add(before)
        return continued

    def _in_pairs(self) -> set[Index]:
        pairs = [(index, before) for index, before in enumerate(self._before) if before is not None]
        return {one for pair in pairs for one in pair}


def _check_request(loaded: LoadedRequest) -> Iterator[LintFinding]:
    return (finding for check in REQUEST_CHECKS for finding in check(loaded))


def _read_digests(loaded: LoadedRequest, digests: Set[bytes]) -> set[bytes]:
    """Those of `digests` whose block the bill shows to be read from the cache: an earlier call sent it, too."""
    read = loaded.bill.usage.read if loaded.bill and not loaded.bill.is_summed else 0
    if not digests or not read:
        return set()
    ends = {node.block.digest: loaded.length(node) for node in loaded.nodes() if node.block}
    return {one for one in digests if ends.get(one, read) + loaded.error(ends.get(one, read)) < read}


def _check_pair(a: LoadedRequest, b: LoadedRequest, margin: int, alone: set[str]) -> Iterator[LintFinding]:
    """What the step from a request to the next one loses, or may lose. `alone` are the codes found in `b` by itself."""
    for check in PAIR_CHECKS if a.live else ():
        yield from check(a, b)
    yield from check_lookback(a, b, margin)
    yield from (one for one in check_last_breakpoint(a, b) if HEAD_ONLY not in alone)


def _drop_settled(found: Sequence[LintFinding], sent_again: set[bytes], guesser: Guesser) -> Iterator[LintFinding]:
    """Without guesses that pairs have settled: the same block was sent again, when a clock in it would have gone on, or
    it was seen to change.
    """
    sightings = {(one.digest, one.request, one.call) for one in found if one.digest}
    again = Counter(digest for digest, _, _ in sightings)
    seen = tuple({one.path for one in found if one.code == CONFIRMED})
    for one in found:
        is_guess = one.code in (SURE, MAYBE)
        is_same = one.digest in sent_again or again[one.digest] > 1
        is_same = is_same and not (one.code == SURE and guesser.may_have_stood_still(one.digest))
        if not is_guess or not (is_same or one.path in seen):
            yield one


def lint(
    request_body: Body,
    next_body: Body | None = None,
    *,
    host: str = "anthropic",
    as_of: date | str | None = None,
    tokens: str = AUTO,
    margin: int = MARGIN,
) -> list[LintFinding]:
    """What is wrong with a Messages body, or with it and the one that is sent after it, the worst first.

    `as_of` picks the rules (a date or "2026-03-07"; that of the shipped data), `tokens` the counter. With fewer than
    `margin` more positions between them the last breakpoint of the first would be out of the second's reach.
    Raises InputError where a body is none, CannotEvaluate for what is not known.
    """
    day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    bodies = [("request", request_body)] + ([("next", next_body)] if next_body is not None else [])
    return lint_bodies(bodies, RequestLoader(RuleBook(as_of=day), host, tokens), margin)


def lint_bodies(bodies: Iterable[tuple[str, Body]], loader: RequestLoader, margin: int = MARGIN) -> list[LintFinding]:
    """As `lint`, for bodies that were sent one after another, each with a name."""
    linter, before = Linter(margin), None
    for number, (label, body) in enumerate(bodies):
        loaded = loader.body(body, label)
        linter.add(loaded, before, number - 1 if number else None)
        before = loaded
    return linter.findings
