"""A loss in words: what happened, where in the request, and the text around the first difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from json import dumps

from cachecost.account.causes import causes
from cachecost.analysis.explain.fixes.settings import changed_settings
from cachecost.base.formatting import duration
from cachecost.caches.causes import changed_parameter
from cachecost.caches.losses import Loss
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall
from cachecost.ledger.findings import Finding
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.compare import first_difference, text_of
from cachecost.prompts.request import Breakpoint, Request, wire_path


def with_places(findings: Sequence[Finding], calls: Sequence[Call]) -> list[Finding]:
    """The findings, whose `call` is a place among `calls` from 1, with what the log says of these calls."""
    numbers = numbers_in_sessions(calls)
    return [_with_place(one, calls[one.call - 1], numbers[one.call - 1]) for one in findings]


def _with_place(finding: Finding, call: Call, number: int | None) -> Finding:
    return replace(
        finding,
        session=call.session,
        project=call.project,
        agent=call.agent,
        timestamp=call.timestamp,
        file=call.file,
        line=call.line or None,
        session_call=number,
    )


def numbers_in_sessions(calls: Iterable[Call] | Iterable[BilledCall]) -> list[int | None]:
    """The number of each call within its session, its sub-agents included; None without a session."""
    met: Counter[str] = Counter()
    numbers: list[int | None] = []
    for call in calls:
        met[call.session] += 1
        numbers.append(met[call.session] if call.session else None)
    return numbers


AROUND = 24
"""Characters of an excerpt before the first one that differs."""
AFTER = 12
HERE = "▮"


def place(loss: Loss, request: Request) -> str:
    """The place of the first block in the request: `tools.3`, `system.0`, `messages.4.content.1`."""
    node = loss.first
    if node.layer is not Layer.MESSAGES:
        return wire_path(request, Breakpoint(node.layer, _index_in_layer(node)))
    for message in request.thread.back():
        assert message.message is not None
        for number, block in enumerate(message.message.blocks):
            if block is node.block or (node.block and block.digest == node.block.digest):
                return f"messages.{message.length - 1}.content.{number}"
    return str(node.layer)


def _index_in_layer(node: Prefix) -> int:
    number = -1
    step: Prefix | None = node
    while step is not None and step.layer is node.layer:
        number += step.block is not None
        step = step.parent
    return number


def excerpt(loss: Loss) -> str | None:
    """The new text around the first character that differs: `…Current time: 2026-03-06T21:2▮`."""
    new, old = loss.first.block, loss.was.block if loss.was else None
    if new is None or old is None or new.content is None or old.content is None or new.kind != old.kind:
        return None
    text = text_of(new)
    at = first_difference(text_of(old), text)
    before = text[max(0, at - AROUND) : at]
    more = "…" if at > AROUND else ""
    return " ".join(f"{more}{before}{HERE}{text[at : at + AFTER]}".split()) + f" at character {at}"


def message(loss: Loss, request: Request, tokens: int) -> str:
    """What happened, in the sentence of the code."""
    if loss.is_out_of_order:
        where = place(loss, request)
        return (
            f"{where} is another one than in the conversation before; {tokens:,} tokens after it or in it are the same"
        )
    return causes()[loss.cause].sentence.format(**_facts(loss, request, tokens))


def _facts(loss: Loss, request: Request, tokens: int) -> dict[str, object]:
    before = loss.since.request if loss.since else request
    was, now = _parameter(loss.cause, before), _parameter(loss.cause, request)
    shared = request.thread.common(before.thread).length
    tools, tools_before = len(request.tools.blocks), len(before.tools.blocks)
    misplaced = "the breakpoint of the previous call was on a block that this call does not have"
    if loss.was is None and loss.positions < 0:
        misplaced = "the breakpoint is before what earlier calls wrote"
    changed = f"{place(loss, request)} changed"
    return {
        "was": was,
        "now": now,
        "where": place(loss, request),
        "system": " and ".join(changed_settings(before, request)) or changed,
        "tools": changed if tools == tools_before else f"{tools or 'no'} tools instead of {tools_before or 'none'}",
        "tokens": f"{tokens:,}",
        "gap": duration(loss.gap_s),
        "ttl": loss.ttl,
        "minimum": f"{loss.minimum:,}",
        "positions": loss.positions,
        "window": loss.window,
        "shared": shared,
        "messages_before": before.thread.length,
        "messages_fewer": before.thread.length - request.thread.length,
        "appeared": "were added to" if request.thread.has_image else "were removed from",
        "moved": _describe_move(loss),
        "misplaced": misplaced,
    }


def _describe_move(loss: Loss) -> str:
    """Both workspaces, or both hosts; a pool is `HOST/WORKSPACE`."""
    (host_before, _, before), (host, _, now) = loss.place_before.partition("/"), loss.place.partition("/")
    if host_before != host:
        return f"host changed from {host_before} to {host}"
    return f"workspace changed from {before or 'the default one'} to {now or 'the default one'}"


def _parameter(cause: str, request: Request) -> str:
    stated = changed_parameter(cause, request)
    return stated if isinstance(stated, str) else dumps(stated, ensure_ascii=False)
