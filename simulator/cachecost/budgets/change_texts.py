"""Describes changes: which tool or system block, where in it, and what was written again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any

from cachecost.base.formatting import count_text
from cachecost.budgets.baseline import BlockEntry
from cachecost.budgets.fingerprints import Entries
from cachecost.budgets.strategy_replays import ReplayedStrategy
from cachecost.caches.alignment import first_difference
from cachecost.ledger.findings import Finding
from cachecost.ledger.results import CallRow, LayerTokens
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.refusals import wire_path
from cachecost.prompts.request import Breakpoint, Request, block_at, place_as_sent

REORDERED = "the order of the tools changed"


def describe_finding(finding: Finding, replayed: ReplayedStrategy) -> str:
    """What a finding says changed, naming the tool or block if there is one."""
    now = replayed.request(finding.call)
    was = replayed.request(finding.since) if finding.since else None
    if finding.cause == "tools_changed" and was:
        return _tools(was, now, finding)
    if finding.cause == "system_changed" and was:
        return _system(was, now, finding)
    return finding.message


def _tools(was: Request, now: Request, finding: Finding) -> str:
    old, new = was.tools.blocks, now.tools.blocks
    if len(old) != len(new):
        return f"{_many(len(new))} instead of {len(old) or 'none'}"
    index = _first(old, new)
    if sorted(block.digest for block in old) == sorted(block.digest for block in new):
        number = place_as_sent(now, Breakpoint(Layer.TOOLS, index))[2] + 1
        return f"{REORDERED} ({_block_name(now, Layer.TOOLS, index)} is now number {number})"
    return f"{_block_name(now, Layer.TOOLS, index)} changed{_where(old[index], new[index])}"


def _many(count: int) -> str:
    return count_text(count, "tool") if count else "no tools"


def _system(was: Request, now: Request, finding: Finding) -> str:
    old, new = was.system.blocks, now.system.blocks
    if len(old) != len(new):
        return f"{count_text(len(new), 'system block')} instead of {len(old) or 'none'}"
    index = _first(old, new)
    if index == len(new):
        return "a parameter that the system prompt depends on changed"
    more = f" ({finding.excerpt.replace(' at character', ', character')})" if finding.excerpt else ""
    return f"{_block_name(now, Layer.SYSTEM, index)} changed{more or _where(old[index], new[index])}"


def _first(old: Sequence[Block], new: Sequence[Block]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one.digest != other.digest), min(len(old), len(new)))


def _block_name(request: Request, layer: Layer, index: int) -> str:
    """A rendered block in words, by its name or by its number in the request as sent: `tool read`, `system block 2`."""
    breakpoint = Breakpoint(layer, index)
    kind, _, place = place_as_sent(request, breakpoint)
    name = (block_at(request, breakpoint).content or {}).get("name")
    words = "tool" if kind is Layer.TOOLS else "system block"
    return f"{words} {name if isinstance(name, str) and kind is Layer.TOOLS else place + 1}"


def _where(old: Block, new: Block) -> str:
    """ " (description, character 212)"; without content the sizes in bytes: " (812 instead of 790 bytes)"."""
    if old.content is None or new.content is None:
        sizes = f" ({new.size:,} instead of {old.size:,} bytes)"
        return sizes if old.size != new.size else f" ({new.size:,} bytes as before)"
    for key in dict.fromkeys([*old.content, *new.content]):
        one, other = _text(old.content.get(key)), _text(new.content.get(key))
        if one != other:
            return f" ({key}, character {first_difference(one, other)})"
    return " (the order of its keys)"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class HeadChange:
    """A layer that is not as in the baseline: in words, and where on the wire."""

    layer: str
    what: str
    block: str = ""


def describe_head_change(
    layer: str, was: Sequence[BlockEntry] | None, now: Entries, request: Request
) -> HeadChange | None:
    """A changed head in words; `was` None: its blocks are not known.

    None where nothing but digests differs and there is no content: a recording made anew has another key.
    """
    if layer == "parameters":
        return HeadChange(layer, f"{_parameter(was, now)} from the baseline")
    if was is None:
        return HeadChange(layer, f"the {layer} layer differs from the baseline")
    old, new = [entry.digest for entry in was], [digest for digest, _, _ in now]
    noun = "tool" if layer == "tools" else "system block"
    if len(old) != len(new):
        words = count_text(len(new), noun) if new else f"no {noun}s"
        return HeadChange(layer, f"{words} instead of {len(old) or 'none'}")
    if sorted(old) == sorted(new):
        return HeadChange(layer, f"the order of the {noun}s differs from the baseline")
    blocks = request.tools.blocks if layer == "tools" else request.system.blocks
    is_rekeyed = not set(old) & set(new) and all(block.content is None for block in blocks)
    index = _first_changed(was, now, by_size=is_rekeyed)
    if index is None:
        return None
    name = _block_name(request, Layer(layer), index)
    sizes = _sizes(was[index].tokens, now[index][1])
    path = wire_path(request, Breakpoint(Layer(layer), index))
    return HeadChange(layer, f"{name} differs from the baseline ({sizes})", path)


def _first_changed(was: Sequence[BlockEntry], now: Entries, by_size: bool) -> int | None:
    """The first block that is another, or of another size."""
    for index, (old, (digest, tokens, _)) in enumerate(zip(was, now, strict=True)):
        if old.tokens != tokens or (not by_size and old.digest != digest):
            return index
    return None


def _sizes(old: int, new: int) -> str:
    return f"{new:,} tokens as before" if old == new else f"{new:,} tokens instead of {old:,}"


def _parameter(was: Sequence[BlockEntry] | None, now: Entries) -> str:
    old = {entry.name: entry.digest for entry in was or ()}
    new = {name: digest for digest, _, name in now}
    names = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    return f"{' and '.join(names)} {'differs' if len(names) == 1 else 'differ'}" if names else "parameters differ"


def effect_of(row: CallRow) -> str:
    """What was paid again: "tools, system and messages written again"."""
    paid = [str(layer) for layer in Layer if _unread(row.by_layer.get(layer))]
    if not paid:
        return ""
    names = f"{', '.join(paid[:-1])} and {paid[-1]}" if len(paid) > 1 else paid[0]
    wrote = row.usage.write_5m + row.usage.write_1h
    return f"{names} {'written again' if wrote >= row.usage.input_tokens else 'sent uncached'}"


def _unread(tokens: LayerTokens | None) -> bool:
    return tokens is not None and tokens.write_5m + tokens.write_1h + tokens.input > 0
