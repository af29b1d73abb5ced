"""Other TTLs for the existing breakpoints, layer by layer, and other breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cachecost.analysis.replays.steps import change_breakpoints, has_breakpoints
from cachecost.analysis.replays.ttls import set_hour_on, set_ttl
from cachecost.analysis.whatif.option import BREAKPOINTS, TTL_LEVER, Option
from cachecost.analysis.whatif.pauses import RecordedPauses
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer
from cachecost.prompts.refusals import last_breakpoint_place, sent_breakpoints
from cachecost.prompts.request import TTL, Breakpoint, Request

SHORT, HOUR = 300.0, 3600.0


def ttl_options(calls: Sequence[Call], found: RecordedPauses, short_s: float) -> Iterator[Option]:
    """Everything for 5 minutes, everything for an hour, and an hour for the layers that come first alone."""
    for ttl in ("5m", "1h"):
        timed = set_ttl(ttl)
        same = all(timed(call.request) is call.request for call in calls)
        unchanged = "already so" if same else ""
        why = _missing_reason(calls, timed, found, short_s)
        yield _option(f"ttl={ttl}", f"every breakpoint has a TTL of {ttl}", timed, why, unchanged)
    for name, layers, words in (
        ("ttl=1h:tools", (Layer.TOOLS,), "a TTL of 1h on tools, 5m on everything else"),
        (
            "ttl=1h:tools+system",
            (Layer.TOOLS, Layer.SYSTEM),
            "a TTL of 1h on tools and system, 5m on messages",
        ),
    ):
        there = any(breakpoint.layer in layers for call in calls for breakpoint in call.request.breakpoints)
        missing = "" if there else f"no call has a breakpoint on {' or '.join(layers)}"
        timed = set_hour_on(layers)
        yield _option(name, words, timed, _missing_reason(calls, timed, found, short_s), missing)


def _missing_reason(
    calls: Sequence[Call], timed: Callable[[Request], Request], found: RecordedPauses, short_s: float
) -> str:
    """Why the recording cannot show what these TTLs change. That 5m is enough, pauses shorter than that prove."""
    lengthens = any(
        then.ttl == "1h" and now.ttl == "5m"
        for call in calls
        for now, then in zip(_ttls(call.request), _ttls(timed(call.request)), strict=True)
    )
    return found.missing_reason(short_s if lengthens else 0.0)


def _ttls(request: Request) -> Sequence[Breakpoint]:
    return sent_breakpoints(request).breakpoints


def _option(name: str, does: str, timed: Callable[[Request], Request], why: str, unchanged: str) -> Option:
    return Option(name, "ttl", does, change_breakpoints(timed), TTL_LEVER, unsupported=why, unchanged=unchanged)


def own_ttl(request: Request) -> TTL:
    """The TTL of all breakpoints of a request; 5m where they differ, or where it has none."""
    return "1h" if {breakpoint.ttl for breakpoint in sent_breakpoints(request).breakpoints} == {"1h"} else "5m"


@dataclass(frozen=True, slots=True)
class _Marking:
    """Breakpoints by one rule, with the TTL of the request's own (5m if it has none)."""

    head: bool
    end: bool

    def __call__(self, request: Request) -> Request:
        if request.fault:
            return request
        ttl = own_ttl(request)
        breakpoints = [*(self._head(request, ttl) if self.head else ()), *(self._end(request, ttl) if self.end else ())]
        return replace(request, breakpoints=tuple(dict.fromkeys(breakpoints)), automatic=None)

    def _head(self, request: Request, ttl: TTL) -> Iterator[Breakpoint]:
        if request.tools.blocks:
            yield Breakpoint(Layer.TOOLS, len(request.tools.blocks) - 1, ttl)
        texts = [index for index, block in enumerate(request.system.blocks) if not block.is_empty_text]
        if texts:
            yield Breakpoint(Layer.SYSTEM, texts[-1], ttl)

    def _end(self, request: Request, ttl: TTL) -> Iterator[Breakpoint]:
        if found := last_breakpoint_place(request, ttl):
            yield found


def breakpoint_options(calls: Sequence[Call]) -> Iterator[Option]:
    """The last block alone, the head and the last block, and no breakpoint at all."""
    for name, marking, does in (
        (
            "breakpoints=automatic",
            _Marking(False, True),
            "one breakpoint on the last block of each call: automatic caching",
        ),
        (
            "breakpoints=head+automatic",
            _Marking(True, True),
            "breakpoints on the last tool, the last system block and the last block",
        ),
        ("breakpoints=none", _Marking(False, False), "no caching at all"),
    ):
        same = all(_spots(marking(call.request)) == _spots(call.request) for call in calls)
        yield Option(
            name, "breakpoints", does, change_breakpoints(marking), BREAKPOINTS, unchanged="already so" if same else ""
        )


def _spots(request: Request) -> set[object]:
    return (
        {(breakpoint.block_key, breakpoint.ttl) for breakpoint in sent_breakpoints(request).breakpoints}
        if has_breakpoints(request)
        else set()
    )
