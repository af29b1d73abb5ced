"""Calls that a log does not keep in the order in which they began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from operator import attrgetter

from cachecost.conversations.calls import RecordedCall


def by_start(calls: Iterable[RecordedCall], traces: Collection[str]) -> list[RecordedCall]:
    """The calls by their start. A session that is one of `traces` and that only one call has is none: tracers and
    gateways make up an id for every request, and calls of different sessions never go on from each other."""
    found = sorted(calls, key=attrgetter("start"))
    times = Counter(call.session for call in found)
    return [_drop_session(call) if times[call.session] == 1 and call.session in traces else call for call in found]


def _drop_session(call: RecordedCall) -> RecordedCall:
    return replace(call, session="")
