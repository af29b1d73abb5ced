"""Lint of a recording: every call, and every step from a call to the one that goes on from it.

Requests of different conversations: what both send, and one of them behind a block that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.linter import MARGIN, Linter
from cachecost.analysis.lint.loaded_request import LoadedRequest, RequestLoader, SizedBreakpoint
from cachecost.base.errors import CannotEvaluate, OtherCache
from cachecost.caches.losses import MOST_RECENT, find_shared_content, have_one_static
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.sessions import CallTree, Turn
from cachecost.prompts.blocks import Layer, Prefix, Thread
from cachecost.prompts.compare import ancestor
from cachecost.prompts.request import Breakpoint, Request, wire_path
from cachecost.providers.hosts import host_of
from cachecost.simulation.strategy_ledger import LeftOut

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
    request = loaded.request
    place = _place(request, prefix)
    return SizedBreakpoint(place, wire_path(request, place), prefix, loaded.length(prefix), "enough")


def _place(request: Request, prefix: Prefix) -> Breakpoint:
    index = prefix.depth - 1 - len(request.tools.blocks)
    if prefix.layer is not Layer.MESSAGES:
        return Breakpoint(prefix.layer, index if prefix.layer is Layer.SYSTEM else prefix.depth - 1)
    return Breakpoint(Layer.MESSAGES, index - len(request.system.blocks), node=request.thread.beginning)


Head = tuple[str, str | None, str, str, str, bytes, bytes]


@dataclass(frozen=True, slots=True)
class LintedLog:
    """The findings of a recording, how many calls were looked at, why others could not be, with their numbers, and
    which were left out, as lint does not support their cache."""

    findings: list[LintFinding]
    requests: int
    not_evaluated: dict[str, list[int]] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)


def lint_log(calls: Iterable[RecordedCall], label: str, loader: RequestLoader, margin: int = MARGIN) -> LintedLog:
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
    findings = [_placed(one, *places[one.call]) for one in _lint_pairs(known, pairing, loader, margin)]
    if not known:
        return LintedLog(findings, 0, {**others, **wrong})
    return LintedLog(findings, len(known), wrong, left_out)


def _placed(finding: LintFinding, session: str, file: str, line: int) -> LintFinding:
    return replace(finding, session=session, file=file, line=line or None)


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
    """Finds the call that each goes on from: as sessions are found, or one with nearly the same messages.

    `before` holds the number of that call by the number of each that has one.
    """

    def __init__(self) -> None:
        self.before: dict[int, int] = {}
        self.places: dict[int, ConversationPlace] = {}
        self._tree = CallTree()
        self._turns: dict[int, Turn] = {}
        self._numbers: dict[int, int] = {}
        self._tips: dict[Head, Turn] = {}

    def add(self, call: RecordedCall, number: int) -> None:
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
        if tip and tip is not before and _is_alike(tip.thread, turn.thread, before.thread.length if before else 0):
            before = tip
        if before:
            self.before[number] = self._numbers[before.number]

    def is_aside(self, number: int) -> bool:
        """Whether nothing goes on from a call that was sent otherwise than the one before it: a title, a summary."""
        turn = self._turns.get(number)
        return bool(turn and turn.before and not turn.after and turn.head != turn.before.head)


def _head(call: RecordedCall) -> Head:
    request = call.request
    place = call.workspace, call.host, call.session, call.agent
    return *place, request.model, request.tools.digest, request.system.digest


def _is_alike(one: Thread, other: Thread, more_than: int) -> bool:
    """Whether at least half of the messages stand at the same place of both: a conversation in which some changed. They
    are more than those with which `other` goes on from an earlier call."""
    least = min(one.length, other.length)
    old, new = one.up_to(least).back(), other.up_to(least).back()
    same = sum(a.message.digest == b.message.digest for a, b in zip(old, new, strict=True) if a.message and b.message)
    return least > 1 and same * 2 >= least and same > more_than
