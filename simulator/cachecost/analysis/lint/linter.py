"""Lint of requests, one after another, and of a recording: every call, and every step to the one that goes on from it.

Of different conversations too: what both send, and one of them behind a block that differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from cachecost.analysis.lint.finding import LintFinding, merge_findings
from cachecost.analysis.lint.loaded_request import LoadedRequest, RequestLoader, SizedBreakpoint
from cachecost.analysis.lint.pair_checks import (
    CHANGED,
    KEY_ORDER,
    ON_CHANGING,
    TOOL_ORDER,
    VOLATILE,
    check_last_breakpoint,
    check_lookback,
    check_messages,
    check_parameters,
    check_system,
    check_tools,
    settle,
)
from cachecost.analysis.lint.request_checks import MAYBE, SURE, Guesser, check_lengths, check_refusals, early_blocks
from cachecost.base.errors import CannotEvaluate, OtherCache
from cachecost.base.structs import replace
from cachecost.caches.losses import MOST_RECENT, find_shared_content, have_one_static
from cachecost.conversations.calls import Call
from cachecost.conversations.sessions import CallTree, Turn
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.compare import ancestor
from cachecost.prompts.request import Breakpoint, wire_path
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.rules import RuleBook
from cachecost.simulation.workload import LeftOut
from cachecost.tokens.factory import AUTO

HEAD_ONLY = "CC522"
MARGIN = 3
"""A breakpoint that fewer more positions than these would put out of reach is too near to the end of the lookback."""
ACCIDENTS = frozenset({VOLATILE, KEY_ORDER, TOOL_ORDER})
"""Changes that are never intended."""
REQUEST_CHECKS = (check_refusals, check_lengths)
"""Checks of one request."""
PAIR_CHECKS = (check_parameters, check_tools, check_system, check_messages)
"""Checks of a request with a breakpoint that counts, and the request after it."""
APART_CHECKS = (check_tools, check_system, check_messages)
"""Checks of requests of different conversations."""
CHANGES = frozenset({VOLATILE, CHANGED, KEY_ORDER, TOOL_ORDER, ON_CHANGING})
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
        looks_back = loaded.rules.uses_breakpoints
        alone = (finding for check in REQUEST_CHECKS if looks_back for finding in check(loaded))
        found = [*alone, *self._guesser.guesses(loaded)]
        if before is not None:
            digests = {one.digest for one in found if one.digest}
            self._sent_again |= digests & {block.digest for _, block in early_blocks(before)}
            pair = [one for check in (PAIR_CHECKS if before.live else ()) for one in check(before, loaded)]
            if looks_back:
                pair += check_lookback(before, loaded, self._margin)
                if all(one.code != HEAD_ONLY for one in found):
                    pair += check_last_breakpoint(before, loaded)
            settled = settle(before, loaded, pair, self._written)
            found += [one for one in settled if not is_aside or one.code in ACCIDENTS]
        digests = {one.digest for one in found if one.digest}
        read = loaded.bill.usage.read if loaded.bill and not loaded.bill.is_summed else 0
        if digests and read:  # what was read from the cache was sent by an earlier call, too
            ends = {node.block.digest: loaded.length(node) for node in loaded.nodes() if node.block}
            known = ((one, ends.get(one, read)) for one in digests)
            self._sent_again |= {one for one, end in known if end + loaded.error(end) < read}
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
        """All findings, the worst first, without repeats.

        Without what a conversation lacks that was only short yet, as a later request with a breakpoint that counts goes
        on from it; and without guesses that pairs have settled: the same block was sent again, when a clock in it would
        have gone on, or it was seen to change.
        """
        continued, in_pair = set[Index](), set[Index]()
        for index, before in reversed(list(enumerate(self._before))):
            if before is not None:
                in_pair |= {index, before}
                continued |= {before} if self._is_live[index] or index in continued else set()
        found: list[LintFinding] = []
        for index, one in self._found:
            is_short_yet = one.code in ("CC510", "CC511") and index in continued
            is_alone = one.code == "CC520" and self._is_log[index] and index not in in_pair
            if not is_short_yet and not is_alone:
                found.append(one)
        sent = Counter(digest for digest, _, _ in {(one.digest, one.request, one.call) for one in found if one.digest})
        changed = {one.path for one in found if one.code == VOLATILE}
        kept: list[LintFinding] = []
        for one in found:
            is_same = one.digest in self._sent_again or sent[one.digest] > 1
            is_same = is_same and not (one.code == SURE and self._guesser.may_have_stood_still(one.digest))
            if one.code not in (SURE, MAYBE) or not (is_same or one.path in changed):
                kept.append(one)
        return merge_findings(kept)


def lint(
    request_body: Body,
    next_body: Body | None = None,
    *,
    host: str = AUTO_HOST,
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


ConversationPlace = tuple[str, str, str | None, str]
"""File, workspace, host and model: conversations of different places share no cache."""


@dataclass(slots=True)
class RecentConversations:
    """The latest request of each recent conversation; `size` gives it its lengths."""

    size: Callable[[LoadedRequest], LoadedRequest]
    _recent: dict[ConversationPlace, dict[int, LoadedRequest]] = field(default_factory=dict)

    def add(self, request: LoadedRequest, number: int, before: int, place: ConversationPlace) -> None:
        """Keep a request instead of the one that it goes on from."""
        known = self._recent.setdefault(place, {})
        known.pop(before, None)
        known[number] = request
        if len(known) > MOST_RECENT:
            del known[next(iter(known))]

    def find_shared(self, request: LoadedRequest, place: ConversationPlace) -> LoadedRequest | None:
        """The latest one that shares content with a request, up to the end of that; of those with its own static prefix
        if there are any: their difference is in the messages."""
        recent = [*reversed(self._recent.get(place, {}).values())]
        same = [one for one in recent if _static_prefix(one) == _static_prefix(request)]
        shared = (up_to_shared(self.size(one), request) for one in same or recent)
        return next((one for one in shared if one), None)


def _static_prefix(loaded: LoadedRequest) -> tuple[bytes, bytes]:
    return loaded.request.tools.digest, loaded.request.system.digest


def up_to_shared(one: LoadedRequest, other: LoadedRequest) -> LoadedRequest | None:
    """The request as if its last breakpoint were at the end of what the other one, of another conversation, sends as
    well behind what differs: static prefixes that are one but for an order or a few characters, or content that is long
    enough to be cached. None where there is no such thing."""
    if not one.live or one.prompt.cache_keys != other.prompt.cache_keys:
        return None
    found = find_shared_content(other.request, other.prompt.end, one.request, one.live[-1].prefix, one.sizes)
    parted = found.now[0].parent if found else None
    if found and parted and one.length(parted) + found.tokens >= one.rules.minimum_tokens:
        return replace(one, breakpoints=(_breakpoint_at(one, found.kept[-1]),))
    head = ancestor(one.live[-1].prefix, min(one.live[-1].prefix.depth, one.prompt.head.depth))
    is_static = head.block is not None and have_one_static(one.request, other.request)
    return replace(one, breakpoints=(_breakpoint_at(one, head),)) if is_static else None


def _breakpoint_at(loaded: LoadedRequest, prefix: Prefix) -> SizedBreakpoint:
    request, index = loaded.request, prefix.depth - 1
    if prefix.layer is not Layer.TOOLS:
        index -= len(request.tools.blocks)
    place = Breakpoint(prefix.layer, index)
    if prefix.layer is Layer.MESSAGES:
        place = Breakpoint(Layer.MESSAGES, index - len(request.system.blocks), node=request.thread.beginning)
    return SizedBreakpoint(place, wire_path(request, place), prefix, loaded.length(prefix), "enough")


Head = tuple[str, str | None, str, str, str, bytes, bytes]


@dataclass(frozen=True, slots=True)
class LintedLog:
    """The findings of a recording, how many calls were looked at, why others could not be, with their numbers, and
    which were left out, as lint does not support their cache."""

    findings: list[LintFinding]
    requests: int
    not_evaluated: dict[str, list[int]] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)


def lint_log(calls: Iterable[Call], label: str, loader: RequestLoader, margin: int = MARGIN) -> LintedLog:
    """Lint calls in time order. Failed calls and those without their request are left out.

    `label` names the log in the findings; "" is for several logs: then each finding names the file of its call.
    """
    pairing = _Pairing()
    known: dict[int, LoadedRequest] = {}
    wrong: dict[str, list[int]] = {}
    others: dict[str, list[int]] = {}
    left_out = LeftOut()
    places: dict[int | None, tuple[str, str, int]] = {}
    for number, call in enumerate(calls, 1):
        pairing.add(call, number)
        places[call.number or number] = call.session, call.file, call.line
        if call.has_failed or call.why_unknown:
            continue
        try:
            known[number] = loader.call(call, label or call.file, call.number or number)
        except OtherCache as error:
            left_out[call.request.model, host_of(call.host, loader.host, call.request.model)] += 1
            others.setdefault(str(error), []).append(call.number or number)
        except CannotEvaluate as error:
            wrong.setdefault(str(error), []).append(call.number or number)
    findings: list[LintFinding] = []
    for one in _lint_pairs(known, pairing, loader, margin):
        session, file, line = places[one.call]
        findings.append(replace(one, session=session, file=file, line=line or None))
    if not known:
        return LintedLog(findings, 0, {**others, **wrong})
    return LintedLog(findings, len(known), wrong, left_out)


def _lint_pairs(
    known: dict[int, LoadedRequest], pairing: _Pairing, loader: RequestLoader, margin: int
) -> list[LintFinding]:
    """The findings of all calls. Lengths by bills are kept only as long as a later call is compared with them."""
    linter, recent = Linter(margin), RecentConversations(loader.size)
    indices: dict[int, int] = {}
    sized: dict[int, LoadedRequest] = {}
    last_use = {before: number for number, before in pairing.before.items()}
    for number, one in known.items():
        loaded = sized[number] = loader.size(one)
        before = pairing.before.get(number, 0)
        indices[number] = linter.add(loaded, sized.get(before), indices.get(before), is_aside=pairing.is_aside(number))
        if before not in known and (other := recent.find_shared(loaded, pairing.places[number])):
            linter.add_apart(other, loaded, indices[number])
        recent.add(one, number, before, pairing.places[number])
        for done in (number, before):
            if last_use.get(done, 0) <= number:
                sized.pop(done, None)
    return linter.findings


class _Pairing:
    """Finds the call that each goes on from (`before`): as sessions are found, or by nearly equal messages."""

    def __init__(self) -> None:
        self.before: dict[int, int] = {}
        self.places: dict[int, ConversationPlace] = {}
        self._tree = CallTree()
        self._turns: dict[int, Turn] = {}
        self._numbers: dict[int, int] = {}
        self._tips: dict[Head, Turn] = {}

    def add(self, call: Call, number: int) -> None:
        """The next call in time order. Those that failed or were refused stand alone."""
        self.places[number] = call.file, call.workspace, call.host, call.request.model
        count = len(self._tree.turns)
        self._tree.add(call)
        if len(self._tree.turns) == count:
            return
        turn = self._turns[number] = self._tree.turns[-1]
        self._numbers[turn.number] = number
        tip, self._tips[_head(call)] = self._tips.get(_head(call)), turn
        before = turn.before
        if tip and tip is not before:
            # A conversation in which some messages changed: at least half stand at the same place of both, and more
            # than those with which the call goes on from an earlier one.
            least = min(tip.thread.length, turn.thread.length)
            both = zip(tip.thread.up_to(least).back(), turn.thread.up_to(least).back(), strict=True)
            same = sum(a.message.digest == b.message.digest for a, b in both if a.message and b.message)
            if least > 1 and same * 2 >= least and same > (before.thread.length if before else 0):
                before = tip
        if before:
            self.before[number] = self._numbers[before.number]

    def is_aside(self, number: int) -> bool:
        """Whether nothing goes on from a call that was sent otherwise than the one before it: a title, a summary."""
        turn = self._turns.get(number)
        return bool(turn and turn.before and not turn.after and turn.head != turn.before.head)


def _head(call: Call) -> Head:
    request = call.request
    place = call.workspace, call.host, call.session, call.agent
    return *place, request.model, request.tools.digest, request.system.digest
