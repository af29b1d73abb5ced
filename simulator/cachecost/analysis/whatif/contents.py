"""Tools in one order, keys of their schemas in one order, and volatile words after the last breakpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cachecost.analysis.replays.steps import PartPool, change_calls
from cachecost.analysis.replays.volatile import VolatileTail
from cachecost.analysis.whatif.option import CONTENT, Option
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Part
from cachecost.prompts.wire import block_of

NEVER_ORDER = "the order of the tools never changes"
NEVER_KEYS = "the key order of a schema never changes"
NO_WORDS = "the recording has no content, so key order is unknown"


def tools_options(calls: Sequence[Call]) -> Iterator[Option]:
    """Tools sorted by name, and the keys of their definitions sorted."""
    lists = list({call.request.tools for call in calls if call.request.tools.blocks})
    orders = Counter(tuple(sorted(block.digest for block in part.blocks)) for part in lists)
    by_name = all(block.content is not None for part in lists for block in part.blocks)
    yield Option(
        "tools=sorted",
        "tools",
        f"tools sorted by {'name' if by_name else 'digest, because the recording has no names'}",
        change_calls(_WithTools(_SortedTools().of)),
        CONTENT,
        "The order of tools is assumed not to affect answers",
        unchanged="" if any(count > 1 for count in orders.values()) else NEVER_ORDER,
    )
    yield Option(
        "schemas=sorted",
        "schemas",
        "keys of tool definitions sorted, including those of schemas",
        change_calls(_WithTools(_CanonicalParts().of)),
        CONTENT,
        "The order of keys is assumed not to affect answers",
        unsupported="" if by_name else NO_WORDS,
        unchanged="" if not by_name or _keys_differ(lists) else NEVER_KEYS,
    )


def volatile_options(calls: Sequence[Call]) -> Iterator[Option]:
    """What changes in the system prompt from call to call, sent behind the last breakpoint instead."""
    tail = VolatileTail.find(calls)
    cut = sum(span is not None for span in tail.spans.values())
    how = "the words that change" if cut == len(tail.spans) else "the blocks that change"
    places = ", ".join(sorted(tail.paths, key=lambda path: int(path.rpartition(".")[2]))) or "none"
    yield Option(
        "volatile=last",
        "volatile",
        f"{how} in the system prompt ({places}) move to a text block after the last breakpoint",
        change_calls(tail),
        CONTENT,
        "The model is assumed to follow these words there as in the system prompt; earlier versions are dropped",
        unchanged="" if tail.spans else "nothing in the system prompt changes within a conversation",
    )


def _keys_differ(lists: Sequence[Part]) -> bool:
    """Whether a definition came in two spellings."""
    spelt: dict[bytes, set[bytes]] = {}
    for part in lists:
        for block in part.blocks:
            spelt.setdefault(canonical(block).digest, set()).add(block.digest)
    return any(len(one) > 1 for one in spelt.values())


@dataclass(frozen=True, slots=True)
class _WithTools:
    """Calls with their tools rewritten. Breakpoints keep their positions in the list."""

    rewrite: Callable[[Part], Part]

    def __call__(self, call: Call) -> Call:
        tools = self.rewrite(call.request.tools)
        return call if tools is call.request.tools else replace(call, request=replace(call.request, tools=tools))


@dataclass(slots=True)
class _SortedTools:
    parts: PartPool = field(default_factory=PartPool)

    def of(self, part: Part) -> Part:
        by_name = all(block.content is not None for block in part.blocks)
        return self.parts.of(sorted(part.blocks, key=lambda block: (_name(block) if by_name else "", block.digest)))


def _name(block: Block) -> str:
    return str((block.content or {}).get("name") or "")


@dataclass(slots=True)
class _CanonicalParts:
    parts: PartPool = field(default_factory=PartPool)

    def of(self, part: Part) -> Part:
        return self.parts.of([canonical(block) for block in part.blocks])


def canonical(block: Block) -> Block:
    """The block with all keys sorted; itself where it holds no content."""
    return block if block.content is None else block_of(block.role, _sort_keys(block.content))


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    return [_sort_keys(one) for one in value] if isinstance(value, list) else value
