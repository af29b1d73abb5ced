"""The calls of a run as they are compared with those of another: blocks by their paths as sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Block, Layer
from cachecost.prompts.refusals import wire_path
from cachecost.prompts.request import Breakpoint, Request

ID_KEYS = ("id", "tool_use_id")


@dataclass(frozen=True, slots=True)
class ComparedBlock:
    """A block and its path as sent. Blocks with equal `identity` are the same."""

    path: str
    role: str
    content: Mapping[str, Any]
    identity: object


@dataclass(frozen=True, slots=True)
class ComparedCall:
    """What a call sent: its blocks by layer, and everything else."""

    blocks: Mapping[Layer, Sequence[ComparedBlock]]
    settings: Mapping[str, Any]

    def identity(self, *layers: Layer) -> tuple[object, ...]:
        """The same for calls with the same blocks in these layers."""
        return tuple(tuple(block.identity for block in self.blocks[layer]) for layer in layers)


def compared_calls(run: Sequence[RecordedCall]) -> list[ComparedCall]:
    """The calls of a run. Ids that the simulated API gave are numbered in each call: they follow from other calls."""
    answered = (block.content or {} for call in run for block in call.response)
    ids = {name for content in answered if isinstance(name := content.get("id"), str)}
    return [_compared_call(call.request, ids) for call in run]


def _compared_call(request: Request, ids: AbstractSet[str]) -> ComparedCall:
    names: dict[str, str] = {}
    tools, system = _of_part(request, Layer.TOOLS), _of_part(request, Layer.SYSTEM)
    messages = [_compared_block(path, block, ids, names) for path, block in _message_blocks(request)]
    return ComparedCall({Layer.TOOLS: tools, Layer.SYSTEM: system, Layer.MESSAGES: messages}, _settings(request))


def _of_part(request: Request, layer: Layer) -> list[ComparedBlock]:
    blocks = request.tools.blocks if layer is Layer.TOOLS else request.system.blocks
    paths = (wire_path(request, Breakpoint(layer, index)) for index in range(len(blocks)))
    return [_compared_block(path, block, frozenset(), {}) for path, block in zip(paths, blocks, strict=True)]


def _message_blocks(request: Request) -> Iterator[tuple[str, Block]]:
    for number, message in enumerate(request.thread.messages()):
        for index, block in enumerate(message.blocks):
            yield f"messages.{number}.content.{index}", block


def _compared_block(path: str, block: Block, ids: AbstractSet[str], names: dict[str, str]) -> ComparedBlock:
    content = block.content or {}
    given = {key: content[key] for key in ID_KEYS if content.get(key) in ids}
    if not given:
        return ComparedBlock(path, block.role, content, block.digest)
    numbered = {key: names.setdefault(name, f"id {len(names) + 1}") for key, name in given.items()}
    return ComparedBlock(path, block.role, {**content, **numbered}, repr({**content, **numbered}))


def _settings(request: Request) -> Mapping[str, Any]:
    """What a request says besides its blocks, in an order of its own."""
    places = [f"{wire_path(request, one)} {one.ttl}" for one in request.breakpoints]
    params = {name: request.params[name] for name in sorted(request.params)}
    return {"model": request.model, **params, "cache_control": [*places, request.automatic]}
