"""Lint of a recording: every call, and every step from a call to the one that goes on from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cachecost.analysis.lint.apart import ConversationPlace, RecentConversations
from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.linter import MARGIN, Linter
from cachecost.analysis.lint.loaded_request import LoadedRequest
from cachecost.analysis.lint.request_loader import RequestLoader
from cachecost.base.errors import CannotEvaluate, OtherCache
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.sessions import CallTree, Turn
from cachecost.prompts.blocks import Thread
from cachecost.providers.hosts import host_of
from cachecost.simulation.left_out import LeftOut

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
