"""Other TTLs for the existing breakpoints, layer by layer, and other breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cachecost.analysis.whatif.option import LIFETIME, MARKS, Option
from cachecost.analysis.whatif.pauses import RecordedPauses
from cachecost.analysis.whatif.steps import change_marks, has_marks
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer
from cachecost.prompts.refusals import last_markable, marks_sent
from cachecost.prompts.request import TTL, Mark, Request

SHORT, HOUR = 300.0, 3600.0


def lifetime_options(calls: Sequence[Call], found: RecordedPauses, short_s: float) -> Iterator[Option]:
    """Everything for 5 minutes, everything for an hour, and an hour for the layers that come first alone."""
    why = found.missing_reason(short_s)
    for ttl in ("5m", "1h"):
        yield _option(calls, f"ttl={ttl}", f"every breakpoint has a TTL of {ttl}", set_ttl(ttl), why)
    for name, layers, words in (
        ("ttl=1h:tools", (Layer.TOOLS,), "a TTL of 1h on tools, 5m on everything else"),
        (
            "ttl=1h:tools+system",
            (Layer.TOOLS, Layer.SYSTEM),
            "a TTL of 1h on tools and system, 5m on messages",
        ),
    ):
        there = any(mark.layer in layers for call in calls for mark in call.request.marks)
        missing = "" if there else f"no call has a breakpoint on {' or '.join(layers)}"
        yield replace(_option(calls, name, words, set_hour_on(layers), why), unchanged=missing)


def _option(calls: Sequence[Call], name: str, does: str, timed: Callable[[Request], Request], why: str) -> Option:
    same = all(timed(call.request) is call.request for call in calls)
    return Option(
        name, "lifetime", does, change_marks(timed), LIFETIME, unsupported=why, unchanged="already so" if same else ""
    )


def set_ttl(ttl: TTL) -> Callable[[Request], Request]:
    """Every breakpoint with this TTL."""
    return partial(_with_ttls, ttl_of=lambda layer: ttl)


def set_hour_on(layers: Sequence[Layer]) -> Callable[[Request], Request]:
    """1h for breakpoints on these layers, 5m for others."""
    return partial(_with_ttls, ttl_of=lambda layer: "1h" if layer in layers else "5m")


def _with_ttls(request: Request, ttl_of: Callable[[Layer], TTL]) -> Request:
    marks = tuple(replace(mark, ttl=ttl_of(mark.layer)) for mark in request.marks)
    automatic = ttl_of(Layer.MESSAGES) if request.automatic else None
    if marks == request.marks and automatic == request.automatic:
        return request
    return replace(request, marks=marks, automatic=automatic)


@dataclass(frozen=True, slots=True)
class _Marking:
    """Breakpoints by one rule, with the TTL of the request's own (5m if it has none)."""

    head: bool
    end: bool

    def __call__(self, request: Request) -> Request:
        if request.fault:
            return request
        ttl: TTL = "1h" if {mark.ttl for mark in marks_sent(request).marks} == {"1h"} else "5m"
        marks = [*(self._head(request, ttl) if self.head else ()), *(self._end(request, ttl) if self.end else ())]
        return replace(request, marks=tuple(dict.fromkeys(marks)), automatic=None)

    def _head(self, request: Request, ttl: TTL) -> Iterator[Mark]:
        if request.tools.blocks:
            yield Mark(Layer.TOOLS, len(request.tools.blocks) - 1, ttl)
        texts = [index for index, block in enumerate(request.system.blocks) if not block.is_empty_text]
        if texts:
            yield Mark(Layer.SYSTEM, texts[-1], ttl)

    def _end(self, request: Request, ttl: TTL) -> Iterator[Mark]:
        if found := last_markable(request, ttl):
            yield found


def mark_options(calls: Sequence[Call]) -> Iterator[Option]:
    """The last block alone, the head and the last block, and no mark at all."""
    for name, marking, does in (
        ("marks=automatic", _Marking(False, True), "one breakpoint on the last block of each call: automatic caching"),
        (
            "marks=head+automatic",
            _Marking(True, True),
            "breakpoints on the last tool, the last system block and the last block",
        ),
        ("marks=none", _Marking(False, False), "no caching at all"),
    ):
        same = all(_spots(marking(call.request)) == _spots(call.request) for call in calls)
        yield Option(name, "marks", does, change_marks(marking), MARKS, unchanged="already so" if same else "")


def _spots(request: Request) -> set[object]:
    return {(mark.block_key, mark.ttl) for mark in marks_sent(request).marks} if has_marks(request) else set()
