"""A loss in words: what happened, where in the request, and the text around the first difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from json import dumps

from cachecost.account.causes import causes
from cachecost.analysis.explain.fixes.settings import changed_settings
from cachecost.base.formatting import duration
from cachecost.caches.causes import changed_parameter
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall
from cachecost.ledger.findings import Finding
from cachecost.prompts.blocks import Layer
from cachecost.prompts.compare import first_difference, prefixes_back, text_of
from cachecost.prompts.request import Breakpoint, Request, wire_path


def with_places(findings: Sequence[Finding], calls: Sequence[Call]) -> list[Finding]:
    """The findings, whose `call` is a place among `calls` from 1, with what the log says of these calls."""
    numbers, placed = numbers_in_sessions(calls), list[Finding]()
    for one in findings:
        call = calls[one.call - 1]
        placed.append(
            replace(
                one,
                session=call.session,
                project=call.project,
                agent=call.agent,
                timestamp=call.timestamp,
                file=call.file,
                line=call.line or None,
                session_call=numbers[one.call - 1],
            )
        )
    return placed


def numbers_in_sessions(calls: Iterable[Call] | Iterable[BilledCall]) -> list[int | None]:
    """The number of each call within its session, its sub-agents included; None without a session."""
    met: Counter[str] = Counter()
    numbers: list[int | None] = []
    for call in calls:
        met[call.session] += 1
        numbers.append(met[call.session] if call.session else None)
    return numbers


AROUND, AFTER = 24, 12
"""Characters of an excerpt before the first one that differs, and from there."""


def place(loss: Loss, request: Request) -> str:
    """The place of the first block in the request: `tools.3`, `system.0`, `messages.4.content.1`."""
    node = loss.first
    if node.layer is not Layer.MESSAGES:
        before = takewhile(lambda one: one.layer is node.layer, prefixes_back(node))
        return wire_path(request, Breakpoint(node.layer, sum(one.block is not None for one in before) - 1))
    for message in request.thread.back():
        assert message.message is not None
        for number, block in enumerate(message.message.blocks):
            if block is node.block or (node.block and block.digest == node.block.digest):
                return f"messages.{message.length - 1}.content.{number}"
    return str(node.layer)


def excerpt(loss: Loss) -> str | None:
    """The new text around the first character that differs: `…Current time: 2026-03-06T21:2▮`."""
    new, old = loss.first.block, loss.was.block if loss.was else None
    if new is None or old is None or new.content is None or old.content is None or new.kind != old.kind:
        return None
    text = text_of(new)
    at = first_difference(text_of(old), text)
    before = text[max(0, at - AROUND) : at]
    more = "…" if at > AROUND else ""
    return " ".join(f"{more}{before}▮{text[at : at + AFTER]}".split()) + f" at character {at}"


def message(loss: Loss, request: Request, tokens: int) -> str:
    """What happened, in the sentence of the code."""
    where = place(loss, request)
    if loss.is_out_of_order:
        return (
            f"{where} is another one than in the conversation before; {tokens:,} tokens after it or in it are the same"
        )
    before = loss.since.request if loss.since else request
    tools, tools_before = len(request.tools.blocks), len(before.tools.blocks)
    misplaced = "the breakpoint of the previous call was on a block that this call does not have"
    if loss.was is None and loss.positions < 0:
        misplaced = "the breakpoint is before what earlier calls wrote"
    (old_host, _, old_workspace), (host, _, workspace) = loss.place_before.partition("/"), loss.place.partition("/")
    moved = f"workspace changed from {old_workspace or 'the default one'} to {workspace or 'the default one'}"
    if old_host != host:
        moved = f"host changed from {old_host} to {host}"
    return causes()[loss.cause].sentence.format(
        was=_parameter(loss.cause, before),
        now=_parameter(loss.cause, request),
        where=where,
        system=" and ".join(changed_settings(before, request)) or f"{where} changed",
        tools=f"{tools or 'no'} tools instead of {tools_before or 'none'}"
        if tools != tools_before
        else f"{where} changed",
        tokens=f"{tokens:,}",
        gap=duration(loss.gap_s),
        ttl=loss.ttl,
        minimum=f"{loss.minimum:,}",
        positions=loss.positions,
        window=loss.window,
        shared=request.thread.common(before.thread).length,
        messages_before=before.thread.length,
        messages_fewer=before.thread.length - request.thread.length,
        appeared="were added to" if request.thread.has_image else "were removed from",
        moved=moved,
        misplaced=misplaced,
    )


def _parameter(cause: str, request: Request) -> str:
    stated = changed_parameter(cause, request)
    return stated if isinstance(stated, str) else dumps(stated, ensure_ascii=False)
