"""A call block by block, and one block with its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.timeline import TimelineCall, call_class_costs
from cachecost.analysis.viewing.block_texts import compared_texts, readable_text
from cachecost.analysis.viewing.blocks import SentBlock
from cachecost.analysis.viewing.call_view import Blocks, ViewedCall
from cachecost.analysis.viewing.text_diff import diff_texts
from cachecost.base.formatting import exact
from cachecost.prompts.blocks import Block
from cachecost.views.bill.json_output import call_object as billed_call_object
from cachecost.views.bill.session import agent_name
from cachecost.views.viewer.columns import name_of_cause
from cachecost.views.viewer.session import event_text, rewritten_cost, words_of_cause

PREVIEW = 200
"""Characters of a block's text in the list of blocks."""
MOST_TEXT = 200_000
"""Characters of a block's text alone."""
HIDDEN = "hidden"
HIDDEN_NAME = "added by the provider"
UNRECORDED_NAME = "not in the transcript"


def viewed_call_object(viewed: ViewedCall, prices: CallPrices, first_model: str) -> dict[str, Any]:
    """A call and its blocks; `first_model` is that of the session's start."""
    made = viewed.made
    row = made.row if made and made.row.error is None else None
    names, names_before = _tool_names(viewed.blocks), _tool_names(viewed.blocks_before)
    return {
        "call": _call(viewed.call, prices, first_model),
        "simulated": {"usage": row.usage.wire(), "cost_usd": exact(row.cost.total)} if row else None,
        "before": viewed.before.number if viewed.before else None,
        "blocks": [_compared(viewed, at, names) for at in range(len(viewed.blocks))],
        "gone": [_described(viewed.blocks_before[at], at, names_before) for at in viewed.changes.gone],
        "difference": _difference(viewed),
        "has_text": viewed.has_text,
    }


def _call(one: TimelineCall, prices: CallPrices, first_model: str) -> dict[str, Any]:
    billed = billed_call_object(one)
    kept = ("number", "time", "model", "file", "line", "usage", "cost_usd", "cause", "idle_s", "cache_miss_reason")
    classes = call_class_costs(one.call, prices)
    return {
        **{name: billed[name] for name in kept},
        "agent": agent_name(one),
        "cost_by_class_usd": {**{name: exact(cost) for name, cost in classes.items()}, "rewritten": _rewritten(one)},
        "cause_name": name_of_cause(one.cause),
        "message": words_of_cause(one.rewrite) if one.rewrite else None,
        "event": event_text(one, first_model),
    }


def _rewritten(one: TimelineCall) -> str:
    return exact(rewritten_cost(one))


def _compared(viewed: ViewedCall, at: int, names: Mapping[str, str]) -> dict[str, Any]:
    one, change = viewed.blocks[at], viewed.changes.blocks[at]
    return {
        **_described(one, at, names),
        "state": one.state,
        "breakpoint": one.breakpoint or None,
        "change": change.change,
        "before_n": None if change.before is None else change.before + 1,
    }


def _described(one: SentBlock, at: int, names: Mapping[str, str]) -> dict[str, Any]:
    """A block; its number counts from 1 in the order of the prompt."""
    block = one.block
    text = readable_text(block, one.layer) if block else None
    return {
        "n": at + 1,
        "layer": str(one.layer),
        "role": block.role if block else "",
        "kind": block.kind if block else HIDDEN,
        "name": _name(block, names) if block else UNRECORDED_NAME if one.is_unrecorded else HIDDEN_NAME,
        "tokens": one.tokens,
        "size": block.size if block else 0,
        "digest": block.digest.hex() if block else "",
        "text": "" if text is None else text[:PREVIEW],
    }


def _tool_names(blocks: Blocks) -> Mapping[str, str]:
    """The name of the tool of each use, by the id that its result names."""
    return dict(_named_uses(blocks))


def _named_uses(blocks: Blocks) -> Iterator[tuple[str, str]]:
    for one in blocks:
        content = one.block.content if one.block and one.block.kind == "tool_use" else None
        if content is not None and isinstance(content.get("id"), str):
            yield content["id"], str(content.get("name", ""))


def _name(block: Block, names: Mapping[str, str]) -> str:
    """The name of a tool, also of that whose result a block is; "" for others."""
    content = block.content or {}
    name = content.get("name")
    return name if isinstance(name, str) else names.get(str(content.get("tool_use_id", "")), "")


def _difference(viewed: ViewedCall) -> dict[str, Any] | None:
    at, found = viewed.changes.first_changed, viewed.difference
    if at is None or found is None:
        return None
    place = viewed.changes.blocks[at].before
    return {
        "block": at + 1,
        "before_block": None if place is None else place + 1,
        "at": found.at,
        "before": found.before,
        "was": found.was,
        "now": found.now,
        "after": found.after,
    }


def block_object(viewed: ViewedCall, number: int) -> dict[str, Any]:
    """One block with its text and what changed in it. Raises KeyError."""
    if not 1 <= number <= len(viewed.blocks):
        raise KeyError(number)
    at = number - 1
    one, other = viewed.blocks[at], viewed.counterpart(at)
    text, before = _texts(one, other)
    cut = (text or "")[:MOST_TEXT]
    old = before if before is None else before[:MOST_TEXT]
    return {
        **_compared(viewed, at, _tool_names(viewed.blocks)),
        "text": cut,
        "is_cut": max(len(text or ""), len(before or "")) > MOST_TEXT,
        "before": old,
        "parts": _parts(cut, old),
    }


def _texts(one: SentBlock, other: SentBlock | None) -> tuple[str | None, str | None]:
    """The text of a block and that of its counterpart; None where one is not known."""
    if one.block is None:
        return None, None
    both = compared_texts(other.block, one.block, one.layer) if other and other.block else None
    return (both[1], both[0]) if both else (readable_text(one.block, one.layer), None)


def _parts(text: str, before: str | None) -> list[tuple[str, str]]:
    if before is None or before == text:
        return [("same", text)] if text else []
    return [*diff_texts(before, text)]
