"""What a host is sent for a request: its own marks and boundaries, and in words what it has no such thing for.

A strategy says what it means in the Messages API's terms: a stable head (marks in tools and system), a moving tail (a
top-level `cache_control`, or a mark on the last message), marks between. Where a host speaks those terms, the request
is sent as it is. Elsewhere:

- OpenAI from GPT-5.6 on (`implicit_mark`): a moving tail, or no mark at all, is its implicit mode, which marks the end
  of the latest user message or group of results; marks alone are its explicit mode. Of too many marks the oldest are
  dropped without a word. It looks where this request has marks and, in implicit mode, at the ends of earlier user
  messages and of the first developer messages. (Guide of 2026-10-02; openai 3.54.0.)
- Gemini's CachedContent (`matching` "named"): the last mark of the head ends the object. (google-genai 3.4.0.)
- Hosts that cache by themselves: no marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cachecost.facts import fact
from cachecost.prompts.blocks import Layer, Thread
from cachecost.prompts.refusals import is_markable, marks_sent
from cachecost.prompts.request import TTL, Mark, Request
from cachecost.providers.rules import ModelRules

EARLIER_ENDS = 20
"""How many ends of earlier user messages are looked at in implicit mode (guide of 2026-10-02)."""
FIRST_MARKS, LATEST_MARKS, MARKS_OF_SDK = 2, 50, 80
"""Marks that are looked at: the first 2 and the latest 50 (guide), or the latest 80 (SDK of November 2026)."""


@fact
class Told:
    """A request as a host gets it. `looks_at` are the only places where it looks for an entry; None: rule 9's."""

    request: Request
    looks_at: tuple[Mark, ...] | None = None
    notes: tuple[str, ...] = ()


def translated(request: Request, rules: ModelRules) -> Told:
    """`request` in the terms of the host of `rules`."""
    if rules.speaks_marks:
        return Told(request)
    if rules.matching == "breakpoint":
        return _bounded(request, rules)
    if rules.matching == "named":
        return _named(request, rules)
    return _unmarked(request, rules)


def _unmarked(request: Request, rules: ModelRules) -> Told:
    if not request.marks and request.automatic is None:
        return Told(request)
    note = f"{rules.host} caches by itself: marks and lifetimes are left out."
    return Told(replace(request, marks=(), automatic=None), notes=(note,))


def _named(request: Request, rules: ModelRules) -> Told:
    """The last mark of the head ends the object; one in messages would mean a new object for each call."""
    head = [mark for mark in request.marks if mark.layer is not Layer.MESSAGES]
    notes = []
    if len(head) < len(request.marks) or request.automatic:
        notes.append(f"{rules.host} has no moving tail: an object would be made anew for each call.")
    if not head:
        notes.append("No mark stands in the head, so no object is made.")
    kept = tuple(head[-1:])
    return Told(replace(request, marks=kept, automatic=None), kept, tuple(notes))


def _bounded(request: Request, rules: ModelRules) -> Told:
    """OpenAI's marks: the tail by the implicit mark, the others explicit; of too many the oldest are dropped."""
    sent = marks_sent(replace(request, automatic=None)).marks
    able = [mark for mark in sent if mark.layer in rules.markable_layers]
    tail = request.automatic or next((mark.ttl for mark in reversed(able) if mark.node is request.thread), None)
    implicit = _implicit(request, tail or "5m") if tail or not sent else None
    explicit = [mark for mark in able if not (implicit and mark.node is request.thread)]
    kept = explicit[max(0, len(explicit) - rules.maximum_marks + (implicit is not None)) :]
    looks_at = [*_looked_at(explicit, rules), *(_implicit_places(request, implicit, rules) if implicit else ())]
    notes = _unmarkable(len(sent) - len(able), rules)
    marks = (*kept, implicit) if implicit else tuple(kept)
    return Told(replace(request, marks=marks, automatic=None), tuple(looks_at), notes)


def _unmarkable(dropped: int, rules: ModelRules) -> tuple[str, ...]:
    words = " and ".join(rules.markable_layers)
    return (f"{rules.host} takes marks in {words} only: others are left out.",) if dropped else ()


def _looked_at(explicit: list[Mark], rules: ModelRules) -> list[Mark]:
    if rules.switches.openai_boundaries == "sdk":
        return explicit[-MARKS_OF_SDK:]
    return [*explicit[:FIRST_MARKS], *explicit[FIRST_MARKS:][-LATEST_MARKS:]]


def _implicit(request: Request, ttl: TTL) -> Mark | None:
    """The end of the latest user message; else of the developer messages."""
    return next(_user_ends(request.thread, ttl), None) or _end_of_developer(request, ttl)


def _implicit_places(request: Request, implicit: Mark, rules: ModelRules) -> Iterator[Mark]:
    ends = _user_ends(request.thread, implicit.ttl)
    yield from (mark for mark, _ in zip(ends, range(1 + EARLIER_ENDS), strict=False))
    developer = _end_of_developer(request, implicit.ttl)
    if developer and rules.switches.openai_developer_end == "readable":
        yield developer


def _user_ends(thread: Thread, ttl: TTL) -> Iterator[Mark]:
    """The ends of user messages, results of tools among them, the latest first."""
    for node in thread.back():
        assert node.message is not None
        if node.message.role == "user" and node.message.blocks:
            last = len(node.message.blocks) - 1
            if is_markable(node.message.blocks[last]):
                yield Mark(Layer.MESSAGES, last, ttl, node)


def _end_of_developer(request: Request, ttl: TTL) -> Mark | None:
    blocks = request.system.blocks
    return Mark(Layer.SYSTEM, len(blocks) - 1, ttl) if blocks else None
